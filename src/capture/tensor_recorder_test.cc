#include "capture/tensor_recorder.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>

#include "capture/recorder_for_test.h"

namespace plumbline::capture {
namespace {

using testing::RefTo;
using testing::TestProgram;

// Six floats as a matrix of two rows.
struct Matrix {
  std::array<float, 6> values = {1, 2, 3, 4, 5, 6};
  std::array<int64_t, 2> sizes = {2, 3};
  std::array<int64_t, 2> strides = {3, 1};
  [[nodiscard]] TensorView view() const {
    return {DType::kFloat32, reinterpret_cast<const std::byte*>(values.data()), sizes, strides};
  }
};

// Records the matrix as the one member of an entry and gives the file dump.json.
std::string Recorded(const Config& config, const Matrix& matrix, TensorLabels labels = {}) {
  TestProgram program(config);
  const FrameworkTexts texts = TextsOf("pytorch");
  TensorRecorder tensors(program.recorder, texts);
  labels.type = texts.tensor_type;
  program.recorder.NameEntry(program.thread, "Torch.add.0.forward");
  EntryPacker out;
  out.Begin("Torch.add.0.forward", nullptr, 0);
  out.Key("output");
  out.BeginList();
  const auto reading =
      tensors.Read(program.thread, matrix.view(), "output.0", labels.implicit_zeros, nullptr);
  tensors.Pack(matrix.view(), reading, labels, out);
  out.EndList();
  program.recorder.AppendEntry(out.Finish());
  return program.File("dump.json");
}

TEST(TensorRecorder, StatisticsOfOnePass) {
  const std::string dump = Recorded({}, {});
  for (const char* text : {"\"torch.float32\"", "\"Max\": 6.0", "\"Min\": 1.0", "\"Mean\": 3.5"}) {
    EXPECT_NE(dump.find(text), std::string::npos) << dump;
  }
  EXPECT_EQ(dump.find("md5"), std::string::npos);
}

TEST(TensorRecorder, ZerosThatTheMemoryLeavesOutCount) {
  const std::string dump = Recorded({}, {}, {.implicit_zeros = 15});
  EXPECT_NE(dump.find("\"Min\": 0.0"), std::string::npos) << dump;
  EXPECT_NE(dump.find("\"Mean\": 1.0"), std::string::npos) << dump;
}

TEST(TensorRecorder, XorStandsInPlaceOfStatistics) {
  Config config;
  config.summary_mode = SummaryMode::kXor;
  const std::string dump = Recorded(config, {});
  EXPECT_NE(dump.find("\"md5\": \"0x"), std::string::npos) << dump;
  EXPECT_EQ(dump.find("\"Max\": 6"), std::string::npos) << dump;
}

TEST(TensorRecorder, TaskTensorNamesTheFile) {
  Config config;
  config.task = Task::kTensor;
  const std::string dump = Recorded(config, {});
  EXPECT_NE(dump.find("\"data_name\": \"Torch.add.0.forward.output.0.pt\""), std::string::npos)
      << dump;
}

TEST(TensorRecorder, OverflowCheckSaysWhatIsWrong) {
  Config config;
  config.task = Task::kOverflowCheck;
  Matrix matrix;
  matrix.values[2] = -std::numeric_limits<float>::infinity();
  EXPECT_NE(Recorded(config, matrix).find("\"overflow_reason\": \"-inf\""), std::string::npos);
}

TEST(TensorCache, FactsHoldAsLongAsTheTensorIsTheSame) {
  int tensor = 0;
  Matrix matrix;
  TensorCache cache;
  const auto find = [&](int64_t version) {
    return cache.Find(&tensor, [&](void* weak_reference, const TensorIdentity& identity) {
      return weak_reference == &tensor && identity == IdentityOf(matrix.view(), true, version);
    });
  };
  TensorFacts facts;
  facts.digest = 7;
  const auto reference = [&] { return RefTo(&tensor); };
  cache.Store(&tensor, IdentityOf(matrix.view(), true, 1), facts, reference);
  ASSERT_NE(find(1), nullptr);
  EXPECT_EQ(find(1)->digest, 7u);
  EXPECT_EQ(find(2), nullptr);
  EXPECT_EQ(find(1), nullptr);  // forgotten
  EXPECT_EQ(tensor, 0);
  cache.Store(&tensor, IdentityOf(matrix.view(), true, TensorIdentity::kNoVersion), facts,
              reference);
  EXPECT_EQ(find(TensorIdentity::kNoVersion), nullptr);
}

TEST(TensorIdentity, ChangesWithEveryFact) {
  Matrix matrix;
  const TensorIdentity before = IdentityOf(matrix.view(), true, 1);
  EXPECT_NE(before, IdentityOf(matrix.view(), true, 2));
  matrix.values[5] = 7;
  EXPECT_NE(before, IdentityOf(matrix.view(), true, 1));
  EXPECT_EQ(IdentityOf(matrix.view(), false, 1).sample, 0u);
  TensorView row = matrix.view();
  row.sizes = row.sizes.subspan(1);
  row.strides = row.strides.subspan(1);
  EXPECT_NE(IdentityOf(row, false, 1).geometry, before.geometry);
}

TEST(ChangedBuffers, OneOnADeviceChangesWithAnother) {
  int first = 0, second = 0;
  BufferState host{&first, {.version = 1}, true}, device{&second, {.version = 1}, false};
  const BufferStates before = {host, device, {}};
  EXPECT_TRUE(ChangedBuffers(before, before).empty());
  host.identity.version = 2;
  EXPECT_EQ(ChangedBuffers(before, {host, device, {}}), (std::vector<bool>{true, true, false}));
  device.is_sampled = true;
  const BufferStates sampled = {before[0], device, {}};
  EXPECT_EQ(ChangedBuffers(sampled, {host, device, {}}), (std::vector<bool>{true, false, false}));
}

}  // namespace
}  // namespace plumbline::capture
