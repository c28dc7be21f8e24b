// For tests only: random results, as a store and as plain lists that are looked through one by one.

#ifndef PLUMBLINE_VIEW_STORE_STORE_FOR_TEST_H_
#define PLUMBLINE_VIEW_STORE_STORE_FOR_TEST_H_

#include <fmt/format.h>

#include <cmath>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "base/file/test_directory.h"
#include "view/store/result_store.h"
#include "view/store/store_writer.h"

namespace plumbline::view::for_test {

struct PlainNode {
  std::string name;
  uint32_t parent = kNoNode, partner = kNoNode;  // ids of the store
  NodeRecord record{};
  std::string dtype, shape;  // of its one value; empty: it has no detail
  bool is_golden = false;
  size_t place = 0;
};

// Names that a page, a shell or a parser may stumble over.
inline std::string HostileName(std::mt19937& random) {
  static const std::vector<std::string> kParts = {
      "<script>", "\"q\"", "\xF0\x9F\x98\x80",     "\xE4\xB8\xAD",       "\xFF\xFE", "\\",
      "a b",      "'",     std::string(4096, 'x'), std::string("\0z", 2)};
  return "Module." + kParts[random() % kParts.size()] + ".Net.forward.";
}

inline std::string RandomName(std::mt19937& random, size_t number) {
  static const std::vector<std::string> kKinds = {"Functional.linear", "Tensor.matmul",
                                                  "Torch.softmax"};
  const size_t kind = random() % 8;
  if (kind == 0) return HostileName(random) + std::to_string(number);
  if (kind < 4) return fmt::format("{}.{}.forward", kKinds[kind - 1], number);
  if (kind < 6) return fmt::format("Module.layers.{}.Mlp.backward.0", number);
  return fmt::format("Module.layers.{}.Mlp.forward.0", number);
}

// A result of `places` ranks with about `count` nodes a side.
class RandomResult {
 public:
  RandomResult(uint32_t seed, size_t places, size_t count) : random_(seed) {
    auto writer = StoreWriter::Create(path());
    std::vector<json::Value> facts(places, json::Value::Object());
    for (size_t i = 0; i < places; ++i) {
      PlaceBuilder place = writer->Begin(0, static_cast<int64_t>(i));
      Fill(i, count, place);
      EXPECT_TRUE(writer->Add(std::move(place)));
    }
    json::Value all = json::Value::Object();
    all.Put("kind", json::Value("compare"));
    const Status done = writer->Finish(all, facts);
    EXPECT_TRUE(done) << (done ? "" : done.error().message());
  }

  [[nodiscard]] std::string path() const { return directory_.Path("result"); }
  [[nodiscard]] std::shared_ptr<const ResultStore> Open() const {
    auto store = ResultStore::Open(path());
    EXPECT_TRUE(store) << (store ? "" : store.error().message());
    return store ? *store : nullptr;
  }
  // By id.
  [[nodiscard]] const std::vector<PlainNode>& nodes() const { return nodes_; }
  [[nodiscard]] bool IsBelow(uint32_t node, uint32_t top) const {
    while (node != kNoNode && node != top) node = nodes_[node].parent;
    return node == top;
  }

 private:
  void Fill(size_t place, size_t count, PlaceBuilder& builder) {
    const size_t begin = nodes_.size();
    std::vector<PlainNode> sides[2];
    for (const bool is_golden : {false, true}) {
      std::vector<PlainNode>& side = sides[is_golden ? 1 : 0];
      std::vector<uint32_t> open;
      for (size_t i = 0; i < count; ++i) {
        PlainNode node;
        node.place = place;
        node.is_golden = is_golden;
        node.name = i == 0 ? "DefaultModel" : RandomName(random_, i);
        while (open.size() > 1 && random_() % 3 == 0) open.pop_back();
        node.parent = open.empty() ? kNoNode : open.back();
        node.record.type = i == 0 ? StoredType::kRoot : static_cast<StoredType>(random_() % 2);
        node.record.level = static_cast<NodeLevel>(random_() % 4);
        node.record.overflow = static_cast<StoredOverflow>(random_() % 4);
        node.record.micro_step = static_cast<int32_t>(random_() % 3);
        node.record.flags = static_cast<uint16_t>(random_() % 16);
        if (random_() % 2 == 0) node.record.error = static_cast<float>(random_() % 100) / 100;
        if (random_() % 4 != 0) {
          node.dtype = random_() % 2 == 0 ? "torch.float32" : "torch.bfloat16";
          node.shape = fmt::format("[{}, 8]", random_() % 3);
        }
        open.push_back(static_cast<uint32_t>(i));
        side.push_back(std::move(node));
      }
    }
    // Every second node pairs with the golden one at the same position.
    for (size_t i = 0; i < count; ++i) {
      if (i != 0 && i % 2 != 0) continue;
      sides[0][i].partner = static_cast<uint32_t>(i);
      sides[1][i].partner = static_cast<uint32_t>(i);
    }
    Add(sides, begin, builder);
  }

  void Add(std::vector<PlainNode> (&sides)[2], size_t begin, PlaceBuilder& builder) {
    for (const bool is_golden : {false, true}) {
      for (PlainNode& node : sides[is_golden ? 1 : 0]) {
        node.record.name = node.name;
        node.record.parent = node.parent;
        node.record.partner = node.partner;
        const std::vector<std::string_view> frames = {
            "File a.py", node.name.substr(0, 8) > "Module." ? "x" : "y"};
        node.record.stack = builder.AddStack(frames);
        builder.AddNode(is_golden, node.record);
      }
    }
    for (const bool is_golden : {false, true}) {
      std::vector<PlainNode>& side = sides[is_golden ? 1 : 0];
      for (size_t i = 0; i < side.size(); ++i) {
        const bool has_own = !is_golden || side[i].partner == kNoNode;
        if (!has_own || side[i].dtype.empty()) continue;
        StoredValue value;
        value.name = "input.0";
        (is_golden ? value.golden : value.target) =
            ValueSide{"torch.Tensor", side[i].dtype, side[i].shape, {0.5, int64_t{1} << 60, true}};
        NodeDetail detail;
        detail.values = {value};
        builder.AddDetail(is_golden, static_cast<uint32_t>(i), detail);
      }
    }
    const auto count = static_cast<uint32_t>(sides[0].size());
    for (const bool is_golden : {false, true}) {
      for (PlainNode& node : sides[is_golden ? 1 : 0]) {
        const auto first = static_cast<uint32_t>(begin) + (is_golden ? count : 0);
        const auto other = static_cast<uint32_t>(begin) + (is_golden ? 0 : count);
        if (node.parent != kNoNode) node.parent += first;
        if (node.partner != kNoNode) node.partner += other;
        nodes_.push_back(std::move(node));
      }
    }
  }

  plumbline::testing::TestDirectory directory_;
  std::mt19937 random_;
  std::vector<PlainNode> nodes_;
};

}  // namespace plumbline::view::for_test

#endif  // PLUMBLINE_VIEW_STORE_STORE_FOR_TEST_H_
