#include "graphs/source_lines.h"

#include <gtest/gtest.h>

#include <string>

#include "base/file/file.h"
#include "base/file/test_directory.h"

namespace plumbline::graphs {
namespace {

std::string Node(const std::string& full_name, const std::string& line,
                 const std::string& attributes = "") {
  return "  %1(CNode_1) = PrimFunc_Add(%0) cnode_primal_attrs: {" + attributes +
         "}\n      : (<Tensor>) -> (<Tensor>)\n      # Fullname with scope: (" + full_name +
         ")\n      # In file net.py:" + line + "/\n";
}

class SourceLinesTest : public ::testing::Test {
 protected:
  SourceLinesTest() {
    Add("a.ir", "subgraph @f() {\n" + Node("Default/net/Add-op1", "1", "unique_id: \"7\"") +
                    Node("Default/net/Add-op10", "10") + Node("0", "0") +
                    Node("Gradients/Default/Add-op2", "2", "forward_unique_id: \"7\"") +
                    Node("Gradients/Default/Mul-op3", "3", "forward_unique_id: \"8\"") +
                    Node("Default/a_b/Mul-op4", "4") + Node("Default/a/b/Mul-op4", "5") +
                    Node("Default/net/Add-op1", "1") + "}\n");
  }

  void Add(const std::string& name, const std::string& text) {
    const std::string path = directory_.Path(name);
    ASSERT_TRUE(WriteFileAtomically(path, text, /*durable=*/false));
    const auto notes = lines_.AddFile(path);
    ASSERT_TRUE(notes) << notes.error().message();
    notes_ = *notes;
  }

  // "exact: 1 2" of a name.
  std::string Find(const std::string& name) const {
    const SourceLines::Found found = lines_.Find(name);
    std::string text(NameMatchName(found.match));
    for (const auto* kernel : found.kernels) {
      for (const auto line : graph_ir::SourceLines(kernel->source)) {
        text += " " + std::string(line.substr(line.find(':') + 1));
      }
    }
    return text;
  }

  testing::TestDirectory directory_;
  SourceLines lines_;
  std::vector<std::string> notes_;
};

TEST_F(SourceLinesTest, WholeNamesAreExact) {
  EXPECT_EQ(Find("Default_net_Add-op1"), "exact 1");
  EXPECT_EQ(Find("Default/net/Add-op1"), "exact 1");
  EXPECT_EQ(Find("Default_net_Add-op10"), "exact 10");
  EXPECT_EQ(Find("0"), "exact 0");
}

TEST_F(SourceLinesTest, PartsEndWhereWordsDo) {
  EXPECT_EQ(Find("Add-op10"), "part 10");
  EXPECT_EQ(Find("net_Add-op1"), "part 1");
  EXPECT_EQ(Find("kernel_Default_net_Add-op1_0"), "part 1");
  EXPECT_EQ(Find("Default_net_Add-op11"), "none");
  EXPECT_EQ(Find("t_Add-op1"), "none");
  EXPECT_EQ(Find("net_0_x"), "none");
  EXPECT_EQ(Find(""), "none");
}

TEST_F(SourceLinesTest, SeveralKernelsAreAmbiguous) {
  EXPECT_EQ(Find("Default_a_b_Mul-op4"), "ambiguous 4 5");
  EXPECT_EQ(Find("Mul-op4"), "ambiguous 4 5");
}

TEST_F(SourceLinesTest, GradientsHaveTheirForwardLines) {
  EXPECT_EQ(Find("Gradients_Default_Add-op2"), "exact 1");
  EXPECT_EQ(Find("Gradients_Default_Mul-op3"), "exact 3");
}

TEST_F(SourceLinesTest, OtherGraphsAddKernels) {
  Add("b.ir", "subgraph @g() {\n" + Node("Default/net/Add-op1", "99"));
  EXPECT_EQ(Find("Default_net_Add-op1"), "ambiguous 1 99");
  ASSERT_EQ(notes_.size(), 1U);
  EXPECT_TRUE(notes_[0].ends_with("b.ir: the text of the graph is cut")) << notes_[0];
  Add("c.ir", "subgraph @g() {\n  %1(a) = Add(%0)\n}\n");
  ASSERT_EQ(notes_.size(), 1U);
  EXPECT_NE(notes_[0].find("c.ir: no node has a full name"), std::string::npos) << notes_[0];
}

TEST_F(SourceLinesTest, DamagedFilesAreNamed) {
  const std::string path = directory_.Path("d.ir");
  ASSERT_TRUE(WriteFileAtomically(path, "text\n", /*durable=*/false));
  const auto notes = lines_.AddFile(path);
  ASSERT_FALSE(notes);
  EXPECT_EQ(notes.error().code(), ErrorCode::kCorrupt);
  EXPECT_TRUE(notes.error().message().starts_with(path));
  EXPECT_EQ(lines_.AddFile(path + "x").error().code(), ErrorCode::kNotFound);
}

}  // namespace
}  // namespace plumbline::graphs
