#include "match/comm_trace.h"

#include <fmt/format.h>

#include <string_view>
#include <unordered_map>

#include "base/text/text_parts.h"

namespace plumbline {
namespace {

std::string KindText(const CommCall& call) {
  std::string text = fmt::format("{} {} {} {} {}", call.api, call.group, call.root.has_value(),
                                 call.root.value_or(0), call.waits);
  for (const PeerTransfer& transfer : call.transfers) {
    text += fmt::format(" {} {} {} {} {}", static_cast<int>(transfer.direction),
                        transfer.peer.has_value(), transfer.peer.value_or(0), transfer.tag,
                        transfer.is_object);
  }
  return text;
}

std::string CanonicalName(std::string_view api, int64_t number) {
  return fmt::format("Distributed.{}.{}.forward", api, number);
}

// The number in such a name; nothing in any other one.
std::optional<int64_t> NumberIn(const CommCall& call) {
  std::string_view rest = call.name;
  const size_t end = rest.rfind('.');
  if (end == std::string_view::npos) return std::nullopt;
  rest = rest.substr(0, end);
  const auto number = ParseNatural(rest.substr(rest.rfind('.') + 1));
  if (!number || CanonicalName(call.api, *number) != call.name) return std::nullopt;
  return number;
}

uint64_t StepFrom(int64_t before, int64_t number) {
  const int64_t step = number - before;
  return step >= 0 ? 2 * static_cast<uint64_t>(step) + 1 : 2 * static_cast<uint64_t>(-step);
}
int64_t NumberAfter(int64_t before, uint64_t step) {
  const auto from = static_cast<uint64_t>(before);
  return static_cast<int64_t>(step % 2 == 1 ? from + step / 2 : from - step / 2);
}

}  // namespace

CommTrace::CommTrace(std::span<const CommCall> calls) {
  std::unordered_map<std::string, size_t> known;
  std::vector<int64_t> last;  // number of the kind's last call
  for (const CommCall& call : calls) {
    const auto [at, is_new] = known.try_emplace(KindText(call), kinds_.size());
    const size_t kind = at->second;
    if (is_new) {
      kinds_.push_back({call.api, call.group, call.root, call.transfers, call.waits});
      last.push_back(0);
    }
    Record record{kind, call.bad_input.has_value(), 0};
    if (const std::optional<int64_t> number = NumberIn(call)) {
      record.step = StepFrom(last[kind], *number);
      last[kind] = *number;
    } else {
      other_names_.push_back(call.name);
    }
    Add(record);
  }
  bytes_.shrink_to_fit();
  kinds_.shrink_to_fit();
}

bool CommTrace::Add(const Record& record) {
  if (record.kind >= kinds_.size()) return false;
  PutNumber(record.kind << 1 | (record.has_bad_input ? 1 : 0));
  PutNumber(record.step);
  ++size_;
  return true;
}

void CommTrace::PutNumber(uint64_t number) {
  for (; number >= 0x80; number >>= 7) bytes_ += static_cast<char>((number & 0x7F) | 0x80);
  bytes_ += static_cast<char>(number);
}

std::string CommTrace::NameOf(size_t call) const {
  std::vector<int64_t> last(kinds_.size(), 0);
  size_t at = 0, other = 0;
  std::string name;
  ForEach([&](const Record& record) {
    int64_t& number = last[record.kind];
    if (record.step > 0) number = NumberAfter(number, record.step);
    if (record.step == 0) ++other;
    if (at++ != call) return;
    if (record.step > 0) {
      name = CanonicalName(kinds_[record.kind].api, number);
    } else if (other <= other_names_.size()) {
      name = other_names_[other - 1];
    }
  });
  return name;
}

}  // namespace plumbline
