#include "watch/tracer/overflow_trace.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <utility>

namespace plumbline {
namespace {

TraceFrame Frame(std::string module, double max, bool ends_batch = false) {
  TraceFrame frame;
  frame.module = std::move(module);
  frame.type = "Linear";
  frame.ends_batch = ends_batch;
  frame.values.push_back(
      {"output", TracedKind::kTensor, {0.5, max, std::isnan(max), std::isinf(max)}});
  return frame;
}

TraceFrame Awaited(std::string module, bool ends_batch = false) {
  TraceFrame frame = Frame(std::move(module), 0, ends_batch);
  frame.values[0].is_awaited = true;
  return frame;
}

constexpr double kInf = std::numeric_limits<double>::infinity();

TEST(OverflowTrace, LinesOfAFrame) {
  TraceFrame frame;
  frame.module = "encoder.0";
  frame.type = "Block";
  frame.begins_batch = true;
  frame.batch = 3;
  frame.values = {{"weight", TracedKind::kTensor, {0, 65504}},
                  {"input[0]", TracedKind::kNothing},
                  {"output", TracedKind::kOther},
                  {"output[fine]", TracedKind::kTensor, {1, 2}, false, true},
                  {"output[loss]", TracedKind::kTensor, {1, kInf, false, true}, false, true}};
  EXPECT_EQ(TextOf(frame),
            "\n\n                  *** Starting batch number=3 ***\n"
            "abs min  abs max  metadata\n"
            "                  encoder.0 Block\n"
            "0.00e+00 6.55e+04 weight\n"
            "             None input[0]\n"
            "     not a tensor output\n"
            "1.00e+00      inf output[loss]");
  EXPECT_EQ(BadValuesOf(frame), std::vector<std::string>{"output[loss] has infs"});
}

TEST(OverflowTrace, KeepsTheLastFramesUpToTheBadOne) {
  OverflowTrace trace({.max_frames = 2});
  for (const char* name : {"a", "b", "c"}) {
    ASSERT_TRUE(trace.Take(Frame(name, 1)));
    EXPECT_TRUE(trace.Settle({}).text.empty());
  }
  ASSERT_TRUE(trace.Take(Frame("d", std::nan(""))));
  const TraceReport report = trace.Settle({});
  EXPECT_TRUE(report.is_found && report.is_written && trace.is_over());
  EXPECT_EQ(report.text.find("output has nans\n\nDetected inf/nan during batch_number=0\n"
                             "Last 2 forward frames:\nabs min  abs max  metadata\n"),
            0U);
  EXPECT_EQ(report.text.find(" b Linear"), std::string::npos);
  EXPECT_NE(report.text.find(" c Linear\n"), std::string::npos);
  EXPECT_NE(report.error.find("in d (output has nans)"), std::string::npos);
  // It is over: what comes later is a consequence.
  (void)trace.Take(Frame("e", kInf));
  EXPECT_TRUE(trace.Settle({}).text.empty());
  const Result<std::string> json = trace.Json("Net", 4);
  ASSERT_TRUE(json.has_value());
  EXPECT_NE(json->find("\"detected\""), std::string::npos);
  EXPECT_NE(json->find("NaN"), std::string::npos);
}

TEST(OverflowTrace, ADeviceIsAskedOncePerForward) {
  OverflowTrace trace({.max_frames = 3});
  EXPECT_FALSE(trace.Take(Awaited("a")));
  EXPECT_FALSE(trace.Take(Frame("b", 2)));
  EXPECT_FALSE(trace.Take(Awaited("c")));
  EXPECT_FALSE(trace.Take(Awaited("d")));
  EXPECT_TRUE(trace.Take(Awaited("", true)));
  EXPECT_EQ(trace.awaited(), 4U);
  const kernels::AbsExtremes fine{0, 1}, bad{0, kInf, false, true};
  const std::vector<kernels::AbsExtremes> read = {fine, bad, bad, bad};
  const TraceReport report = trace.Settle(read);
  EXPECT_TRUE(report.is_found);
  EXPECT_NE(report.error.find("in c "), std::string::npos) << "the first one, not the last";
  EXPECT_NE(report.text.find("Last 3 forward frames"), std::string::npos);
  EXPECT_EQ(report.text.find(" d Linear"), std::string::npos);
  EXPECT_EQ(trace.awaited(), 0U);
}

TEST(OverflowTrace, TracedBatchesArePrintedAndNotSearched) {
  OverflowTrace trace({.max_frames = 2, .traced_batches = {1}});
  (void)trace.Take(Frame("", 1, true));
  EXPECT_TRUE(trace.Settle({}).text.empty());
  (void)trace.Take(Frame("a", kInf));
  TraceReport report = trace.Settle({});
  EXPECT_FALSE(report.is_found);
  EXPECT_NE(report.text.find("*** Starting batch number=1 ***"), std::string::npos);
  (void)trace.Take(Frame("", kInf, true));
  report = trace.Settle({});
  EXPECT_TRUE(report.is_written && !report.is_found);
  EXPECT_TRUE(report.error.empty());
  // The ring begins anew behind a batch traced.
  (void)trace.Take(Frame("a", kInf));
  report = trace.Settle({});
  EXPECT_NE(report.text.find("batch_number=2\nLast 1 forward frames"), std::string::npos);
}

TEST(OverflowTrace, EndsBehindABatch) {
  OverflowTrace trace({.abort_after = 1});
  (void)trace.Take(Frame("", 1, true));
  EXPECT_TRUE(trace.Settle({}).error.empty());
  (void)trace.Take(Frame("a", 1));
  EXPECT_TRUE(trace.Settle({}).error.empty());
  (void)trace.Take(Frame("", 1, true));
  EXPECT_NE(trace.Settle({}).error.find("abort_after_batch_num is 1"), std::string::npos);
}

TEST(OverflowTrace, AForwardThatRaisedIsOver) {
  OverflowTrace trace({});
  EXPECT_FALSE(trace.Take(Awaited("a")));
  trace.Drop();
  EXPECT_EQ(trace.awaited(), 0U);
  (void)trace.Take(Frame("b", kInf));
  EXPECT_NE(trace.Settle({}).text.find("batch_number=1\nLast 1 "), std::string::npos);
}

}  // namespace
}  // namespace plumbline
