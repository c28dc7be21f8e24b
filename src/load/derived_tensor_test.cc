#include "load/derived_tensor.h"

#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <numeric>

namespace plumbline::load {
namespace {

Tensor Floats(const Shape& shape, const std::vector<float>& values) {
  const std::vector<int64_t> strides = ContiguousStrides(shape);
  return *Tensor::Copy(
      {DType::kFloat32, reinterpret_cast<const std::byte*>(values.data()), shape, strides});
}

class Files {
 public:
  void Add(const std::string& name, const Shape& shape, float first) {
    std::vector<float> values(static_cast<size_t>(*ElementCount(shape)));
    std::iota(values.begin(), values.end(), first);
    files_[name] = {shape, values};
  }
  Result<TensorFile> Make(const std::string& name) const {
    const auto derived = ParseDerivedName(name);
    if (!derived) return Error(ErrorCode::kInvalidArgument, "no such name");
    return MakeDerivedTensor(*derived, [this](const std::string& file) -> Result<TensorFile> {
      const auto found = files_.find(file);
      if (found == files_.end()) return Error(ErrorCode::kNotFound, file);
      return TensorFile::Of(Floats(found->second.first, found->second.second));
    });
  }

 private:
  std::map<std::string, std::pair<Shape, std::vector<float>>> files_;
};

std::vector<float> ValuesOf(const TensorFile& file) {
  std::vector<float> values(static_cast<size_t>(file.view().element_count()));
  CopyContiguous(file.view(), std::as_writable_bytes(std::span(values)));
  return values;
}

Shape ShapeOf(const TensorFile& file) {
  return {file.view().sizes.begin(), file.view().sizes.end()};
}

TEST(DerivedTensor, NamesReadBack) {
  const std::vector<std::string> files = {"a.pt", "b.pt"};
  const auto derived = ParseDerivedName(DerivedName(Derivation::kColumns, files));
  ASSERT_TRUE(derived);
  EXPECT_EQ(derived->derivation, Derivation::kColumns);
  EXPECT_EQ(derived->files, files);
  EXPECT_FALSE(ParseDerivedName("a.pt"));
  EXPECT_FALSE(ParseDerivedName("other;a.pt"));
}

TEST(DerivedTensor, PiecesStandBesideOrBelowEachOther) {
  Files files;
  files.Add("a", {1, 2, 2}, 0);  // 0 1 / 2 3
  files.Add("b", {2, 1}, 10);    // 10 / 11, of which the 1 is dropped
  files.Add("c", {2, 3}, 20);
  const auto columns = files.Make("columns;a;c");
  ASSERT_TRUE(columns) << columns.error().message();
  EXPECT_EQ(ShapeOf(*columns), (Shape{2, 5}));
  EXPECT_EQ(ValuesOf(*columns), (std::vector<float>{0, 1, 20, 21, 22, 2, 3, 23, 24, 25}));
  const auto rows = files.Make("rows;a;a");
  ASSERT_TRUE(rows);
  EXPECT_EQ(ShapeOf(*rows), (Shape{4, 2}));
  EXPECT_EQ(ValuesOf(*rows), (std::vector<float>{0, 1, 2, 3, 0, 1, 2, 3}));
  EXPECT_EQ(ValuesOf(*files.Make("columns;b;b")), (std::vector<float>{10, 11, 10, 11}));
  EXPECT_EQ(ShapeOf(*files.Make("same;b")), (Shape{2}));
}

TEST(DerivedTensor, SumsAndPairs) {
  Files files;
  files.Add("a", {2, 2}, 0);
  files.Add("b", {1, 2, 2}, 10);
  files.Add("c", {2, 3, 4}, 0);
  EXPECT_EQ(ValuesOf(*files.Make("sum;a;b")), (std::vector<float>{10, 12, 14, 16}));
  EXPECT_EQ(ShapeOf(*files.Make("pairs;c")), (Shape{2, 12}));
}

TEST(DerivedTensor, WhatDoesNotFitIsRefused) {
  Files files;
  files.Add("a", {2, 2}, 0);
  files.Add("b", {3, 2}, 0);
  for (const char* name : {"columns;a;b", "sum;a;b", "pairs;a", "same;a;b"}) {
    const auto made = files.Make(name);
    ASSERT_FALSE(made) << name;
    EXPECT_EQ(made.error().code(), ErrorCode::kCorrupt) << name;
  }
  EXPECT_EQ(files.Make("same;missing").error().code(), ErrorCode::kNotFound);
}

}  // namespace
}  // namespace plumbline::load
