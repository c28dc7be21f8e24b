#include "pipeline/culprit/choose_culprit.h"

#include <gtest/gtest.h>

#include "base/test_directory.h"
#include "pipeline/comparison_for_test.h"
#include "pipeline/dump_for_test.h"

namespace plumbline::pipeline {
namespace {

using plumbline::testing::TestDirectory;

const Item kX = TensorForTest({1, -1, 0.1, 2});
const Item kY = TensorForTest({3, -2, 0.5, 4});

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
}  // namespace plumbline::pipeline
