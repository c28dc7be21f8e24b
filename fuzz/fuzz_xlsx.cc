// Workbooks: the bytes are the file, or, behind a first byte 'x', the XML of its sheet and, behind
// a zero byte, of its shared texts (checksums of an archive hide the XML from mutation).

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "formats/pytorch/zip.h"
#include "formats/table/xlsx.h"
#include "input_file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view text(reinterpret_cast<const char*>(data), size);
  std::string archive;
  if (text.starts_with('x')) {
    text.remove_prefix(1);
    const size_t zero = text.find('\0');
    plumbline::zip::Writer writer;
    writer.Add("xl/worksheets/sheet1.xml", text.substr(0, zero));
    if (zero != std::string_view::npos) writer.Add("xl/sharedStrings.xml", text.substr(zero + 1));
    archive = writer.text() + writer.Directory();
    text = archive;
  }
  const std::string& path = InputFile(reinterpret_cast<const uint8_t*>(text.data()), text.size());
  size_t characters = 0;
  (void)plumbline::xlsx::ReadRows(path, [&](size_t, std::span<const plumbline::xlsx::Cell> cells) {
    for (const auto& cell : cells) characters += cell.text.size();
    return characters < (size_t{1} << 22);  // wide rows of few bytes only cost time
  });
  return 0;
}
