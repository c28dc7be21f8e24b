// Pairs made by hand as rules of a mapping file.

#ifndef PLUMBLINE_VIEW_SERVE_LAYER_RULES_H_
#define PLUMBLINE_VIEW_SERVE_LAYER_RULES_H_

#include <cstddef>
#include <string>

#include "view/serve/hand_matches.h"
#include "view/store/result_store.h"

namespace plumbline::view {

// A file for `plumb compare -lm` that pairs what was paired by hand, as far as a rule can say it:
// what a part is called below a module of a class. Pairs that were found under other names are in
// it, too, as the file takes the place of what finds them.
struct LayerMappingText {
  std::string yaml;
  size_t matched = 0, unmatched = 0;  // pairs that the file makes, and those that no rule can
};
LayerMappingText LayerMappingOf(const ResultStore& store, const HandMatches& matches);

// The same as the answer {"yaml", "matched", "unmatched"}.
std::string MappingAnswer(const LayerMappingText& mapping);

}  // namespace plumbline::view

#endif  // PLUMBLINE_VIEW_SERVE_LAYER_RULES_H_
