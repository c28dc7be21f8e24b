#include "watch/live/diagnosis.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>

#include "base/file/file.h"
#include "base/file/test_directory.h"
#include "watch/live/black_box.h"
#include "watch/live/sample.h"

namespace plumbline::watch {
namespace {

// A small training made up: two parameters, an output, a loss, Adam's settings.
class MadeUp {
 public:
  struct Values {
    double loss = 1, lr = 1e-3, beta1 = 0.9, uncleared = 0;
    double gradient = 1, rise = 1, momentum = 0.5, output = 2, zeros = 0.5;
    double digest1 = 0, digest2 = 0, nans = 0, infs = 0;
  };
  using Change = std::function<void(int64_t step, Values&)>;

  // The findings of 60 steps, with the noise of a training, of which every `every`-th is looked at.
  std::vector<Finding> Run(const Change& change, int64_t every = 1) {
    Diagnosis diagnosis;
    std::vector<Finding> all;
    for (int64_t step = 0; step < 60; step += every) {
      Values values;
      const double noise = 1 + 0.3 * std::sin(static_cast<double>(step * 7));
      values.loss = noise;
      values.gradient = noise;
      values.momentum = 0.5 + 0.02 * std::sin(static_cast<double>(step));
      values.digest1 = static_cast<double>(1000 + step);
      values.digest2 = static_cast<double>(5000 + step);
      change(step, values);
      for (Finding& finding : diagnosis.Look(RowsOf(step, values))) all.push_back(finding);
    }
    std::ranges::sort(all, IsEarlier);
    return all;
  }

 private:
  static Row RowOf(const WatchedName& name, double value, double digest = 0) {
    Row row{&name, 0, 0, ValuesOfNumber(value)};
    row.values.of(Op::kZeros) = 0;
    row.values.of(Op::kDigest) = digest;
    return row;
  }

  // A weight of a hundred elements whose values follow its digest.
  static Row WeightOf(const WatchedName& name, double digest) {
    Row row = RowOf(name, 10 + digest * 1e-6, digest);
    row.values.shape = {10, 10};
    row.values.dtype = DType::kFloat32;
    return row;
  }

  StepRows RowsOf(int64_t step, const Values& values) {
    StepRows rows;
    rows.step = step;
    auto& other = rows.of(MonitorKind::kOther);
    other = {RowOf(lr_, values.lr), RowOf(beta_, values.beta1), RowOf(loss_, values.loss),
             RowOf(uncleared_, values.uncleared)};
    rows.of(MonitorKind::kParameter) = {WeightOf(first_, values.digest1),
                                        WeightOf(second_, values.digest2)};
    rows.of(MonitorKind::kReducedGradient) = {RowOf(first_, values.gradient * values.rise),
                                              RowOf(second_, values.gradient)};
    rows.of(MonitorKind::kMomentum) = {RowOf(first_, values.momentum)};
    Row output = RowOf(output_, values.output);
    output.values.of(Op::kZeros) = values.zeros;
    output.values.of(Op::kNans) = values.nans;
    output.values.of(Op::kInfs) = values.infs;
    rows.of(MonitorKind::kActivation) = {output};
    return rows;
  }

