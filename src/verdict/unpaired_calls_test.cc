#include "verdict/unpaired_calls.h"

#include <gtest/gtest.h>

#include <limits>

#include "base/file/test_directory.h"
#include "verdict/choose_culprit.h"
#include "verdict/comparison_for_test.h"

namespace plumbline::verdict::unpaired_calls_test {

namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kSmallError = 1e-5;

const Item kX = TensorForTest({1, -1, 0.1, 2});
const Item kY = TensorForTest({3, -2, 0.5, 4});
const Item kZ = TensorForTest({5, -4, 0.7, 6});

TEST(UnpairedCalls, NothingUnpairedIsEmpty) {
  const ComparisonForTest none;
  EXPECT_TRUE(UnpairedCalls(none.get()).empty());
  ComparisonForTest paired;
  paired.Pair("Torch.exp.0.forward").In(kX).Out(kY);
  EXPECT_TRUE(UnpairedCalls(paired.get()).empty());
  EXPECT_FALSE(UnpairedCalls(paired.get()).TargetProducer(kY, 0));
}

TEST(UnpairedCalls, NearestCallBeforeTheConsumerMadeIt) {
  ComparisonForTest calls;
  calls.Target("Torch.exp.0.forward").TargetOut(kY);
  calls.Target("Torch.exp.1.forward").TargetOut(kY);
  calls.Pair("Torch.abs.0.forward").In(kY);
  calls.Target("Torch.exp.2.forward").TargetOut(kY);
  const UnpairedCalls unpaired(calls.get());
  EXPECT_EQ(unpaired.TargetProducer(kY, 2), 1U);
  EXPECT_EQ(unpaired.TargetProducer(kY, 1), 0U);
  EXPECT_FALSE(unpaired.TargetProducer(kY, 0));
  EXPECT_FALSE(unpaired.TargetProducer(kX, 2));
}

TEST(UnpairedCalls, SidesAreKeptApart) {
  ComparisonForTest calls;
  calls.Target("Torch.exp.0.forward").TargetOut(kX);
  calls.Golden("Torch.log.0.forward").GoldenOut(kY);
  const UnpairedCalls unpaired(calls.get());
  EXPECT_EQ(unpaired.GoldenProducer(kY), 1U);
  EXPECT_FALSE(unpaired.GoldenProducer(kX));
  EXPECT_FALSE(unpaired.TargetProducer(kY, 2));
}

TEST(UnpairedCalls, ConstantAndScalarSayNothingAboutTheirSource) {
  const Item zeros = TensorForTest({0, 0, 0, 0});
  Item scalar = kX;
  scalar.is_tensor = false;
  ComparisonForTest calls;
  calls.Target("Torch.exp.0.forward").TargetOut(zeros).TargetOut(scalar);
  const UnpairedCalls unpaired(calls.get());
  EXPECT_FALSE(unpaired.TargetProducer(zeros, 1));
  EXPECT_FALSE(unpaired.TargetProducer(scalar, 1));
}

TEST(UnpairedCalls, NaNAndInfinityAreFollowed) {
  const Item nan = TensorForTest({kNaN, kNaN, kNaN, kNaN});
  const Item infinite = TensorForTest({kInf, 0, kInf, kInf});
  ComparisonForTest calls;
  calls.Target("Torch.log.0.forward").TargetOut(nan);
  calls.Target("Torch.exp.0.forward").TargetOut(infinite);
  const UnpairedCalls unpaired(calls.get());
  EXPECT_EQ(unpaired.TargetProducer(nan, 2), 0U);
  EXPECT_EQ(unpaired.TargetProducer(infinite, 2), 1U);
}

TEST(UnpairedCalls, GoodResultClearsWhatLedToIt) {
  ComparisonForTest calls;
  calls.Target("Torch.exp.0.forward").TargetOut(kX);
  calls.Target("Torch.log.0.forward").TargetOut(kZ);
  calls.Target("Torch.mul.0.forward").TargetIn(kX).TargetOut(kY);
  UnpairedCalls unpaired(calls.get());
  unpaired.MarkGood(2);
  EXPECT_TRUE(unpaired.IsGood(0));
  EXPECT_FALSE(unpaired.IsGood(1));
  EXPECT_TRUE(unpaired.IsGood(2));
}

TEST(UnpairedCalls, NegativeIsFollowed) {
  const Item negative = TensorForTest({1, -3, -0.5, 4});
  const Item positive = TensorForTest({3, -1, 0.5, 4});
  ComparisonForTest calls;
  calls.Target("Torch.exp.0.forward").TargetOut(positive);
  calls.Golden("Torch.log.0.forward").GoldenOut(positive);
  const UnpairedCalls unpaired(calls.get());
  EXPECT_EQ(unpaired.TargetProducer(negative, 2), 0U);
  EXPECT_EQ(unpaired.GoldenProducer(negative), 1U);
  EXPECT_FALSE(unpaired.TargetProducer(TensorForTest({1, -3, 0.5, 4}), 2));
}

TEST(UnpairedCalls, WholeNumbersDoNotClearWhatTheyWereMadeFrom) {
  const Item chosen = TensorForTest({3, 0, 1.5, 4}, {4}, "torch.int64");
  const Item shifted = TensorForTest({4, 1, 2.5, 6}, {4}, "torch.int64");
  ComparisonForTest calls;
  calls.Target("Torch.exp.0.forward").TargetOut(kX);
  calls.Target("Torch.argmax.0.forward").TargetIn(kX).TargetOut(chosen);
  calls.Target("Tensor.add.0.forward").TargetIn(chosen).TargetOut(shifted);
  UnpairedCalls unpaired(calls.get());
  unpaired.MarkGood(2);
  EXPECT_FALSE(unpaired.IsGood(0));
  EXPECT_TRUE(unpaired.IsGood(1));
  EXPECT_TRUE(unpaired.IsGood(2));
}

TEST(UnpairedCalls, CloseAgreementIsKeptApart) {
  ComparisonForTest calls;
  calls.Target("Torch.exp.0.forward").TargetOut(kX);
  calls.Target("Torch.log.0.forward").TargetIn(kX).TargetOut(kY);
  UnpairedCalls unpaired(calls.get());
  unpaired.MarkGood(1);
  EXPECT_TRUE(unpaired.IsGood(0));
  EXPECT_FALSE(unpaired.right()[0]);
  unpaired.MarkGood(1, UnpairedCalls::Agreement::kClose);
  EXPECT_TRUE(unpaired.right()[0]);
}

// The results of one call of another form, and whether they agree.
bool Agree(const Item& target, const Item& golden) {
  ComparisonForTest calls;
  calls.Target("Torch.f.0.forward", "shape-differs").TargetOut(target);
  calls.Golden("Torch.f.0.forward", "shape-differs").GoldenOut(golden);
  return UnpairedCalls(calls.get()).ResultsAgree(0, kSmallError);
}

TEST(UnpairedCalls, ViewOfTheSameElementsAgrees) {
  EXPECT_TRUE(Agree(TensorForTest({3, -2, 0.5, 4}, {16}), TensorForTest({3, -2, 0.5, 4})));
  EXPECT_TRUE(Agree(TensorForTest({3, -2, 0.5, 4.00001}, {16}), TensorForTest({3, -2, 0.5, 4})));
}

TEST(UnpairedCalls, OtherValuesOrSizesDoNotAgree) {
  EXPECT_FALSE(Agree(kX, kY));
  EXPECT_FALSE(Agree(TensorForTest({3, -2, 0.5, 4}, {8}), TensorForTest({3, -2, 0.5, 4})));
}

TEST(UnpairedCalls, NaNInfinityAndMissingStatisticsNeverAgree) {
  Item bare = kY;
  bare.statistics = {};
  EXPECT_FALSE(Agree(TensorForTest({kNaN, kNaN, kNaN, kNaN}), kY));
  EXPECT_FALSE(Agree(kY, TensorForTest({kNaN, kNaN, kNaN, kNaN})));
  EXPECT_FALSE(Agree(TensorForTest({kInf, -2, kInf, kInf}), kY));
  EXPECT_FALSE(Agree(bare, kY));
  EXPECT_FALSE(Agree(bare, bare));
}

TEST(UnpairedCalls, CallWithoutResultsOrCounterpartDoesNotAgree) {
  ComparisonForTest calls;
  calls.Target("Torch.f.0.forward", "shape-differs").TargetIn(kX);
  calls.Golden("Torch.f.0.forward", "shape-differs").GoldenOut(kY);
  calls.Target("Torch.g.0.forward").TargetOut(kX);
  const UnpairedCalls unpaired(calls.get());
  EXPECT_FALSE(unpaired.ResultsAgree(0, kSmallError));
  EXPECT_FALSE(unpaired.ResultsAgree(2, kSmallError));
}

TEST(UnpairedCalls, NullInTheTargetAloneDoesNotAgree) {
  for (const bool is_null : {true, false}) {
    ComparisonForTest calls;
    calls.Target("Torch.f.0.backward", "structure-differs").TargetOut(kX);
    if (is_null) calls.TargetOut(Item());
    calls.Golden("Torch.f.0.backward", "structure-differs").GoldenOut(kX).GoldenOut(kY);
    // A node of the framework with fewer inputs is another matter.
    EXPECT_EQ(UnpairedCalls(calls.get()).ResultsAgree(0, kSmallError), !is_null);
  }
}

TEST(UnpairedCalls, CallOfAnotherFormIsBlamedBeforeExtraCalls) {
  ComparisonForTest calls;
  calls.Target("Torch.exp.0.forward").TargetOut(kX);
  calls.Target("Torch.matmul.0.forward", "structure-differs").TargetIn(kX).TargetOut(kY);
  calls.Target("Torch.mul.0.forward").TargetIn(kY).TargetOut(kZ);
  UnpairedCalls unpaired(calls.get());
  EXPECT_EQ(unpaired.ToBlame(2), 1U);
  unpaired.MarkGood(1);
  EXPECT_EQ(unpaired.ToBlame(2), 2U);
}

TEST(UnpairedCalls, FirstThatComputesIsBlamedAndNotAView) {
  ComparisonForTest calls;
  calls.Target("Tensor.transpose.0.forward").TargetOut(kX);
  calls.Target("Torch.exp.0.forward").TargetIn(kX).TargetOut(kY);
  calls.Target("Torch.mul.0.forward").TargetIn(kY).TargetOut(kZ);
  const UnpairedCalls unpaired(calls.get());
  EXPECT_EQ(unpaired.ToBlame(2), 1U);
  EXPECT_EQ(unpaired.ToBlame(0), 0U);  // nothing there computes
}

}  // namespace

}  // namespace plumbline::verdict::unpaired_calls_test

