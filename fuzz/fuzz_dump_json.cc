// dump.json, stack.json and construct.json: any bytes are read or refused, and what was read can be
// written and read again without change.

#include <cstdlib>
#include <string>
#include <string_view>

#include "formats/json/dump_json.h"

namespace {

namespace dump_json = plumbline::dump_json;

std::string Text(const dump_json::DumpFile& file) {
  std::string out;
  dump_json::DumpWriter writer(out);
  writer.Begin(file.header);
  for (const plumbline::Call& call : file.calls) writer.Add(call);
  writer.End();
  return out;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto file = dump_json::ParseDump(text, true)) {
    const std::string once = Text(*file);
    const auto again = dump_json::ParseDump(once, false);
    if (!again || Text(*again) != once) std::abort();
  }
  if (const auto stack = dump_json::ParseStack(text)) {
    if (dump_json::ParseStack(dump_json::FormatStack(*stack)).value() != *stack) std::abort();
  }
  if (const auto tree = dump_json::ParseCallTree(text)) {
    const std::string once = dump_json::FormatConstruct(*tree);
    const auto again = dump_json::ParseCallTree(once);
    if (!again || dump_json::FormatConstruct(*again) != once) std::abort();
  }
  return 0;
}
