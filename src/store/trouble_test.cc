#include "store/trouble.h"

#include <gtest/gtest.h>

namespace plumbline {
namespace {

Error Failure(const char* message) { return Error(ErrorCode::kIo, message); }

TEST(Trouble, DirectoryAndCauseAreSaidOnce) {
  Trouble trouble;
  EXPECT_TRUE(trouble.Report("a", Failure("a/x: write: No space left"), ""));
  EXPECT_FALSE(trouble.Report("a", Failure("a/y: write: No space left"), ""));
  EXPECT_FALSE(trouble.Report("b", Failure("b/x: sync: No space left"), ""));
  EXPECT_TRUE(trouble.Report("c", Failure("c: was removed"), ""));
}

TEST(Trouble, CauseThatWasHeldBackIsSaidOfTheNextDirectory) {
  Trouble trouble;
  EXPECT_TRUE(trouble.Report("a", Failure("a: was removed"), ""));
  EXPECT_FALSE(trouble.Report("a", Failure("a: create directory: File exists"), ""));
  EXPECT_TRUE(trouble.Report("b", Failure("a: create directory: File exists"), ""));
  EXPECT_FALSE(trouble.Report("c", Failure("a: create directory: File exists"), ""));
}

}  // namespace
}  // namespace plumbline
