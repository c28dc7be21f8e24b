#include "capture/reference_calls.h"

#include <gtest/gtest.h>

#include <utility>

namespace plumbline::capture {
namespace {

Value TensorOf(std::string digest, Shape shape = {2, 3}) {
  TensorRecord record;
  record.type = "torch.Tensor";
  record.dtype_text = "torch.float32";
  record.shape = std::move(shape);
  if (!digest.empty()) record.digest = std::move(digest);
  return record;
}

Call Forward(ValueList inputs, ValueList outputs) {
  Call call{"Torch.add.0.forward", CallKind::kForward, {}};
  call.members.emplace_back("input_args", std::move(inputs));
  call.members.emplace_back("output", std::move(outputs));
  return call;
}

Agreement Judge(const Call& reference, const Call& seen) {
  ReferenceCalls calls;
  calls.Add(reference);
  return calls.Judge(seen);
}

TEST(ReferenceCalls, OnlyAChangeInsideTheCallDiffers) {
  const Call reference = Forward({TensorOf("aa"), Value(3.0)}, {TensorOf("cc")});
  EXPECT_EQ(Judge(reference, reference), Agreement::kSame);
  EXPECT_EQ(Judge(reference, Forward({TensorOf("aa"), Value(3.0)}, {TensorOf("dd")})),
            Agreement::kDiffers);
  EXPECT_EQ(Judge(reference, Forward({TensorOf("bb"), Value(3.0)}, {TensorOf("dd")})),
            Agreement::kOtherInputs);
  EXPECT_EQ(Judge(reference, Forward({TensorOf("aa", {3, 2})}, {TensorOf("dd")})),
            Agreement::kOtherInputs);
  EXPECT_EQ(Judge(reference, Forward({TensorOf("aa"), TensorOf("bb")}, {TensorOf("dd")})),
            Agreement::kOtherInputs);
  EXPECT_EQ(Judge(reference, Forward({}, {TensorOf("dd")})), Agreement::kOtherInputs);
}

TEST(ReferenceCalls, MissingOrReshapedResultsDiffer) {
  const Call reference = Forward({TensorOf("aa")}, {TensorOf("cc"), TensorOf("dd")});
  EXPECT_EQ(Judge(reference, Forward({TensorOf("aa")}, {TensorOf("cc")})), Agreement::kDiffers);
  EXPECT_EQ(Judge(reference, Forward({TensorOf("aa")}, {TensorOf("cc", {6}), TensorOf("dd")})),
            Agreement::kDiffers);
}

TEST(ReferenceCalls, WithoutAChecksumNothingIsCalledTheSame) {
  const Call whole = Forward({TensorOf("aa")}, {TensorOf("cc")});
  EXPECT_EQ(Judge(whole, Forward({TensorOf("aa")}, {TensorOf("")})), Agreement::kUnknown);
  EXPECT_EQ(
      Judge(Forward({TensorOf("")}, {TensorOf("cc")}), Forward({TensorOf("")}, {TensorOf("cc")})),
      Agreement::kUnknown);
  EXPECT_EQ(ReferenceCalls().Judge(whole), Agreement::kUnknown);
}

TEST(ReferenceCalls, GradientsHaveAnInputOfAnotherName) {
  Call reference{"Torch.add.0.backward", CallKind::kBackward, {}};
  reference.members.emplace_back("input", ValueList{TensorOf("aa")});
  reference.members.emplace_back("output", ValueList{Value(), TensorOf("cc")});
  Call seen = reference;
  EXPECT_EQ(Judge(reference, seen), Agreement::kSame);
  seen.members[1].second = ValueList{Value(), TensorOf("ce")};
  EXPECT_EQ(Judge(reference, seen), Agreement::kDiffers);
  seen.members[0].second = ValueList{TensorOf("ab")};
  EXPECT_EQ(Judge(reference, seen), Agreement::kOtherInputs);
}

}  // namespace
}  // namespace plumbline::capture
