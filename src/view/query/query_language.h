// The text that a page searches nodes with (docs/design/viewer.md, "Queries"), parsed.

#ifndef PLUMBLINE_VIEW_QUERY_QUERY_LANGUAGE_H_
#define PLUMBLINE_VIEW_QUERY_QUERY_LANGUAGE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace plumbline::view {

enum class QueryField : uint8_t {
  kName,  // a part of it
  kLevel,
  kWorst,
  kOverflow,
  kType,
  kOperation,
  kDirection,
  kRank,
  kStep,
  kMicroStep,
  kDType,
  kShape,
  kSide,
  kFlag,
  kIs,
  kError,
  kInputError,
  kSize,
  kDepth,
  kErrors,
};

enum class QuerySign : uint8_t { kEqual, kLess, kAtMost, kMore, kAtLeast };

// kIs: bits of `choices`.
inline constexpr uint32_t kIsLeaf = 1, kIsMatched = 2, kIsUnmatched = 4;
// kSide.
inline constexpr uint32_t kSideTarget = 1, kSideGolden = 2;

// One condition. What belongs to its field is set.
struct QueryTerm {
  QueryField field = QueryField::kName;
  bool is_negated = false;
  uint32_t choices = 0;  // bits by the value of an enumeration; of kFlag those of node_flag
  std::vector<int64_t> numbers{};
  std::vector<std::string> texts{};  // without capital letters
  QuerySign sign = QuerySign::kEqual;
  double limit = 0;
};

struct QueryFault {
  size_t at = 0;  // characters before it, as a page counts them (UTF-16)
  std::string message;
};

// All terms must hold; none: every node.
struct ParsedQuery {
  std::vector<QueryTerm> terms;
  std::optional<QueryFault> fault;
};

ParsedQuery ParseQuery(std::string_view query);

// "bfloat16" for "bf16", "torch.bfloat16" and "BFloat16".
std::string PlainDType(std::string_view dtype);
// "[2,8]" for "[2, 8]" and "2,8".
std::string PlainShape(std::string_view shape);

}  // namespace plumbline::view

#endif  // PLUMBLINE_VIEW_QUERY_QUERY_LANGUAGE_H_
