// A result store with other bytes in any of its sections is refused, or answers every question
// without harm. Most of a store is a table of fixed size, so that the input is what is changed: the
// section (the header is the last one), where in it, how many bytes, and these.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>

#include "input_file.h"
#include "small_store.h"
#include "view/store/store_format.h"

namespace {

using plumbline::fuzz::SmallStoreText;
using plumbline::view::StoreHeader;

void Change(std::span<const uint8_t> input, std::string& file) {
  StoreHeader header;
  std::memcpy(&header, SmallStoreText().data(), sizeof(header));
  constexpr size_t kHead = 4, kMostBytes = 16;
  while (input.size() > kHead) {
    const size_t section = input[0] % (header.sections.size() + 1);
    const bool is_header = section == header.sections.size();
    const uint64_t begin = is_header ? 0 : header.sections[section].offset;
    const uint64_t size = is_header ? sizeof(header) : header.sections[section].size;
    const uint64_t offset = input[1] | uint64_t{input[2]} << 8;
    const size_t count = std::min<size_t>(input[3] % kMostBytes, input.size() - kHead);
    for (size_t i = 0; size > 0 && i < count; ++i) {
      file[begin + (offset + i) % size] = static_cast<char>(input[kHead + i]);
    }
    input = input.subspan(kHead + count);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string file = SmallStoreText();
  Change({data, size}, file);
  const auto store = plumbline::view::ResultStore::Open(
      InputFile(reinterpret_cast<const uint8_t*>(file.data()), file.size()));
  if (store) plumbline::fuzz::AskAll(**store);
  return 0;
}