namespace plumbline::unpaired_calls_test {

// Values that one recording lacks.

namespace {

class IncompleteRecordTest : public TwoDumpsTest {
 protected:
  const std::string input_ = TensorJson(2, -1, 3), bias_ = TensorJson(0.5, -0.25, 0.7),
                    result_ = TensorJson(3, -2, 4), other_ = TensorJson(3, -2.5, 4.5);
  static constexpr const char* kName = "Torch.add.0.forward";

  void Add(DumpForTest& side, const std::string& inputs, const std::string& outputs) {
    side.Add("Torch.exp.0.forward", other_, input_);
    side.Add(kName, inputs, outputs);
  }
};

TEST_F(IncompleteRecordTest, OfAnInputWithoutWhichTheResultWouldBeAnotherIsNamedInAWarning) {
  Add(target_, input_, result_);
  Add(golden_, input_ + "," + bias_, result_);
  const Comparison comparison = Compare();
  EXPECT_FALSE(comparison.first_wrong_call);
  EXPECT_FALSE(comparison.is_complete());
  EXPECT_TRUE(FailsOn(comparison, {"unmatched"}).value());
  ASSERT_EQ(comparison.warnings.size(), 1u);
  EXPECT_EQ(comparison.warnings[0],
            "Torch.add.0.forward is not compared: only golden has Torch.add.0.forward.input.1");
}

TEST_F(IncompleteRecordTest, ANullInPlaceOfAnInputIsTheSame) {
  Add(target_, input_ + "," + bias_, result_);
  Add(golden_, "null," + bias_, result_);
  EXPECT_EQ(Named(), "");
}

TEST_F(IncompleteRecordTest, AnInputThatWasNotThereIsNamed) {
  Add(target_, input_, other_);
  Add(golden_, input_ + "," + bias_, result_);
  EXPECT_EQ(Named(), kName);
}

TEST_F(IncompleteRecordTest, AnApiReturnsWhatItReturns) {
  Add(target_, input_ + "," + bias_, "");
  Add(golden_, input_ + "," + bias_, result_);
  EXPECT_EQ(Named(), "");
}

TEST_F(IncompleteRecordTest, ButNotForOtherInputs) {
  Add(target_, other_ + "," + bias_, "null");
  Add(golden_, input_ + "," + bias_, result_);
  EXPECT_EQ(Named(), kName);
}

// A parameter that requires no gradient any more has a null.
TEST_F(IncompleteRecordTest, AGradientThatIsNullIsNamedAndOneThatIsNotListedIsNot) {
  for (const bool is_null : {true, false}) {
    DumpForTest target(directory_.Path(fmt::format("target{}", is_null)));
    DumpForTest golden(directory_.Path(fmt::format("golden{}", is_null)));
    for (DumpForTest* side : {&target, &golden}) {
      side->Add("Torch.mul.0.forward", input_ + "," + bias_, result_);
    }
    const auto backward = [&](DumpForTest& side, const std::string& results) {
      side.AddEntry(fmt::format(R"("Torch.mul.0.backward": {{"input": [{}], "output": [{}]}})",
                                other_, results));
    };
    backward(target, is_null ? bias_ + ", null" : bias_);
    backward(golden, bias_ + "," + input_);
    const Result<Comparison> comparison = CompareRuns(target.Write(), golden.Write(), {});
    ASSERT_TRUE(comparison);
    EXPECT_EQ(comparison->first_wrong_call.has_value(), is_null);
  }
}

// The recorder says that it lost something.
TEST_F(IncompleteRecordTest, WhatTheRecorderLostIsNoGradientThatIsNull) {
  for (DumpForTest* side : {&target_, &golden_}) {
    side->Add("Torch.mul.0.forward", input_ + "," + bias_, result_);
    side->AddEntry(fmt::format(R"("Torch.mul.0.backward": {{"input": [{}], "output": [{}, {}]}})",
                               other_, bias_, side == &target_ ? "null" : input_));
  }
  EXPECT_EQ(Named(), "Torch.mul.0.backward");
  const std::string target = target_.Write();
  std::ofstream(target + "/dump_error_info.log")
      << "[2026-01-01 00:00:00] [ERROR] calls_dropped: 1 (one call was lost)\n";
  const Result<Comparison> comparison = CompareRuns(target, golden_.Write(), {});
  ASSERT_TRUE(comparison);
  ASSERT_GT(comparison->target_loss.recorder_drops, 0u);
  EXPECT_FALSE(comparison->first_wrong_call);
}

}  // namespace

}  // namespace plumbline::unpaired_calls_test

