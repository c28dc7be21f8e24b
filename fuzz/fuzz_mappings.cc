// Mapping files of a comparison: every reader on the same bytes.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "base/text/text_parts.h"
#include "input_file.h"
#include "match/layer_mapping.h"
#include "match/mapping_file.h"

namespace {

// Names of a recording are UTF-8; others pair with nothing.
bool AreNames(const plumbline::match::TextPairs& pairs) {
  for (const auto& [target, golden] : pairs) {
    if (!plumbline::IsUtf8(target) || !plumbline::IsUtf8(golden)) return false;
  }
  return true;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string& path = InputFile(data, size);
  (void)plumbline::match::ReadApiMapping(path);
  (void)plumbline::match::ReadCellMapping(path);
  (void)plumbline::match::ReadLayerMapping(path);
  const auto pairs = plumbline::match::ReadDataMapping(path);
  if (!pairs || !AreNames(*pairs)) return 0;
  // What compare writes for -dm reads back as the same pairs.
  const std::string text = plumbline::match::DataMappingYaml(*pairs);
  const std::string& written =
      InputFile(reinterpret_cast<const uint8_t*>(text.data()), text.size());
  const auto again = plumbline::match::ReadDataMapping(written);
  if (!again || *again != *pairs) std::abort();
  return 0;
}
