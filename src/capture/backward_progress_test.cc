#include "capture/backward_progress.h"

#include <gtest/gtest.h>

namespace plumbline::capture {
namespace {

// A call of two arguments and two results; `nodes` of its nodes send gradients to the arguments.
BackwardProgress TwoResults(int nodes) {
  BackwardProgress progress(2);
  progress.AddResult();
  progress.AddResult();
  progress.set_watched(2);
  for (int i = 0; i < nodes; ++i) progress.ExpectNode();
  return progress;
}

TEST(BackwardProgress, LayoutHasContainersInsideTheOutermost) {
  BackwardProgress progress(0);
  progress.AddResult();
  progress.OpenContainer();
  progress.AddResult();
  progress.AddResult();
  progress.CloseContainer();
  EXPECT_EQ(progress.layout(), ".(..)");
  EXPECT_EQ(progress.results(), 3u);
}

TEST(BackwardProgress, CompleteWhenEveryNodeHasSent) {
  BackwardProgress progress = TwoResults(2);
  progress.Open();
  EXPECT_TRUE(progress.expects_nodes());
  progress.NodeArrived();
  EXPECT_FALSE(progress.is_complete());
  progress.NodeArrived();
  EXPECT_TRUE(progress.is_complete());
}

TEST(BackwardProgress, EntryIsMadeOnce) {
  BackwardProgress progress = TwoResults(0);
  EXPECT_FALSE(progress.Close());
  progress.Open();
  EXPECT_TRUE(progress.Close());
  EXPECT_FALSE(progress.Close());
  progress.Open();  // a second pass through the same graph
  EXPECT_TRUE(progress.Close());
}

TEST(BackwardProgress, ResultBehindThoseThatWereTakenIsTooLate) {
  BackwardProgress progress = TwoResults(1);
  progress.Open();
  EXPECT_TRUE(progress.ResultArrived(0, false));
  EXPECT_FALSE(progress.has_all_results());
  EXPECT_TRUE(progress.TakeResults());
  EXPECT_FALSE(progress.TakeResults());
  EXPECT_FALSE(progress.ResultArrived(1, false));
}

TEST(BackwardProgress, SecondGradientOfAResultIsNotAnotherResult) {
  BackwardProgress progress = TwoResults(1);
  progress.Open();
  EXPECT_TRUE(progress.ResultArrived(0, false));
  EXPECT_TRUE(progress.ResultArrived(0, false));
  EXPECT_FALSE(progress.has_all_results());
  EXPECT_TRUE(progress.ResultArrived(1, false));
  EXPECT_TRUE(progress.has_all_results());
}

TEST(BackwardProgress, ResultThatIsAnArgumentIsAwaited) {
  BackwardProgress progress = TwoResults(1);
  progress.Pass(1, {0});
  EXPECT_TRUE(progress.IsPassed(0));
  EXPECT_FALSE(progress.IsPassed(1));
  progress.Open();
  ASSERT_TRUE(progress.ResultArrived(0, false));
  EXPECT_TRUE(progress.PassOn(0).empty());
  progress.NodeArrived();
  EXPECT_FALSE(progress.is_complete());
  ASSERT_TRUE(progress.ResultArrived(1, false));
  EXPECT_EQ(progress.PassOn(1), std::vector<size_t>{0});
  EXPECT_TRUE(progress.is_complete());
}

}  // namespace
}  // namespace plumbline::capture