namespace plumbline::verdict::unpaired_calls_test {

namespace {

using plumbline::testing::TestDirectory;

class ChooseCulpritTest : public ::testing::Test {
 protected:
  // The target's recording: names with the module around each.
  plumbline::Run Target(const std::vector<std::pair<std::string, std::string>>& calls) const {
    DumpForTest dump(directory_.path() + "/target");
    for (const auto& [name, parent] : calls) dump.Add(name, TensorJson(1, -1, 2), "", parent);
    Result<plumbline::Run> run = plumbline::Run::Open(dump.Write());
    EXPECT_TRUE(run) << run.error().message();
    return std::move(*run);
  }

  static std::string Chosen(const plumbline::Run& target, const ComparisonForTest& calls,
                            const Findings& findings) {
    const UnpairedCalls unpaired(calls.get());
    const auto culprit = ChooseCulprit(target, calls.get(), findings, unpaired);
    return culprit ? calls.get().calls[culprit->call].name() : "";
  }

  static CulpritEvent At(uint32_t call, CulpritEvent::Kind kind = CulpritEvent::Kind::kOutput) {
    CulpritEvent event;
    event.call = call;
    event.kind = kind;
    return event;
  }
  static CulpritEvent Form(uint32_t call) { return At(call, CulpritEvent::Kind::kStructure); }

