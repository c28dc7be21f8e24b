#include "precheck/api_inventory.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <span>
#include <unordered_set>
#include <utility>

#include "base/text/json.h"
#include "base/text/text_parts.h"

namespace plumbline::precheck {

// python/plumbline/pytorch/apis.json, compiled in by CMakeLists.txt: the recorder and the pre-check
// share one list.
extern const std::string_view kApiLists;

namespace {

using Names = std::unordered_set<std::string>;

// A type of calls, and the lists of apis.json that hold its APIs. The newer ones are what the
// newest release of upstream records besides.
struct TypeOfCalls {
  std::string_view type;
  std::array<std::string_view, 2> lists;
  bool in_filters;  // black and white lists may name its APIs
};
constexpr TypeOfCalls kTypes[] = {
    {"Functional", {"functional", ""}, true},
    {"Tensor", {"tensor", "tensor_newer"}, true},
    {"Torch", {"torch", "torch_newer"}, true},
    {"NPU", {"torch_npu", "torch_npu_newer"}, true},
    {"Aten", {"aten", ""}, false},
    {"VF", {"_VF", ""}, false},
};

Names NamesOf(const json::Value& lists, const TypeOfCalls& type) {
  Names names;
  for (const std::string_view list : type.lists) {
    const json::Value* const found = list.empty() ? nullptr : lists.Find(list);
    if (found == nullptr || found->AsList() == nullptr) continue;
    for (const json::Value& name : *found->AsList()) {
      if (name.AsText() != nullptr) names.insert(*name.AsText());
    }
  }
  return names;
}

const std::map<std::string_view, Names>& Inventory() {
  static const std::map<std::string_view, Names> kInventory = [] {
    std::map<std::string_view, Names> inventory;
    const Result<json::Value> lists = json::Value::Parse(kApiLists);
    for (const TypeOfCalls& type : kTypes) {
      inventory.emplace(type.type, lists ? NamesOf(*lists, type) : Names());
    }
    return inventory;
  }();
  return kInventory;
}

bool HasSorted(std::span<const std::string_view> sorted, std::string_view name) {
  return std::ranges::binary_search(sorted, name);
}

// All sorted.
constexpr std::string_view kRandom[] = {"bernoulli",
                                        "bernoulli_",
                                        "cauchy_",
                                        "exponential_",
                                        "fractional_max_pool2d",
                                        "fractional_max_pool2d_with_indices",
                                        "fractional_max_pool3d",
                                        "fractional_max_pool3d_with_indices",
                                        "geometric_",
                                        "gumbel_softmax",
                                        "log_normal_",
                                        "multinomial",
                                        "normal",
                                        "normal_",
                                        "npu_sim_exponential_",
                                        "npu_top_k_top_p_sample",
                                        "poisson",
                                        "rand",
                                        "rand_like",
                                        "randint",
                                        "randint_like",
                                        "randn",
                                        "randn_like",
                                        "random_",
                                        "randperm",
                                        "uniform",
                                        "uniform_"};
constexpr std::string_view kNeverRun[] = {
    "empty", "empty_like", "empty_strided", "empty_with_format", "new_empty", "new_empty_strided",
    "to"};

// Work grows faster than the arguments do: products of matrices, convolutions, attention.
constexpr double kWorkOfProducts = 32;
constexpr std::string_view kProducts[] = {
    "__matmul__", "__rmatmul__", "addbmm", "addbmm_",    "addmm",        "addmm_", "baddbmm",
    "baddbmm_",   "bilinear",    "bmm",    "cdist",      "chain_matmul", "einsum", "inner",
    "linear",     "matmul",      "mm",     "npu_linear", "tensordot"};
constexpr std::string_view kHeavyParts[] = {"attention", "conv", "lstm", "gru", "linalg.", "svd"};
constexpr double kWorkOfHeavyParts = 64;

}  // namespace

std::optional<ApiName> ParseApiName(std::string_view call_name) {
  const std::vector<std::string_view> parts = SplitAt(call_name, '.');
  constexpr size_t kPlainParts = 3, kPrefixedParts = 4;
  if (parts.size() != kPlainParts && parts.size() != kPrefixedParts) return std::nullopt;
  if (std::ranges::any_of(parts, [](std::string_view part) { return part.empty(); })) {
    return std::nullopt;
  }
  const std::string_view number = parts.back();
  if (!std::ranges::all_of(number, [](char c) { return c >= '0' && c <= '9'; })) {
    return std::nullopt;
  }
  const std::string_view type = parts.front();
  const size_t begin = type.size() + 1;
  return ApiName{type, call_name.substr(begin, call_name.size() - begin - number.size() - 1)};
}

std::optional<Skip> WhyNotCallable(std::string_view call_name) {
  const std::optional<ApiName> name = ParseApiName(call_name);
  if (!name) {
    return Skip{SkipCause::kUnsupportedType,
                fmt::format("{} is no name of an API call (expected type, one or two names and a "
                            "number, as in Torch.linalg.inv.0)",
                            call_name)};
  }
  const auto found = Inventory().find(name->type);
  if (found == Inventory().end()) {
    const bool communicates = name->type == "Distributed" || name->type == "MindSpeed";
    return Skip{SkipCause::kUnsupportedType,
                communicates ? fmt::format("calls of type {} need other processes or libraries and "
                                           "are not run again",
                                           name->type)
                             : fmt::format("calls of type {} are not supported", name->type)};
  }
  if (found->second.count(std::string(name->api)) > 0) return std::nullopt;
  return Skip{SkipCause::kNotInInventory,
              fmt::format("{} is not among the {} APIs of type {} that are known", name->api,
                          found->second.size(), name->type)};
}

bool IsRandom(std::string_view api) { return HasSorted(kRandom, api); }

bool IsNeverRun(std::string_view api) { return HasSorted(kNeverRun, api); }

double WorkPerByte(std::string_view api) {
  if (HasSorted(kProducts, api)) return kWorkOfProducts;
  const bool is_heavy = std::ranges::any_of(kHeavyParts, [api](std::string_view part) {
    return api.find(part) != std::string_view::npos;
  });
  return is_heavy ? kWorkOfHeavyParts : 1;
}

plumbline::Status CheckApiNames(std::string_view field, const std::vector<std::string>& names) {
  std::vector<std::string> unknown;
  for (const std::string& name : names) {
    const bool is_known = std::ranges::any_of(kTypes, [&](const TypeOfCalls& type) {
      return type.in_filters && Inventory().at(type.type).count(name) > 0;
    });
    if (!is_known) unknown.push_back(name);
  }
  if (unknown.empty()) return {};
  return Error(ErrorCode::kInvalidArgument,
               fmt::format("{}: {} {} (expected bare names of APIs of torch.nn.functional, "
                           "torch.Tensor, torch or torch_npu, such as matmul or linalg.inv)",
                           field, fmt::join(unknown, ", "),
                           unknown.size() == 1 ? "is no API that is checked"
                                               : "are no APIs that are checked"));
}

}  // namespace plumbline::precheck