  WatchedName lr_{"lr.0"}, beta_{"beta1.0"}, loss_{"loss"}, uncleared_{"uncleared"};
  WatchedName first_{"fc1.weight"}, second_{"fc2.weight"}, output_{"relu.output"};
};

using V = MadeUp::Values;

void ExpectFirst(const MadeUp::Change& change, Fault fault, int64_t step, std::string_view place) {
  const std::vector<Finding> found = MadeUp().Run(change);
  ASSERT_FALSE(found.empty()) << NameOf(fault);
  EXPECT_EQ(NameOf(found[0].fault), NameOf(fault)) << found[0].text;
  EXPECT_EQ(found[0].step, step) << found[0].text;
  EXPECT_EQ(found[0].place, place) << found[0].text;
}

TEST(Diagnosis, SaysNothingOfATrainingWithNoise) {
  EXPECT_TRUE(MadeUp().Run([](int64_t, V&) {}).empty());
  // A decaying learning rate, one step with large gradients, one with infinite ones that is
  // skipped.
  EXPECT_TRUE(MadeUp()
                  .Run([](int64_t step, V& v) {
                    v.lr = 1e-3 / static_cast<double>(1 + step);
                    if (step == 40) v.gradient = 50;
                  })
                  .empty());
}

TEST(Diagnosis, SaysNothingOfHabitsOfTrainings) {
  // A layer that rests now and then, gradients that are there between two losses, gradients that
  // vanish with the loss, a weight that comes back to its bounds.
  const auto found = MadeUp().Run([](int64_t step, V& v) {
    if (step % 25 > 21) v.digest2 = 5021 + static_cast<double>(step / 25) * 25;
    if (step == 40) v.uncleared = 3;
    if (step >= 50) v.loss = v.gradient = 0;
    if (step >= 50) v.momentum = 0.5 * std::pow(0.9, step - 50);
  });
  EXPECT_TRUE(found.empty()) << found[0].text;
}

TEST(Diagnosis, TellsMasksFromInfinitiesThatBegin) {
  const auto mask_from = [](int64_t first) {
    return MadeUp().Run([first](int64_t step, V& v) { v.infs = step >= first ? 3 : 0; });
  };
  EXPECT_TRUE(mask_from(0).empty());
  EXPECT_TRUE(mask_from(5).empty());
  const auto found = mask_from(50);
  ASSERT_EQ(found.size(), 1);
  EXPECT_EQ(found[0].step, 50);
  EXPECT_TRUE(found[0].is_suspicion);
}

TEST(Diagnosis, DatesAQuickRiseBackToItsBeginning) {
  ExpectFirst(
      [](int64_t s, V& v) {
        constexpr std::array<double, 8> kRise = {2, 5, 4, 14, 12, 70, 100, 240};
        if (s >= 50) v.rise = kRise[static_cast<size_t>(std::min<int64_t>(s - 50, 7))];
      },
      Fault::kGradient, 50, "fc1");
}

TEST(Diagnosis, NamesTheFirstBadStepAndItsModule) {
  ExpectFirst(
      [](int64_t s, V& v) {
        if (s >= 50) v.lr = 1e-2;
      },
      Fault::kSetting, 50, "");
  ExpectFirst(
      [](int64_t s, V& v) {
        if (s >= 50) v.beta1 = 0.5;
      },
      Fault::kSetting, 50, "");
  ExpectFirst(
      [](int64_t s, V& v) {
        if (s > 50) v.uncleared = 3;
      },
      Fault::kNotCleared, 51, "");
  ExpectFirst(
      [](int64_t s, V& v) {
        if (s >= 50) v.digest2 = 5050;
      },
      Fault::kStalled, 50, "fc2");
  ExpectFirst(
      [](int64_t s, V& v) {
        if (s >= 50) v.digest2 = 5020;
      },
      Fault::kStale, 50, "fc2");
}

TEST(Diagnosis, NamesWhatChangesInValues) {
  ExpectFirst(
      [](int64_t s, V& v) {
        if (s >= 50) v.zeros = 1;
      },
      Fault::kDeadActivation, 50, "relu");
  ExpectFirst(
      [](int64_t s, V& v) {
        if (s >= 50) v.nans = 1;
      },
      Fault::kNonFinite, 50, "relu");
  ExpectFirst(
      [](int64_t s, V& v) {
        if (s >= 50) v.loss = 40;
      },
      Fault::kLoss, 50, "");
  ExpectFirst(
      [](int64_t s, V& v) {
        if (s >= 50) v.gradient *= 8;
      },
      Fault::kGradient, 50, "fc1");
  ExpectFirst(
      [](int64_t s, V& v) {
        if (s < 50) return;
        v.gradient = 0;
        v.momentum = 0.5 * std::pow(0.9, s - 50);
      },
      Fault::kDeadGradient, 50, "fc1");
  ExpectFirst(
      [](int64_t s, V& v) {
        if (s >= 50) v.momentum = 0.05;
      },
      Fault::kMomentum, 49, "fc1");
  ExpectFirst(
      [](int64_t s, V& v) {
        if (s >= 45) v.output *= std::pow(1.5, s - 44);
      },
      Fault::kActivation, 45, "relu");
}

TEST(Diagnosis, MomentaOfStepsThatDoNotFollowEachOtherAreNotJudged) {
  const auto turns = [](int64_t step, MadeUp::Values& values) {
    values.momentum = step % 2 == 0 ? 0.1 : 0.5;
  };
  EXPECT_FALSE(MadeUp().Run(turns).empty());
  EXPECT_TRUE(MadeUp().Run(turns, 3).empty());
}

TEST(Diagnosis, AWeightMayStayWhereTheLearningRateIsNearZero) {
  const auto stays = [](double rate) {
    return MadeUp().Run([rate](int64_t step, MadeUp::Values& values) {
      if (step < 40) return;
      values.lr = rate;
      values.digest1 = 1040;
    });
  };
  EXPECT_TRUE(stays(1e-6).empty());
  ASSERT_FALSE(stays(1e-4).empty());
  EXPECT_EQ(stays(1e-4)[0].fault, Fault::kStalled);
}

TEST(BlackBoxSink, KeepsTwoBlocksAndStopsAfterAFinding) {
  const testing::TestDirectory directory;
  BlackBoxSink sink(directory.path(), 10);
  const WatchedName name{"loss"};
  for (int64_t step = 0; step < 60; ++step) {
    StepRows rows;
    rows.step = step;
    rows.of(MonitorKind::kOther).push_back({&name, 0, 0, ValuesOfNumber(step < 45 ? 1 : 90)});
    ASSERT_TRUE(sink.Write(rows));
  }
  ASSERT_TRUE(sink.Close());
  ASSERT_TRUE(sink.First());
  EXPECT_EQ(sink.First()->step, 45);
  EXPECT_TRUE(sink.is_frozen());
  EXPECT_EQ(*ListDirectory(directory.path()),
            (std::vector<std::string>{"findings.json", "other_40-49.csv", "other_50-59.csv"}));
  EXPECT_EQ(ReadFile(directory.path() + "/other_50-59.csv")->find("0,loss,54"), std::string::npos);
}

TEST(Sample, IsExactWhereTheTensorIsSmallAndScaledWhereItIsLarge) {
  std::vector<float> data(100'000);
  for (size_t i = 0; i < data.size(); ++i) data[i] = static_cast<float>(std::sin(i));
  const Shape sizes = {static_cast<int64_t>(data.size())}, few = {1000}, strides = {1};
  const auto* bytes = reinterpret_cast<const std::byte*>(data.data());
  const TensorValues all = Measure({DType::kFloat32, bytes, few, strides}, 0, nullptr);
  const TensorValues sample = MeasureSample({DType::kFloat32, bytes, few, strides}, 0);
  EXPECT_DOUBLE_EQ(sample.of(Op::kNorm), all.of(Op::kNorm));
  const TensorView large{DType::kFloat32, bytes, sizes, strides};
  const TensorValues before = MeasureSample(large, 3);
  EXPECT_NEAR(before.of(Op::kNorm), std::sqrt(50'000.0), 3);
  data[0] += 1;
  EXPECT_NE(MeasureSample(large, 3).of(Op::kDigest), before.of(Op::kDigest));
  // One NaN outside the fixed runs is met by the moving one.
  data[1000] = NAN;
  double found = 0;
  for (uint64_t turn = 0; turn < 200; ++turn) found += MeasureSample(large, turn).of(Op::kNans);
  EXPECT_GE(found, 1);
}

}  // namespace
}  // namespace plumbline::watch
