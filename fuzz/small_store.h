// A result store of a few nodes for the fuzz targets of what reads one.

#ifndef PLUMBLINE_FUZZ_SMALL_STORE_H_
#define PLUMBLINE_FUZZ_SMALL_STORE_H_

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/file/file.h"
#include "base/text/json.h"
#include "view/query/answers.h"
#include "view/store/store_writer.h"

namespace plumbline::fuzz {

inline constexpr uint32_t kNodesOfSide = 12;

inline void AddSide(bool is_golden, view::PlaceBuilder& place) {
  const std::vector<std::string_view> frames = {"File a.py, line 1", "File b.py, line 2"};
  const uint32_t stack = place.AddStack(frames);
  for (uint32_t i = 0; i < kNodesOfSide; ++i) {
    const std::string name = i == 0       ? "DefaultModel"
                             : i % 4 == 1 ? "Module.net." + std::to_string(i) + ".Mlp.forward.0"
                                          : "Functional.linear." + std::to_string(i) + ".forward";
    view::NodeRecord node;
    node.name = name;
    node.parent = i == 0 ? view::kNoNode : i % 4 == 1 ? 0 : i - (i + 3) % 4;
    node.partner = is_golden || i == 7 ? view::kNoNode : i;
    node.type = i == 0       ? view::StoredType::kRoot
                : i % 4 == 1 ? view::StoredType::kModule
                             : view::StoredType::kApi;
    node.level = static_cast<view::NodeLevel>(i % 4);
    node.overflow = static_cast<view::StoredOverflow>(i % 4);
    node.micro_step = static_cast<int32_t>(i % 2);
    node.flags = static_cast<uint16_t>(i);
    node.error = static_cast<float>(i) / 8;
    node.stack = stack;
    place.AddNode(is_golden, node);
  }
}

inline view::NodeDetail SmallDetail() {
  view::StoredValue value;
  value.name = "output.0";
  value.role = view::ValueRole::kOutput;
  value.target =
      view::ValueSide{"torch.Tensor", "torch.float32", "[2, 8]", {0.5, int64_t{3}, true}};
  value.golden = view::ValueSide{"torch.Tensor", "torch.bfloat16", "[2, 8]", {0.25, 1e300, {}}};
  value.verdict = "broken";
  value.reason = "exceeds-noise";
  value.error = 0.5;
  value.metrics = {{"cosine", 0.25}};
  value.notes = {"one"};
  view::NodeDetail detail;
  detail.pairing = "renumbered";
  detail.values = {value};
  return detail;
}

// Two ranks of one step with a link between them.
inline void WriteSmallStore(const std::string& path) {
  auto writer = view::StoreWriter::Create(path);
  if (!writer) std::abort();
  json::Value facts = json::Value::Object(), first = json::Value::Object();
  std::vector<json::Value> place_facts(2, json::Value::Object());
  view::LinkRecord link{"all_reduce 0,1 0", false, 1, {}};
  for (size_t rank = 0; rank < 2; ++rank) {
    view::PlaceBuilder place = writer->Begin(0, static_cast<int64_t>(rank));
    for (const bool is_golden : {false, true}) AddSide(is_golden, place);
    for (uint32_t i = 1; i < kNodesOfSide; ++i) place.AddDetail(false, i, SmallDetail());
    if (!writer->Add(std::move(place))) std::abort();
    link.ends.push_back({{rank, false, 6}, view::StoredRole::kSendReceive, "differs"});
    place_facts[rank].Put("first", json::Value("Functional.linear.3.forward"));
    place_facts[rank].Put("target_tensors", json::Value("/nowhere"));
  }
  writer->AddLink(std::move(link));
  first.Put("place", json::Value(int64_t{1}));
  first.Put("name", json::Value("Functional.linear.3.forward"));
  facts.Put("kind", json::Value("compare"));
  facts.Put("mode", json::Value("statistics"));
  facts.Put("source", json::Value("plumbline"));
  facts.Put("first", std::move(first));
  if (!writer->Finish(facts, place_facts)) std::abort();
}

// Its bytes.
inline const std::string& SmallStoreText() {
  static const std::string text = [] {
    const std::string path =
        std::filesystem::temp_directory_path() / ("fuzz_small_store_" + std::to_string(getpid()));
    WriteSmallStore(path);
    auto read = ReadFile(path);
    std::filesystem::remove(path);
    if (!read) std::abort();
    return *read;
  }();
  return text;
}

// Everything that a page may ask, of some nodes, and against the store itself.
inline void AskAll(const view::ResultStore& store) {
  const std::string last = std::to_string(store.size() - 1);
  for (const std::string_view question : view::Questions()) {
    for (const std::string& node : {std::string("0"), std::string("7"), last}) {
      view::Parameters parameters;
      parameters.Set("node", node);
      parameters.Set("q", "level:error linear dtype:fp32");
      parameters.Set("value", "output.0");
      if (node == "7") parameters.Set("name", "Functional.linear.7.x.forward");
      (void)view::Answer(store, question, parameters, node == last ? &store : nullptr);
    }
  }
}

}  // namespace plumbline::fuzz

#endif  // PLUMBLINE_FUZZ_SMALL_STORE_H_
