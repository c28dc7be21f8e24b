// The members of a first wrong call in every machine form, and their order.

#ifndef PLUMBLINE_REPORT_FIRST_WRONG_MEMBERS_H_
#define PLUMBLINE_REPORT_FIRST_WRONG_MEMBERS_H_

#include "plumbline/compare.h"

namespace plumbline::report {

// Calls visit(key, value) for each; values are std::string, std::vector<std::string> and bool.
// `call` is a FirstWrongCall, constant or not: readers assign to the values.
template <class Call, class Visit>
void VisitMembers(Call& call, const Visit& visit) {
  visit("name", call.name);
  visit("what", call.what);
  visit("item", call.item);
  visit("stack_line", call.stack_line);
  visit("stack", call.stack);
  visit("module_path", call.module_path);
  visit("enters_with_inputs", call.enters_with_inputs);
  visit("cause", call.cause);
  visit("cause_text", call.cause_text);
  visit("confidence", call.confidence);
}

}  // namespace plumbline::report

#endif  // PLUMBLINE_REPORT_FIRST_WRONG_MEMBERS_H_
