#include <algorithm>
#include <cstring>
#include <utility>

#include "base/process/parallel.h"
#include "view/store/place_data.h"
#include "view/store/store_format.h"
#include "view/store/store_writer.h"

namespace plumbline::view {
namespace {

// Nodes whose details one thread packs at a time.
constexpr size_t kDetailShare = 2048;

void AppendDistinct(std::string_view text, std::string& list) {
  if (text.empty()) return;
  for (size_t at = list.find(text); at != std::string::npos; at = list.find(text, at + 1)) {
    const size_t end = at + text.size();
    const bool begins = at == 0 || list[at - 1] == '\n';
    if (begins && (end == list.size() || list[end] == '\n')) return;
  }
  if (!list.empty()) list += '\n';
  list += text;
}

// "torch.float32\ntorch.int64|[2, 8]\n[4]": the data types and shapes of one side's values, each
// once. Empty: it has none.
std::string FormOf(const NodeDetail& detail, bool is_golden) {
  std::string types, shapes;
  for (const StoredValue& value : detail.values) {
    const std::optional<ValueSide>& side = is_golden ? value.golden : value.target;
    if (!side) continue;
    AppendDistinct(side->dtype, types);
    AppendDistinct(side->shape, shapes);
  }
  if (types.empty() && shapes.empty()) return {};
  return types + '|' + shapes;
}

// Details of consecutive nodes, packed by one thread.
struct DetailShare {
  struct Placed {
    uint32_t node = 0, block = 0, offset = 0;
    uint32_t target_form = 0, golden_form = 0;  // of `forms`
  };
  std::vector<Result<PackedBlock>> blocks;
  std::vector<Placed> placed;
  TextPool forms;

  void Fill(bool is_golden, std::pair<size_t, size_t> nodes,
            const PlaceBuilder::DetailOf& detail_of) {
    DetailBlockWriter block;
    const auto close = [&] {
      if (!block.is_empty()) blocks.push_back(block.Take());
    };
    for (size_t node = nodes.first; node < nodes.second; ++node) {
      NodeDetail detail;
      if (!detail_of(is_golden, static_cast<uint32_t>(node), detail)) continue;
      const auto number = static_cast<uint32_t>(blocks.size());
      placed.push_back({static_cast<uint32_t>(node), number, block.Add(detail),
                        forms.Add(FormOf(detail, false)), forms.Add(FormOf(detail, true))});
      if (block.is_full()) close();
    }
    close();
  }
};

}  // namespace

struct PlaceBuilder::Impl {
  PlaceData data;
  std::vector<uint32_t> open[2];  // of each side, from the root down to the node added last
  DetailBlockWriter block;        // of AddDetail()
  // Where details of the open block belong.
  std::vector<std::pair<std::pair<bool, uint32_t>, uint32_t>> pending;

  // Data types and shapes of a node and of its counterpart, which has no detail of its own.
  void SetForms(bool is_golden, uint32_t node, std::string_view own, std::string_view of_other) {
    data.Side(is_golden).form[node] = data.forms.Add(own);
    const uint32_t other = data.Side(is_golden).partner[node];
    if (!is_golden && other < data.golden.name.size()) {
      data.golden.form[other] = data.forms.Add(of_other);
    }
  }

  void Place(bool is_golden, DetailShare& share) {
    std::vector<uint32_t> numbers;
    for (Result<PackedBlock>& packed : share.blocks) {
      numbers.push_back(data.AddBlock(std::move(packed)));
    }
    for (const DetailShare::Placed& at : share.placed) {
      data.Side(is_golden).detail[at.node] = DetailAt(numbers[at.block], at.offset);
      const std::string_view golden = share.forms[at.golden_form];
      SetForms(is_golden, at.node, is_golden ? golden : share.forms[at.target_form], golden);
    }
  }

  void Close() {
    if (block.is_empty()) return;
    const uint32_t number = data.AddBlock(block.Take());
    for (const auto& [node, offset] : pending) {
      data.Side(node.first).detail[node.second] = DetailAt(number, offset);
    }
    pending.clear();
  }

