// Every key that config.json may hold: what it does, and what its reference says about it.

#ifndef PLUMBLINE_CONFIG_OPTIONS_H_
#define PLUMBLINE_CONFIG_OPTIONS_H_

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "config/option_setters.h"

namespace plumbline::settings {

// A set of sections, one bit each.
using Sections = uint8_t;

struct Option {
  Sections sections;  // where it may stand; the same key may have another row in another section
  std::string_view name;
  Setter* apply;  // for values other than null
  // For docs/reference/config.md, in its Markdown. The default is what an absent key means: a JSON
  // value, bare or in backquotes, with an explanation in brackets, or words where no value says it.
  std::string_view type;
  std::string_view default_value;
  std::string_view meaning;
};

// All rows, static. Those of one section are applied in this order, which is the order in which
// errors are found.
std::span<const Option> Options();

// Empty for the top level, else the name of a task. No bit for a name without a section of options.
Sections SectionNamed(std::string_view name);
// The opposite, in a fixed order; the top level is "".
std::vector<std::string_view> NamesOf(Sections sections);

// One warning per key of a section that no row knows (nearest_key.h). At the top level the sections
// of all tasks may stand side by side.
void WarnOfUnknownKeys(std::string_view section, const Json& object,
                       std::vector<std::string>& warnings);

}  // namespace plumbline::settings

#endif  // PLUMBLINE_CONFIG_OPTIONS_H_
