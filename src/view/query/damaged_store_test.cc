#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <string_view>

#include "base/file/file.h"
#include "view/query/answers.h"
#include "view/store/store_for_test.h"
#include "view/store/store_format.h"

namespace plumbline::view {
namespace {

using for_test::RandomResult;

std::string WithBytes(std::string file, size_t at, std::string_view bytes) {
  return file.replace(at, bytes.size(), bytes);
}

// Whether a file with this text is refused, or answers whatever is asked without harm.
void ExpectHarmless(const std::string& text, const std::string& path) {
  ASSERT_TRUE(WriteFileAtomically(path, text, false));
  const auto store = ResultStore::Open(path);
  if (!store) {
    EXPECT_EQ(store.error().code(), ErrorCode::kCorrupt);
    EXPECT_EQ(store.error().message().find('\n'), std::string::npos);
    return;
  }
  for (const std::string_view question : Questions()) {
    for (const std::string node : {"0", "7", "13"}) {
      Parameters parameters;
      parameters.Set("node", node);
      parameters.Set("q", "level:error a");
      parameters.Set("value", "input.0");
      (void)Answer(**store, question, parameters);
    }
  }
}

TEST(ResultStore, SurvivesDamageInEverySection) {
  const RandomResult result(7, 2, 60);
  const std::string whole = *ReadFile(result.path());
  StoreHeader header;
  std::memcpy(&header, whole.data(), sizeof(header));
  const testing::TestDirectory directory;
  for (const SectionRow& section : header.sections) {
    for (const std::string_view bytes : {"\xFF\xFF\xFF\xFF", "\0\0\0\0", "\x01\x02\x03\x7F"}) {
      for (const uint64_t at : {uint64_t{0}, section.size / 2, section.size - 4}) {
        if (section.size < 4) continue;
        ExpectHarmless(WithBytes(whole, section.offset + at, {bytes.data(), 4}),
                       directory.Path("damaged"));
      }
    }
  }
}

TEST(ResultStore, SurvivesDamageInTheHeader) {
  const RandomResult result(8, 1, 40);
  const std::string whole = *ReadFile(result.path());
  const testing::TestDirectory directory;
  for (size_t at = 8; at + 4 <= sizeof(StoreHeader); at += 4) {
    ExpectHarmless(WithBytes(whole, at, "\xFF\xFF\xFF\x7F"), directory.Path("damaged"));
  }
}

}  // namespace
}  // namespace plumbline::view
