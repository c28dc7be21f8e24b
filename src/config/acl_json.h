// acl.json: what the ACL runtime of a device is told to dump. Documents print it with comments and
// without commas between its members, which the runtime refuses.

#ifndef PLUMBLINE_CONFIG_ACL_JSON_H_
#define PLUMBLINE_CONFIG_ACL_JSON_H_

#include <string>
#include <string_view>
#include <vector>

#include "plumbline/result.h"

namespace plumbline::acl_json {

// A text as JSON: the same lines, without comments ("#" and "//" up to the end of the line,
// "/*" up to "*/"), surplus commas and a byte order mark, with the missing commas.
struct Repaired {
  std::string text;
  std::vector<std::string> repairs;  // "line 4, column 17: a comma is missing", in their order
};
Repaired Repair(std::string_view text);

struct CheckedAclJson {
  std::string text;                   // that the runtime takes
  std::vector<std::string> repairs;   // of `text`; only where they were allowed
  std::vector<std::string> errors;    // of entries, one sentence each
  std::vector<std::string> warnings;  // entries without effect
};

// kInvalidArgument, with line and column: it is no JSON; where it can be repaired (is_lenient),
// that is no error.
Result<CheckedAclJson> Check(std::string_view text, bool is_lenient);

}  // namespace plumbline::acl_json

#endif  // PLUMBLINE_CONFIG_ACL_JSON_H_
