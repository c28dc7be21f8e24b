// Rule files: any bytes are a rule or an error, never a crash; what is read groups and resolves.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "formats/acl/fusion_rule.h"
#include "operators/pair_operators.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto rule = plumbline::fusion::Parse({reinterpret_cast<const char*>(data), size});
  if (!rule) return 0;
  size_t grouped = 0;
  for (const auto& group : plumbline::operators::GroupsOf(*rule)) grouped += group.operators.size();
  if (grouped != rule->operators.size()) std::abort();
  const plumbline::operators::RuleIndex index(*rule);
  for (const auto& op : rule->operators) {
    (void)index.IsBetweenQuantAndDequant(op);
    for (const auto& input : op.inputs) (void)index.OriginOf(input);
  }
  return 0;
}
