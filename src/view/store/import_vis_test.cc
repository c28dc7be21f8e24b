#include "view/store/import_vis.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <variant>

#include "base/file/file.h"
#include "base/file/test_directory.h"
#include "formats/sqlite/vis_db.h"
#include "view/store/result_store.h"

namespace plumbline::view {
namespace {

using plumbline::testing::TestDirectory;

constexpr const char* kRoot = "DefaultModel";
constexpr const char* kSend = "Distributed.isend.0.forward";
constexpr const char* kReceive = "Distributed.irecv.0.forward";

// One call below the root, of one side of one rank.
void WriteSide(vis_db::Writer& file, const vis::GraphPlace& place, std::string_view call,
               std::string_view transfers) {
  ASSERT_TRUE(file.BeginGraph(place, std::nullopt, {"[\"File a.py, line 1\"]"}));
  vis::Node node{.order = 0, .name = call, .parent = kRoot, .type = vis::NodeType::kApi};
  node.link = {kRoot, call};
  node.outputs =
      R"({"x.output.0": {"type": "torch.Tensor", "dtype": "torch.float32", "shape": "[2]",
          "Max": "2.5", "Min": "-3", "Mean": "nan", "Norm": "null", "requires_grad": "False",
          "NormRelativeErr": "20.0%", "Result": "error",
          "Err_message": "[\"error: exceeds-noise: relative error 0.25, explained 0.01\"]"}})";
  if (!place.is_golden) node.level = vis::Level::kError;
  node.transfers = transfers;
  ASSERT_TRUE(file.Add(node));
  vis::Node root{.order = 1, .name = kRoot, .parent = {}};
  root.children = {call};
  root.link = {kRoot};
  ASSERT_TRUE(file.Add(root));
}

std::string WritePair(const TestDirectory& directory) {
  const std::string path = directory.Path("a.vis.db");
  auto file = vis_db::Writer::Create(path);
  EXPECT_TRUE(file);
  for (const int64_t rank : {0, 1}) {
    for (const bool is_golden : {false, true}) {
      const std::string transfers =
          rank == 0
              ? R"({"communications_type": "send", "nodes_info": {"1": ["1", "Distributed.irecv.0.forward"]}, "mismatch": "no"})"
              : R"({"communications_type": "receive", "nodes_info": {"0": ["1", "Distributed.isend.0.forward"]}})";
      WriteSide(*file, {is_golden, 0, rank}, rank == 0 ? kSend : kReceive, transfers);
    }
  }
  const vis::Summary summary{.task = vis::kSummary, .ranks = {0, 1}, .steps = {0}};
  EXPECT_TRUE(file->Finish(summary, {}));
  return path;
}

TEST(ImportVis, TextsBecomeNumbersAndCallsLinks) {
  const TestDirectory directory;
  const std::string path = WritePair(directory), store_path = directory.Path("store");
  const Status imported = ImportVis(path, store_path, {});
  ASSERT_TRUE(imported) << imported.error().message();
  const auto store = ResultStore::Open(store_path);
  ASSERT_TRUE(store) << store.error().message();
  ASSERT_EQ((*store)->places().size(), 2u);
  const auto node = (*store)->Find(0, false, kSend);
  ASSERT_TRUE(node);
  EXPECT_EQ((*store)->nodes().level[*node], static_cast<uint8_t>(NodeLevel::kError));
  EXPECT_FLOAT_EQ((*store)->nodes().error[*node], 0.25F);
  EXPECT_EQ((*store)->Stack(*node).size(), 1u);
  const auto detail = (*store)->Detail(*node);
  ASSERT_TRUE(detail);
  const ValueSide& side = *detail->values.at(0).target;
  EXPECT_EQ(std::get<double>(side.statistics[0]), 2.5);
  EXPECT_EQ(std::get<int64_t>(side.statistics[1]), -3);
  EXPECT_TRUE(std::isnan(std::get<double>(side.statistics[2])));
  EXPECT_TRUE(std::holds_alternative<std::monostate>(side.statistics[3]));
  EXPECT_EQ(side.requires_grad, false);
  EXPECT_TRUE(detail->values[0].golden);
  EXPECT_EQ(detail->values[0].reason, "exceeds-noise");
  ASSERT_EQ((*store)->link_count(), 2u);  // of each side
  const StoredLink link = (*store)->Link(0);
  EXPECT_TRUE(link.is_message);
  EXPECT_EQ(link.ends.at(0).role, StoredRole::kSend);
  EXPECT_EQ(link.ends[0].mismatch, "no");
  EXPECT_EQ(*(*store)->facts().Find("source")->AsText(), "msprobe");
  EXPECT_EQ(*(*store)->facts().Find("first")->Find("name")->AsText(), kSend);
}

TEST(ImportVis, OfAnOldFileOneMayBeBest) {
  const TestDirectory directory;
  const std::string path = directory.Path("build_rank3_x.vis");
  const std::string node =
      R"({"id": "Module.a.A.forward.0", "node_type": 0, "input_data": {}, "output_data": {},
          "upnode": "DefaultModel", "subnodes": [], "matched_node_link": ["B___Module.a.A.forward.0"],
          "stack_info": [], "data": {"precision_index": 1}})";
  const std::string side = R"({"root": "DefaultModel", "node": {"DefaultModel": {"upnode": "None",
      "subnodes": ["Module.a.A.forward.0"]}, "Module.a.A.forward.0": )" +
                           node + "}}";
  const std::string text = R"({"NPU": )" + side + R"(, "Bench": )" + side +
                           R"(, "Colors": {"#FFFCF3": {"value": [1, 1]}, "#FF704D":
                               {"value": [0, 0]}}, "task": "md5"})";
  ASSERT_TRUE(WriteFileAtomically(path, text, false));
  const Status imported = ImportVis(path, directory.Path("store"), {});
  ASSERT_TRUE(imported) << imported.error().message();
  const auto store = ResultStore::Open(directory.Path("store"));
  ASSERT_TRUE(store);
  EXPECT_EQ((*store)->places()[0].rank, 3);
  const auto found = (*store)->Find(0, false, "Module.a.A.forward.0");
  ASSERT_TRUE(found);
  EXPECT_EQ((*store)->nodes().level[*found], static_cast<uint8_t>(NodeLevel::kPass));
}

TEST(ImportVis, NothingIsLeftOfAFileThatIsNone) {
  const TestDirectory directory;
  ASSERT_TRUE(WriteFileAtomically(directory.Path("a.vis.db"), "text", false));
  EXPECT_FALSE(ImportVis(directory.Path("a.vis.db"), directory.Path("store"), {}));
  EXPECT_EQ(KindOf(directory.Path("store")), PathKind::kMissing);
}

}  // namespace
}  // namespace plumbline::view
