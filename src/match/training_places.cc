// Where a module stands: PlaceOfModule().

#include <algorithm>
#include <array>

#include "base/text_parts.h"
#include "match/training_match.h"
#include "record/call_name.h"

namespace plumbline::match {
namespace {

using Entry = std::pair<std::string_view, std::string_view>;

constexpr std::array<Entry, 5> kFsdp = {{{"q_proj", "qkv_proj"},
                                         {"k_proj", "qkv_proj"},
                                         {"v_proj", "qkv_proj"},
                                         {"gate_proj", "gate_up_proj"},
                                         {"up_proj", "gate_up_proj"}}};

constexpr std::array<Entry, 10> kMegatron = {{{"word_embeddings", "embed_tokens"},
                                              {"self_attention", "self_attn"},
                                              {"linear_qkv", "qkv_proj"},
                                              {"q_layernorm", "q_norm"},
                                              {"k_layernorm", "k_norm"},
                                              {"core_attention", "attn"},
                                              {"linear_proj", "o_proj"},
                                              {"router", "gate"},
                                              {"linear_fc1", "gate_up_proj"},
                                              {"linear_fc2", "down_proj"}}};

// What stands around a model or a part of it.
constexpr std::array<std::string_view, 3> kWrappers = {"_fsdp_wrapped_module", "_orig_mod",
                                                       "_checkpoint_wrapped_module"};

std::string_view Mapped(std::string_view field, const TrainingRules& rules) {
  const auto found = std::ranges::find(rules.modules, field, &TextPairs::value_type::first);
  return found == rules.modules.end() ? field : std::string_view(found->second);
}

}  // namespace

TrainingRules RulesOfBackend(TrainingBackend backend, TextPairs user) {
  TrainingRules rules{backend, std::move(user)};
  const auto add = [&](const auto& table) {
    for (const auto& [training, inference] : table) rules.modules.emplace_back(training, inference);
  };
  if (backend == TrainingBackend::kFsdp) {
    add(kFsdp);
  } else {
    add(kMegatron);
  }
  return rules;
}

std::set<std::string, std::less<>> WrapperPaths(const std::vector<CallItems>& calls) {
  std::set<std::string, std::less<>> paths;
  for (const CallItems& call : calls) {
    const auto name = ParseCallName(call.name);
    if (!name || name->form == CallName::Form::kApi) continue;
    for (const std::string_view wrapper : kWrappers) {
      size_t at = name->path.find(wrapper);
      for (; at != std::string_view::npos; at = name->path.find(wrapper, at + 1)) {
        paths.emplace(name->path.substr(0, at == 0 ? 0 : at - 1));
      }
    }
  }
  return paths;
}

ModulePlace PlaceOfModule(std::string_view path, std::string_view class_name,
                          const TrainingRules& rules) {
  std::vector<std::string_view> fields;
  if (!path.empty()) fields = SplitAt(path, '.');
  std::erase_if(fields, [](std::string_view field) {
    return std::ranges::find(kWrappers, field) != kWrappers.end();
  });
  ModulePlace place;
  auto from = fields.begin();
  for (size_t i = 0; i + 1 < fields.size(); ++i) {
    const std::string_view number = fields[i + 1];
    if (fields[i] != "layers" || !IsDigits(number)) continue;
    if (const auto layer = ParseNatural(number)) place.layer = *layer;
    from = fields.begin() + static_cast<std::ptrdiff_t>(i) + 2;
  }
  if (place.layer < 0) {
    from = std::find_if_not(fields.begin(), fields.end(), [](std::string_view field) {
      return field == "model" || field == "module" || IsDigits(field);
    });
  }
  if (fields.end() - from > 1) ++from;
  for (; from != fields.end(); ++from) {
    if (!place.module.empty()) place.module += '.';
    place.module += Mapped(*from, rules);
  }
  if (place.module.empty() && place.layer < 0) place.module = class_name;
  return place;
}

}  // namespace plumbline::match
