#include "match/comm_trace.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace plumbline {
namespace {

CommCall CallOf(const std::string& name, const std::string& api, std::optional<int64_t> root) {
  CommCall call;
  call.name = name;
  call.api = api;
  call.root = root;
  return call;
}

TEST(CommTrace, KeepsNamesAndKinds) {
  std::vector<CommCall> calls;
  for (const int number : {0, 1, 7, 3, 1000000}) {
    calls.push_back(CallOf("Distributed.broadcast." + std::to_string(number) + ".forward",
                           "broadcast", number % 2));
  }
  calls.push_back(CallOf("another name", "broadcast", 0));
  calls.push_back(CallOf("Distributed.broadcast.007.forward", "broadcast", 0));
  calls[2].bad_input.emplace();
  const CommTrace trace(calls);
  ASSERT_EQ(trace.kinds().size(), 2U);
  CommTrace again(trace.kinds(), trace.other_names());
  std::vector<bool> bad;
  trace.ForEach([&](const CommTrace::Record& record) {
    bad.push_back(record.has_bad_input);
    EXPECT_EQ(trace.kinds()[record.kind].root, calls[bad.size() - 1].root);
    EXPECT_TRUE(again.Add(record));
  });
  EXPECT_EQ(bad, (std::vector<bool>{false, false, true, false, false, false, false}));
  for (size_t i = 0; i < calls.size(); ++i) {
    EXPECT_EQ(trace.NameOf(i), calls[i].name);
    EXPECT_EQ(again.NameOf(i), calls[i].name);
  }
  EXPECT_FALSE(again.Add({.kind = 2}));
  EXPECT_EQ(again.size(), calls.size());
}

}  // namespace
}  // namespace plumbline
