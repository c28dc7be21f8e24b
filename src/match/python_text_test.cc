#include "match/python_text.h"

#include <gtest/gtest.h>

namespace plumbline::match {
namespace {

// Expected texts are what CPython 3.11 prints for str(value).
TEST(PythonText, ScalarsAsPythonPrintsThem) {
  EXPECT_EQ(PythonText(Value()), "None");
  EXPECT_EQ(PythonText(Value(true)), "True");
  EXPECT_EQ(PythonText(Value(int64_t{-7})), "-7");
  EXPECT_EQ(PythonText(Value(1e-5)), "1e-05");
  EXPECT_EQ(PythonText(Value(2.0)), "2.0");
  EXPECT_EQ(PythonText(Value(BigInt{"123456789012345678901"})), "123456789012345678901");
  EXPECT_EQ(PythonText(Value(std::string("mean"))), "mean");
}

TEST(PythonText, ListsQuoteTheirTexts) {
  const Value list(
      ValueList{Value(int64_t{1}), Value(std::string("it's")), Value(std::string("a\n"))});
  EXPECT_EQ(PythonText(list), "[1, \"it's\", 'a\\n']");
  EXPECT_EQ(ListText({"a'b\"c", "back\\slash"}), "['a\\'b\"c', 'back\\\\slash']");
}

TEST(PythonText, MapsAndTypes) {
  EXPECT_EQ(PythonText(Value(ValueMap{{"k", Value(int64_t{2})}})), "{'k': 2}");
  EXPECT_EQ(PythonTypeText(Value(1.0)), "<class 'float'>");
  EXPECT_EQ(PythonTypeText(Value()), "<class 'NoneType'>");
  EXPECT_EQ(PythonTypeText(Value(ValueList{})), "<class 'list'>");
}

TEST(PythonText, ShapesAndTuples) {
  EXPECT_EQ(ShapeText(Shape{}), "[]");
  EXPECT_EQ(ShapeText(Shape{2, 8}), "[2, 8]");
  EXPECT_EQ(TupleText(Shape{3}), "(3,)");
  EXPECT_EQ(TupleText(Shape{}), "()");
}

}  // namespace
}  // namespace plumbline::match
