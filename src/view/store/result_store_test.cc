#include "view/store/result_store.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <set>

#include "base/file/file.h"
#include "view/store/name_index.h"
#include "view/store/place_data.h"
#include "view/store/store_for_test.h"

namespace plumbline::view {
namespace {

using for_test::PlainNode;
using for_test::RandomResult;

NodeLevel ShownLevel(const RandomResult& result, uint32_t id) {
  const PlainNode& node = result.nodes()[id];
  if (node.partner == kNoNode && node.record.type != StoredType::kRoot) {
    return NodeLevel::kUnmatched;
  }
  return (node.is_golden ? result.nodes()[node.partner] : node).record.level;
}

TEST(ResultStore, HoldsTheNodesThatWereGiven) {
  const RandomResult result(1, 3, 500);
  const auto store = result.Open();
  ASSERT_EQ(store->size(), result.nodes().size());
  const NodeColumns& columns = store->nodes();
  for (uint32_t id = 0; id < store->size(); ++id) {
    const PlainNode& node = result.nodes()[id];
    EXPECT_EQ(store->Name(id), node.name);
    EXPECT_EQ(columns.parent[id], node.parent);
    EXPECT_EQ(columns.partner[id], node.partner);
    EXPECT_EQ(columns.micro_step[id], node.record.micro_step);
    EXPECT_EQ(columns.flags[id], node.record.flags);
    EXPECT_EQ(columns.overflow[id], static_cast<uint8_t>(node.record.overflow));
    EXPECT_EQ(columns.level[id], static_cast<uint8_t>(ShownLevel(result, id)));
    EXPECT_EQ(store->PlaceOf(id), node.place);
    EXPECT_EQ(store->IsGolden(id), node.is_golden);
    EXPECT_EQ(store->Stack(id).size(), 2U);
  }
}

TEST(ResultStore, FindsEveryNodeByItsName) {
  const RandomResult result(2, 2, 700);
  const auto store = result.Open();
  for (uint32_t id = 0; id < store->size(); ++id) {
    const PlainNode& node = result.nodes()[id];
    const auto found = store->Find(node.place, node.is_golden, node.name);
    ASSERT_TRUE(found) << node.name;
    EXPECT_EQ(result.nodes()[*found].name, node.name);
    EXPECT_EQ(result.nodes()[*found].is_golden, node.is_golden);
    EXPECT_FALSE(store->Find(node.place, node.is_golden, node.name + "!"));
  }
  EXPECT_FALSE(store->Find(0, false, ""));
  EXPECT_FALSE(store->Find(99, false, "DefaultModel"));
}

TEST(ResultStore, CountsWhatIsBelowEveryNode) {
  const RandomResult result(3, 1, 200);
  const auto store = result.Open();
  const NodeColumns& columns = store->nodes();
  for (uint32_t id = 0; id < store->size(); ++id) {
    if (result.nodes()[id].is_golden) continue;
    uint32_t size = 0, errors = 0, unmatched = 0, children = 0;
    int worst = 0;
    for (uint32_t other = 0; other < store->size(); ++other) {
      if (!result.IsBelow(other, id)) continue;
      ++size;
      if (result.nodes()[other].parent == id) ++children;
      if (other == id) continue;
      const NodeLevel level = ShownLevel(result, other);
      errors += level == NodeLevel::kError ? 1 : 0;
      unmatched += level == NodeLevel::kUnmatched ? 1 : 0;
      worst = std::max(worst, SeverityOf(level));
    }
    EXPECT_EQ(columns.size[id], size);
    EXPECT_EQ(columns.children[id], children);
    EXPECT_EQ(columns.errors[id], errors);
    EXPECT_EQ(columns.unmatched[id], unmatched);
    EXPECT_EQ(SeverityOf(static_cast<NodeLevel>(columns.worst[id])), worst);
  }
}

TEST(ResultStore, OrdersChildrenBeforeTheirParents) {
  const RandomResult result(4, 2, 300);
  const auto store = result.Open();
  const NodeColumns& columns = store->nodes();
  std::set<std::pair<std::pair<size_t, bool>, uint32_t>> orders;
  for (uint32_t id = 0; id < store->size(); ++id) {
    const PlainNode& node = result.nodes()[id];
    orders.insert({{node.place, node.is_golden}, columns.order[id]});
    if (node.parent != kNoNode) {
      EXPECT_LT(columns.order[id], columns.order[node.parent]);
    }
  }
  EXPECT_EQ(orders.size(), store->size());
  for (size_t i = 1; i < store->by_name().size(); ++i) {
    EXPECT_LE(store->Name(store->by_name()[i - 1]), store->Name(store->by_name()[i]));
  }
}

TEST(ResultStore, KeepsEveryDetail) {
  const RandomResult result(5, 2, 600);
  const auto store = result.Open();
  for (uint32_t id = 0; id < store->size(); ++id) {
    const PlainNode& node = result.nodes()[id];
    const auto detail = store->Detail(id);
    ASSERT_TRUE(detail);
    if (node.is_golden && node.partner != kNoNode) continue;  // that of its counterpart
    ASSERT_EQ(detail->values.size(), node.dtype.empty() ? 0U : 1U);
    if (node.dtype.empty()) continue;
    const StoredValue& value = detail->values[0];
    const auto& side = node.is_golden ? value.golden : value.target;
    ASSERT_TRUE(side);
    EXPECT_EQ(side->dtype, node.dtype);
    EXPECT_EQ(side->shape, node.shape);
    EXPECT_EQ(side->statistics[0], StoredScalar(0.5));
    EXPECT_EQ(side->statistics[1], StoredScalar(int64_t{1} << 60));
    EXPECT_EQ(side->statistics[2], StoredScalar(true));
    EXPECT_EQ(side->statistics[3], StoredScalar());
  }
}

TEST(ResultStore, NumbersKeepTheirBitsBesideThoseOfTheOtherSide) {
  const testing::TestDirectory directory;
  const std::vector<double> numbers = {
      0.1,  0.1 + 1e-17, std::nextafter(0.1, 1), 0.5, -0.5, INFINITY, NAN, 1e300,
      -0.0, 0.0,         0.1 * (1 + 1e-8),       3};
  auto writer = StoreWriter::Create(directory.Path("s"));
  PlaceBuilder place = writer->Begin(0, 0);
  place.AddNode(false, {.name = "DefaultModel", .partner = 0, .type = StoredType::kRoot});
  place.AddNode(true, {.name = "DefaultModel", .type = StoredType::kRoot});
  NodeDetail detail;
  for (const double x : numbers) {
    for (const double y : numbers) {
      StoredValue value{.name = "v"};
      value.target = ValueSide{"", "", "", {x}};
      value.golden = ValueSide{"", "", "", {y}};
      detail.values.push_back(value);
    }
  }
  place.AddDetail(false, 0, detail);
  ASSERT_TRUE(writer->Add(std::move(place)));
  ASSERT_TRUE(writer->Finish(json::Value::Object(), {}));
  const auto store = *ResultStore::Open(directory.Path("s"));
  const NodeDetail read = *store->Detail(0);
  for (size_t i = 0; i < read.values.size(); ++i) {
    const double x = std::get<double>(read.values[i].target->statistics[0]);
    const double y = std::get<double>(read.values[i].golden->statistics[0]);
    EXPECT_EQ(std::memcmp(&x, &numbers[i / numbers.size()], sizeof(x)), 0);
    EXPECT_EQ(std::memcmp(&y, &numbers[i % numbers.size()], sizeof(y)), 0);
  }
}

TEST(ResultStore, RefusesForeignAndCutFiles) {
  const RandomResult result(6, 1, 60);
  const std::string whole = *ReadFile(result.path());
  const testing::TestDirectory directory;
  const std::string path = directory.Path("cut");
  for (size_t size = 0; size < whole.size(); size += 1 + size / 3) {
    ASSERT_TRUE(WriteFileAtomically(path, whole.substr(0, size), false));
    const auto store = ResultStore::Open(path);
    ASSERT_FALSE(store) << size;
    EXPECT_EQ(store.error().code(), ErrorCode::kCorrupt);
  }
  ASSERT_TRUE(WriteFileAtomically(path, "SQLite format 3", false));
  EXPECT_EQ(ResultStore::Open(path).error().message(), path + ": no result store of plumb view");
  EXPECT_EQ(ResultStore::Open(directory.Path("absent")).error().code(), ErrorCode::kNotFound);
}

TEST(NameIndex, FindsPartsOfNamesAsALookAtEachDoes) {
  const RandomResult result(9, 1, 900);
  const auto store = result.Open();
  const NameIndex& names = store->names();
  for (const std::string part : {"linear", "LINEAR", "1", "12", ".7", "layers.1", "script", "x", "",
                                 "\xE4\xB8\xAD", "forward.0", "not there", "MLP.backward"}) {
    std::vector<uint64_t> bits(names.size() / 64 + 1);
    names.MarkContaining(part, bits);
    for (size_t i = 0; i < names.size(); ++i) {
      const bool holds = FoldCase(names.At(i)).find(FoldCase(part)) != std::string::npos;
      EXPECT_EQ((bits[i / 64] >> (i % 64) & 1) != 0, holds) << part << " in " << names.At(i);
    }
  }
}

TEST(StoreWriter, OfSeveralWritersNothingIsLeftWithoutFinish) {
  const testing::TestDirectory directory;
  {
    auto writer = StoreWriter::Create(directory.Path("store"));
    PlaceBuilder place = writer->Begin(0, 0);
    place.AddNode(false, {.name = "DefaultModel", .type = StoredType::kRoot});
    ASSERT_TRUE(writer->Add(std::move(place)));
  }
  EXPECT_TRUE(ListDirectory(directory.path())->empty());
}

TEST(OperationOf, IsWhatComesBeforeTheDirection) {
  EXPECT_EQ(OperationOf("Functional.linear.0.forward"), "linear");
  EXPECT_EQ(OperationOf("Module.model.layers.3.mlp.Mlp.backward.0"), "Mlp");
  EXPECT_EQ(OperationOf("Module.fc.Linear.parameters_grad.1"), "Linear");
  EXPECT_EQ(OperationOf("DefaultModel"), "DefaultModel");
}

}  // namespace
}  // namespace plumbline::view
