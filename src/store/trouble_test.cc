#include "store/trouble.h"

#include <gtest/gtest.h>

namespace plumbline {
namespace {

Error Failure(const char* message) { return Error(ErrorCode::kIo, message); }

TEST(Trouble, DirectoryAndCauseAreSaidOnce) {
  Trouble trouble;
  EXPECT_TRUE(trouble.Report(Harm::kJournal, "a", Failure("a/x: write: No space left"), ""));
  EXPECT_FALSE(trouble.Report(Harm::kJournal, "a", Failure("a/y: write: No space left"), ""));
  EXPECT_FALSE(trouble.Report(Harm::kJournal, "b", Failure("b/x: sync: No space left"), ""));
  EXPECT_TRUE(trouble.Report(Harm::kPlace, "c", Failure("c: was removed"), ""));
}

TEST(Trouble, EachHarmOfOneCauseIsNews) {
  Trouble trouble;
  const Error full = Failure("a/x: write: No space left");
  for (const Harm harm : {Harm::kTensors, Harm::kJournal, Harm::kFiles, Harm::kSteps}) {
    EXPECT_TRUE(trouble.Report(harm, "a", full, ""));
    EXPECT_FALSE(trouble.Report(harm, "b", full, ""));
  }
}

TEST(Trouble, OfStepsSaysItAll) {
  Trouble trouble;
  const Error full = Failure("a: make: File exists");
  EXPECT_TRUE(trouble.Report(Harm::kSteps, "a", full, ""));
  EXPECT_FALSE(trouble.Report(Harm::kFiles, "a/step1", full, ""));
  EXPECT_FALSE(trouble.Report(Harm::kJournal, "a/step1", full, ""));
  EXPECT_TRUE(trouble.Report(Harm::kTensors, "a/step1", full, ""));
}

TEST(Trouble, CauseThatWasHeldBackIsSaidOfTheNextDirectory) {
  Trouble trouble;
  EXPECT_TRUE(trouble.Report(Harm::kPlace, "a", Failure("a: was removed"), ""));
  EXPECT_FALSE(trouble.Report(Harm::kPlace, "a", Failure("a: create directory: File exists"), ""));
  EXPECT_TRUE(trouble.Report(Harm::kPlace, "b", Failure("a: create directory: File exists"), ""));
  EXPECT_FALSE(trouble.Report(Harm::kPlace, "c", Failure("a: create directory: File exists"), ""));
}

}  // namespace
}  // namespace plumbline
