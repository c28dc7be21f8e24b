// Which known key an unknown one was meant to be.

#ifndef PLUMBLINE_CONFIG_NEAREST_KEY_H_
#define PLUMBLINE_CONFIG_NEAREST_KEY_H_

#include <span>
#include <string>
#include <string_view>

namespace plumbline::settings {

// Warning about `key` of `section` (empty: the top level): "section.key: unknown key, ignored. Did
// you mean "known"?", by edit distance. Long keys and an empty `known` get no guess.
std::string UnknownKeyWarning(std::string_view section, std::string_view key,
                              std::span<const std::string_view> known);

}  // namespace plumbline::settings

#endif  // PLUMBLINE_CONFIG_NEAREST_KEY_H_
