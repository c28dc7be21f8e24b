// The parameters of a question that a page asks.

#ifndef PLUMBLINE_VIEW_QUERY_PARAMETERS_H_
#define PLUMBLINE_VIEW_QUERY_PARAMETERS_H_

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "plumbline/result.h"

namespace plumbline::view {

// Texts by name, as they stood in an address after decoding. A plain value.
class Parameters {
 public:
  Parameters() = default;
  explicit Parameters(std::map<std::string, std::string, std::less<>> texts)
      : texts_(std::move(texts)) {}

  void Set(std::string_view name, std::string text) { texts_[std::string(name)] = std::move(text); }
  [[nodiscard]] bool Has(std::string_view name) const { return texts_.contains(name); }
  // Empty where there is none.
  [[nodiscard]] std::string_view Text(std::string_view name) const {
    const auto found = texts_.find(name);
    return found == texts_.end() ? std::string_view() : std::string_view(found->second);
  }
  // kInvalidArgument, which names the parameter, for a text that is no whole number between the
  // limits.
  [[nodiscard]] Result<int64_t> Number(std::string_view name, int64_t missing, int64_t lowest,
                                       int64_t highest) const;

 private:
  std::map<std::string, std::string, std::less<>> texts_;
};

}  // namespace plumbline::view

#endif  // PLUMBLINE_VIEW_QUERY_PARAMETERS_H_