  TestDirectory directory_;
};

TEST_F(ChooseCulpritTest, NothingFoundNamesNothing) {
  const plumbline::Run target = Target({{"Torch.exp.0.forward", ""}});
  EXPECT_EQ(Chosen(target, ComparisonForTest(), {}), "");
}

TEST_F(ChooseCulpritTest, WrongRowThatNothingAccountsForIsNamed) {
  const plumbline::Run target = Target({{"Torch.exp.0.forward", ""}, {"Torch.log.0.forward", ""}});
  ComparisonForTest calls;
  calls.Pair("Torch.exp.0.forward").Out(kX);
  calls.Pair("Torch.log.0.forward", Verdict::kSuspicious).Out(kX, kY);
  calls.last_row().verdict = Verdict::kSuspicious;
  EXPECT_EQ(Chosen(target, calls, {}), "Torch.log.0.forward");
}

TEST_F(ChooseCulpritTest, BehindACallWithoutCounterpartItFollowsFromAnotherWay) {
  const plumbline::Run target = Target({{"Torch.exp.0.forward", ""}, {"Torch.log.0.forward", ""}});
  ComparisonForTest calls;
  calls.Target("Torch.exp.0.forward").TargetOut(kX);
  calls.Pair("Torch.log.0.forward", Verdict::kBroken).Out(kX, kY);
  calls.last_row().verdict = Verdict::kBroken;
  EXPECT_EQ(Chosen(target, calls, {}), "");
}

TEST_F(ChooseCulpritTest, FirstEventIsNamed) {
  const plumbline::Run target = Target({{"Torch.exp.0.forward", ""}, {"Torch.log.0.forward", ""}});
  ComparisonForTest calls;
  calls.Pair("Torch.exp.0.forward").Pair("Torch.log.0.forward");
  Findings findings;
  findings.events = {At(0), At(1)};
  EXPECT_EQ(Chosen(target, calls, findings), "Torch.exp.0.forward");
}

TEST_F(ChooseCulpritTest, CallInsideIsNamedBeforeItsModules) {
  const plumbline::Run target =
      Target({{"Module.net.Net.forward.0", ""},
              {"Module.net.block.Block.forward.0", "Module.net.Net.forward.0"},
              {"Torch.exp.0.forward", "Module.net.block.Block.forward.0"},
              {"Torch.log.0.forward", ""}});
  ComparisonForTest calls;
  calls.Pair("Module.net.Net.forward.0").Pair("Module.net.block.Block.forward.0");
  calls.Pair("Torch.exp.0.forward").Pair("Torch.log.0.forward");
  Findings findings;
  findings.events = {At(0), At(1), At(2), At(3)};
  EXPECT_EQ(Chosen(target, calls, findings), "Torch.exp.0.forward");
  findings.events = {At(0), At(3)};  // nothing inside the module is wrong
  EXPECT_EQ(Chosen(target, calls, findings), "Module.net.Net.forward.0");
}

TEST_F(ChooseCulpritTest, ModulesInACircleEnd) {
  const plumbline::Run target = Target({{"Module.a.A.forward.0", "Module.b.B.forward.0"},
                                        {"Module.b.B.forward.0", "Module.c.C.forward.0"},
                                        {"Module.c.C.forward.0", "Module.b.B.forward.0"},
                                        {"Torch.exp.0.forward", "Module.c.C.forward.0"}});
  ComparisonForTest calls;
  calls.Pair("Torch.log.0.forward").Pair("Torch.exp.0.forward");
  Findings findings;
  findings.events = {At(0), At(1)};
  EXPECT_EQ(Chosen(target, calls, findings), "Torch.log.0.forward");
}

// A call of another form, two calls after it with this verdict, and a wrong one at the end.
ComparisonForTest WithForm(Verdict verdict) {
  ComparisonForTest calls;
  calls.Target("Torch.f.0.forward", "shape-differs").TargetOut(kX);
  calls.Golden("Torch.f.0.forward", "shape-differs").GoldenOut(kY);
  calls.Pair("Torch.exp.0.forward", verdict).Pair("Torch.log.0.forward", verdict);
  calls.Pair("Torch.abs.0.forward", Verdict::kBroken);
  return calls;
}

TEST_F(ChooseCulpritTest, OtherFormIsPassedOverWhenWhatFollowsAgrees) {
  const plumbline::Run target = Target({{"Torch.f.0.forward", ""}});
  Findings findings;
  findings.events = {At(4)};
  findings.other_forms = {Form(0)};
  for (const Verdict good : {Verdict::kSame, Verdict::kWithinNoise}) {
    EXPECT_EQ(Chosen(target, WithForm(good), findings), "Torch.abs.0.forward");
  }
}

TEST_F(ChooseCulpritTest, OtherFormIsNamedWhenWhatFollowsDoesNotAgree) {
  const plumbline::Run target = Target({{"Torch.f.0.forward", ""}});
  Findings findings;
  findings.other_forms = {Form(0)};
  for (const Verdict bad : {Verdict::kBroken, Verdict::kSuspicious, Verdict::kNotComparable}) {
    findings.events = {At(4)};
    EXPECT_EQ(Chosen(target, WithForm(bad), findings), "Torch.f.0.forward");
    findings.events.clear();
    EXPECT_EQ(Chosen(target, WithForm(bad), findings), "Torch.f.0.forward");
  }
}

TEST_F(ChooseCulpritTest, OtherFormAloneIsNamed) {
  const plumbline::Run target = Target({{"Torch.f.0.forward", ""}});
  ComparisonForTest calls;
  calls.Target("Torch.f.0.forward", "shape-differs").TargetOut(kX);
  calls.Golden("Torch.f.0.forward", "shape-differs").GoldenOut(kX);
  Findings findings;
  findings.other_forms = {Form(0)};
  EXPECT_EQ(Chosen(target, calls, findings), "Torch.f.0.forward");
}

TEST_F(ChooseCulpritTest, OtherFormOfTheSameResultsIsPassedOver) {
  const plumbline::Run target = Target({{"Torch.f.0.forward", ""}});
  Item view = kX;
  view.shape = Shape{16};
  ComparisonForTest calls;
  calls.Target("Torch.f.0.forward", "shape-differs").TargetOut(view);
  calls.Golden("Torch.f.0.forward", "shape-differs").GoldenOut(kX);
  calls.Pair("Torch.abs.0.forward", Verdict::kBroken);
  Findings findings;
  findings.events = {At(2)};
  findings.other_forms = {Form(0)};
  EXPECT_EQ(Chosen(target, calls, findings), "Torch.abs.0.forward");
}

// The last gradient of a run: what forward read was folded on one side only.
std::string NamedGradient(const plumbline::Run& target, Verdict forward, const Item& gradient) {
  Item folded = kX;
  folded.shape = Shape{2, 8};
  ComparisonForTest calls;
  calls.Pair("Torch.f.0.forward", forward);
  calls.Target("Torch.f.0.backward", "shape-differs").TargetOut(folded);
  calls.Golden("Torch.f.0.backward", "shape-differs").GoldenOut(gradient);
  Findings findings;
  CulpritEvent form;
  form.call = 1;
  form.kind = CulpritEvent::Kind::kStructure;
  findings.other_forms = {form};
  const UnpairedCalls unpaired(calls.get());
  const auto culprit = ChooseCulprit(target, calls.get(), findings, unpaired);
  return culprit ? calls.get().calls[culprit->call].name() : "";
}

TEST_F(ChooseCulpritTest, OtherFormOfAGradientIsPassedOverWhereForwardAgrees) {
  const plumbline::Run target = Target({{"Torch.f.0.forward", ""}});
  EXPECT_EQ(NamedGradient(target, Verdict::kSame, kX), "");
  EXPECT_EQ(NamedGradient(target, Verdict::kWithinNoise, kX), "");
  EXPECT_EQ(NamedGradient(target, Verdict::kNotComparable, kX), "Torch.f.0.backward");
  EXPECT_EQ(NamedGradient(target, Verdict::kSame, kY), "Torch.f.0.backward");
}

TEST_F(ChooseCulpritTest, OtherFormAfterTheFirstWrongNumberIsNotNamed) {
  const plumbline::Run target = Target({{"Torch.f.0.forward", ""}});
  ComparisonForTest calls;
  calls.Pair("Torch.abs.0.forward", Verdict::kBroken);
  calls.Target("Torch.f.0.forward", "shape-differs").TargetOut(kX);
  calls.Golden("Torch.f.0.forward", "shape-differs").GoldenOut(kY);
  Findings findings;
  findings.events = {At(0)};
  findings.other_forms = {Form(1)};
  EXPECT_EQ(Chosen(target, calls, findings), "Torch.abs.0.forward");
}

// A gradient on the way differs, beside a call that only the target makes; a weight gets one whose
// mean is `mean`, golden's 0.3.
ComparisonForTest WithGradients(double mean, CompareMode mode) {
  const auto gradient = [](double of) { return TensorForTest({of + 1, of - 1, of, 4}); };
  ComparisonForTest calls(mode);
  calls.Target("Torch.solve.0.forward").TargetOut(kY);
  calls.Pair("Torch.f.0.forward").In(kX).Pair("Torch.g.0.forward");
  calls.Pair("Torch.g.0.backward", Verdict::kBroken).Out(kX, kY);
  calls.last_row().verdict = Verdict::kBroken;
  calls.Pair("Torch.f.0.backward").Out(gradient(mean), gradient(0.3));
  return calls;
}

TEST_F(ChooseCulpritTest, GradientsOnTheWayAreNotNamedWhereThoseOfParametersAgree) {
  const plumbline::Run target = Target({{"Torch.f.0.forward", ""}});
  Findings findings;
  findings.events = {At(3)};
  constexpr CompareMode kStatistics = CompareMode::kStatistics;
  EXPECT_EQ(Chosen(target, WithGradients(0.3, kStatistics), findings), "");
  EXPECT_EQ(Chosen(target, WithGradients(0.301, kStatistics), findings), "Torch.g.0.backward");
  // Elements tell more than means.
  EXPECT_EQ(Chosen(target, WithGradients(0.3, CompareMode::kTensor), findings),
            "Torch.g.0.backward");
}

TEST_F(ChooseCulpritTest, ForwardCallsAreNamedWhateverTheGradients) {
  const plumbline::Run target = Target({{"Torch.f.0.forward", ""}});
  Findings findings;
  findings.events = {At(2), At(3)};
  EXPECT_EQ(Chosen(target, WithGradients(0.3, CompareMode::kStatistics), findings),
            "Torch.g.0.forward");
}

}  // namespace

}  // namespace plumbline::verdict::unpaired_calls_test