  void Add(bool is_golden, uint32_t node, const NodeDetail& detail) {
    SetForms(is_golden, node, FormOf(detail, is_golden), FormOf(detail, true));
    pending.push_back({{is_golden, node}, block.Add(detail)});
    if (block.is_full()) Close();
  }
};

PlaceBuilder::PlaceBuilder(int64_t step, int64_t rank, BlockSink sink)
    : impl_(std::make_unique<Impl>()) {
  PlaceData& data = impl_->data;
  data.sink = std::move(sink);
  data.step = step;
  data.rank = rank;
  for (TextPool* pool : {&data.forms, &data.operations, &data.stacks}) pool->Add("");
}
PlaceBuilder::PlaceBuilder(PlaceBuilder&&) noexcept = default;
PlaceBuilder& PlaceBuilder::operator=(PlaceBuilder&&) noexcept = default;
PlaceBuilder::~PlaceBuilder() = default;

uint32_t PlaceBuilder::AddStack(std::span<const std::string_view> frames) {
  std::string numbers;
  for (const std::string_view frame : frames) {
    const uint32_t number = impl_->data.frames.Add(frame);
    numbers.append(reinterpret_cast<const char*>(&number), sizeof(number));
  }
  return impl_->data.stacks.Add(numbers);
}

uint32_t PlaceBuilder::AddNode(bool is_golden, const NodeRecord& node) {
  PlaceData& data = impl_->data;
  OwnColumns& side = data.Side(is_golden);
  std::vector<uint32_t>& open = impl_->open[is_golden ? 1 : 0];
  const auto index = static_cast<uint32_t>(side.name.size());
  // What stands in no pre-order goes below the root.
  while (open.size() > 1 && open.back() != node.parent) open.pop_back();
  side.parent.push_back(open.empty() ? kNoNode : open.back());
  open.push_back(index);
  side.name.push_back(data.names.Add(node.name));
  side.partner.push_back(is_golden ? kNoNode : node.partner);
  side.stack.push_back(node.stack < data.stacks.size() ? node.stack : 0);
  side.form.push_back(0);
  side.operation.push_back(data.operations.Add(OperationOf(node.name)));
  side.micro_step.push_back(node.micro_step);
  side.error.push_back(node.error);
  side.input_error.push_back(node.input_error);
  side.detail.push_back(kNoDetail);
  side.flags.push_back(node.flags);
  side.type.push_back(static_cast<uint8_t>(node.type));
  side.direction.push_back(static_cast<uint8_t>(DirectionOf(node.name)));
  side.level.push_back(static_cast<uint8_t>(node.level));
  side.overflow.push_back(static_cast<uint8_t>(node.overflow));
  return index;
}

void PlaceBuilder::AddDetail(bool is_golden, uint32_t node, const NodeDetail& detail) {
  impl_->Add(is_golden, node, detail);
}

void PlaceBuilder::ReserveNames(size_t chars) { impl_->data.names.ReserveChars(chars); }

PlaceData PlaceBuilder::Take() {
  impl_->Close();
  return std::move(impl_->data);
}

void PlaceBuilder::AddDetails(const DetailOf& detail_of) {
  impl_->Close();
  // A share waits for those before it to be placed: some at a time, so that few wait.
  constexpr size_t kSharesAtOnce = 64;
  for (const bool is_golden : {false, true}) {
    const size_t count = impl_->data.Side(is_golden).name.size();
    for (size_t begin = 0; begin < count; begin += kSharesAtOnce * kDetailShare) {
      const size_t left = (count - begin + kDetailShare - 1) / kDetailShare;
      std::vector<DetailShare> shares(std::min(kSharesAtOnce, left));
      ParallelFor(shares.size(), [&](size_t i) {
        const size_t first = begin + i * kDetailShare;
        shares[i].Fill(is_golden, {first, std::min(count, first + kDetailShare)}, detail_of);
      });
      for (DetailShare& share : shares) impl_->Place(is_golden, share);
    }
  }
}

}  // namespace plumbline::view
