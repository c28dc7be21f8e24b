#include "capture/pending_calls.h"

#include <gtest/gtest.h>

#include <string>

#include "capture/recorder_for_test.h"

namespace plumbline::capture {
namespace {

using testing::RefTo;
using Calls = PendingCalls<std::string>;

// References to handles.
template <class... Handle>
std::vector<ObjectRef> Handles(Handle*... handles) {
  std::vector<ObjectRef> refs;
  (refs.push_back(RefTo(handles)), ...);
  return refs;
}

TEST(PendingCalls, CompleteWhenTheLastHandleWasWaitedFor) {
  int first = 0, second = 0;
  Calls calls;
  calls.Add("gather", Handles(&first, &second));
  EXPECT_FALSE(calls.Complete(&first).complete.has_value());
  EXPECT_EQ(first, 0);
  EXPECT_EQ(calls.Complete(&second).complete, "gather");
  EXPECT_FALSE(calls.Awaits(&second));
  EXPECT_EQ(second, 0);
}

TEST(PendingCalls, SecondWaitFindsNothing) {
  int handle = 0;
  Calls calls;
  calls.Add("gather", Handles(&handle));
  EXPECT_TRUE(calls.Complete(&handle).complete.has_value());
  const Calls::Completion again = calls.Complete(&handle);
  EXPECT_EQ(again.handle.get(), nullptr);
  EXPECT_FALSE(again.complete.has_value());
}

TEST(PendingCalls, HandleStaysThatOfTheFirstCall) {
  int handle = 0;
  Calls calls;
  calls.Add("first", Handles(&handle));
  calls.Add("second", Handles(&handle));
  EXPECT_EQ(handle, 1);
  EXPECT_EQ(calls.Complete(&handle).complete, "first");
}

TEST(PendingCalls, FoundInTheOrderInWhichTheyBegan) {
  Calls calls;
  for (const char* name : {"a", "b", "c"}) calls.Add(name, {});
  std::string order;
  for (const uint64_t id : calls.Find([](const auto& handles) { return handles.empty(); })) {
    order += calls.Take(id)->call;
  }
  EXPECT_EQ(order, "abc");
  EXPECT_FALSE(calls.Take(0).has_value());
}

TEST(PendingCalls, SweepIsDueAfterMoreCallsThanTheLastOneLeft) {
  Calls calls;
  for (int i = 0; i < 63; ++i) calls.Add("call", {});
  EXPECT_FALSE(calls.is_sweep_due());
  calls.Add("call", {});
  EXPECT_TRUE(calls.is_sweep_due());
  calls.EndSweep();
  EXPECT_FALSE(calls.is_sweep_due());
}

}  // namespace
}  // namespace plumbline::capture
