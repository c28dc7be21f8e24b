#include "view/serve/hand_matches.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "base/file/file.h"
#include "base/file/test_directory.h"
#include "view/serve/layer_rules.h"
#include "view/store/store_writer.h"

namespace plumbline::view {
namespace {

// Two models whose part is called otherwise, with one call in it and its backward:
// root > net > {part.forward > linear, part.backward}.
std::shared_ptr<const ResultStore> SampleStore(const std::string& path) {
  Result<StoreWriter> writer = StoreWriter::Create(path);
  EXPECT_TRUE(writer);
  PlaceBuilder place = writer->Begin(0, 3);
  const auto fill = [&](bool is_golden, const std::string& part) {
    const auto add = [&](const std::string& name, uint32_t parent, uint32_t partner,
                         StoredType type) {
      NodeRecord node;
      node.name = name;
      node.parent = parent;
      if (!is_golden) node.partner = partner;
      node.type = type;
      return place.AddNode(is_golden, node);
    };
    const uint32_t root = add("DefaultModel", kNoNode, 0, StoredType::kRoot);
    const uint32_t net = add("Module.net.Net.forward.0", root, 1, StoredType::kModule);
    const uint32_t forward =
        add("Module.net." + part + ".forward.0", net, kNoNode, StoredType::kModule);
    (void)add("Functional.linear.0.forward", forward, kNoNode, StoredType::kApi);
    (void)add("Module.net." + part + ".backward.0", net, kNoNode, StoredType::kModule);
  };
  fill(true, "dense.Dense");
  fill(false, "fc.Linear");
  EXPECT_TRUE(writer->Add(std::move(place)));
  EXPECT_TRUE(writer->Finish(json::Value::Object(), {json::Value::Object()}));
  const auto store = ResultStore::Open(path);
  EXPECT_TRUE(store) << store.error().message();
  return store ? *store : nullptr;
}

const NamePair kFc("Module.net.fc.Linear.forward.0", "Module.net.dense.Dense.forward.0");
const NamePair kFcBack("Module.net.fc.Linear.backward.0", "Module.net.dense.Dense.backward.0");
const NamePair kLinear("Functional.linear.0.forward", "Functional.linear.0.forward");

class HandMatchesTest : public ::testing::Test {
 protected:
  testing::TestDirectory directory_;
  std::string path_ = JoinPath(directory_.path(), "x.mpmatch.json");
  std::shared_ptr<const ResultStore> store_ = SampleStore(JoinPath(directory_.path(), "x.store"));
};

TEST_F(HandMatchesTest, PairsTheOtherDirectionAndWhatIsBelow) {
  HandMatches matches;
  ASSERT_TRUE(matches.Match(*store_, {.place = 0, .pairs = {kFc}, .with_children = true}));
  EXPECT_EQ(matches.PairsOf(0, 3), (std::vector<NamePair>{kFc, kFcBack, kLinear}));
  EXPECT_TRUE(matches.PairsOf(0, 0).empty());
  ASSERT_TRUE(matches.Unmatch(*store_, {.place = 0, .pairs = {kFc}, .with_children = true}));
  EXPECT_EQ(matches.AllPairs(), std::vector<NamePair>{kFcBack});
  ASSERT_TRUE(matches.Undo());
  EXPECT_EQ(matches.AllPairs().size(), 3U);
  ASSERT_TRUE(matches.Undo());
  EXPECT_TRUE(matches.AllPairs().empty());
  EXPECT_FALSE(matches.can_undo());
  EXPECT_EQ(matches.Undo().error().code(), ErrorCode::kNotFound);
}

TEST_F(HandMatchesTest, RefusesWhatCannotBePaired) {
  HandMatches matches;
  const auto refused = [&](const NamePair& pair) {
    const Status status = matches.Match(*store_, {.place = 0, .pairs = {pair}});
    return status ? std::string() : status.error().message();
  };
  EXPECT_NE(refused({kFc.first, "Module.none.forward.0"}).find("no such node on the golden"),
            std::string::npos);
  EXPECT_NE(refused({kFc.first, kLinear.second}).find("one is of type module, the other api"),
            std::string::npos);
  EXPECT_NE(refused({"Module.net.Net.forward.0", kFc.second}).find("has a counterpart already"),
            std::string::npos);
  EXPECT_TRUE(matches.AllPairs().empty());
  ASSERT_EQ(refused(kFc), "");
  EXPECT_NE(refused(kFc).find("has a counterpart already"), std::string::npos);
  EXPECT_FALSE(matches.Unmatch(*store_, {.place = 0, .pairs = {kLinear}}));
}

TEST_F(HandMatchesTest, AFileKeepsEverything) {
  HandMatches matches;
  ASSERT_TRUE(matches.Match(*store_, {.place = 0, .pairs = {kFc}}));
  ASSERT_TRUE(matches.Write(path_));
  Result<HandMatches> read = HandMatches::Read(path_);
  ASSERT_TRUE(read) << read.error().message();
  EXPECT_EQ(read->PairsOf(0, 3), matches.PairsOf(0, 3));
  ASSERT_TRUE(read->Undo());
  ASSERT_TRUE(read->Write(path_));
  EXPECT_TRUE(HandMatches::Read(path_)->AllPairs().empty());
  // What msprobe's viewer writes.
  ASSERT_TRUE(WriteFileAtomically(path_, R"({"a": "b"})", false));
  EXPECT_EQ(HandMatches::Read(path_)->PairsOf(5, 5), (std::vector<NamePair>{{"a", "b"}}));
  for (const char* bad : {"", "[]", "{", R"({"plumbline": {"log": [{}]}})"}) {
    ASSERT_TRUE(WriteFileAtomically(path_, bad, false));
    EXPECT_FALSE(HandMatches::Read(path_)) << bad;
  }
}

TEST_F(HandMatchesTest, PairsBecomeRulesOfLayers) {
  HandMatches matches;
  ASSERT_TRUE(matches.Match(*store_, {.place = 0, .pairs = {kFc}, .with_children = true}));
  const LayerMappingText mapping = LayerMappingOf(*store_, matches);
  EXPECT_EQ(mapping.yaml, "Net:\n  fc: dense\n");
  EXPECT_EQ(mapping.matched, 3U);
  EXPECT_EQ(mapping.unmatched, 0U);
}

TEST(MatchRequest, IsReadStrictly) {
  const auto request =
      ParseMatchRequest(R"({"pairs": [["a", "b"]], "place": 1, "with_children": true})", 2);
  ASSERT_TRUE(request);
  EXPECT_EQ(request->pairs, (std::vector<NamePair>{{"a", "b"}}));
  EXPECT_TRUE(request->with_children);
  for (const char* bad :
       {"", "{}", R"({"pairs": []})", R"({"pairs": [["a"]]})", R"({"pairs": [[1, 2]]})",
        R"({"pairs": [["a", "b"]], "place": 2})", R"({"pairs": [["a", "b"]], "place": -1})"}) {
    EXPECT_FALSE(ParseMatchRequest(bad, 2)) << bad;
  }
}

}  // namespace
}  // namespace plumbline::view
