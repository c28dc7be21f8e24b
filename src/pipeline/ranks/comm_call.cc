#include "pipeline/ranks/comm_call.h"

#include <algorithm>
#include <array>
#include <string>

#include "formats/dump_json.h"
#include "record/call_name.h"

namespace plumbline {
namespace {

// Parts of the names of functions that communicate; barrier and monitored_barrier move no values.
constexpr std::array<std::string_view, 6> kMoves = {"send",   "recv",   "broadcast",
                                                    "reduce", "gather", "scatter"};
constexpr std::string_view kAllToAll = "all_to_all";
constexpr size_t kNoTag = 1;  // ints before the tag: the peer

std::optional<int64_t> IntOf(const Value* value) {
  if (value == nullptr) return std::nullopt;
  if (const auto* number = value->As<int64_t>()) return *number;
  const Value* member = value->Find("value");
  if (member == nullptr) return std::nullopt;
  const auto* number = member->As<int64_t>();
  return number != nullptr ? std::optional(*number) : std::nullopt;
}

std::string TextOf(const Value& map, std::string_view key) {
  const Value* member = map.Find(key);
  const auto* text = member != nullptr ? member->As<std::string>() : nullptr;
  return text != nullptr ? *text : std::string();
}

bool IsGroup(const Value& value) {
  return value.Find("group_ranks") != nullptr || value.Find("group_id") != nullptr;
}

// Arguments by position and by keyword.
class Arguments {
 public:
  explicit Arguments(const Call& call) {
    const Value* positional = call.Find(dump_json::kInputArgs);
    if (positional != nullptr) positional_ = positional->As<ValueList>();
    keyword_ = call.Find(dump_json::kInputKwargs);
  }
  [[nodiscard]] const Value* Keyword(std::string_view name) const {
    return keyword_ != nullptr ? keyword_->Find(name) : nullptr;
  }
  // The first of these keywords that is a whole number.
  [[nodiscard]] std::optional<int64_t> KeywordInt(std::string_view name) const {
    return IntOf(Keyword(name));
  }
  // Number `nth` (from 0) among the whole numbers given by position.
  [[nodiscard]] std::optional<int64_t> PositionalInt(size_t nth) const {
    if (positional_ == nullptr) return std::nullopt;
    for (const Value& value : *positional_) {
      const std::optional<int64_t> number = IntOf(&value);
      if (number && nth-- == 0) return number;
    }
    return std::nullopt;
  }
  [[nodiscard]] const Value* Group() const {
    const Value* group = Keyword("group");
    if (group != nullptr && IsGroup(*group)) return group;
    if (positional_ == nullptr) return nullptr;
    const auto found = std::find_if(positional_->begin(), positional_->end(), IsGroup);
    return found != positional_->end() ? &*found : nullptr;
  }
  // The operations of batch_isend_irecv.
  [[nodiscard]] const ValueList* Operations() const {
    const Value* list = Keyword("p2p_op_list");
    if (list != nullptr) return list->As<ValueList>();
    if (positional_ == nullptr || positional_->empty()) return nullptr;
    return positional_->front().As<ValueList>();
  }

 private:
  const ValueList* positional_ = nullptr;
  const Value* keyword_ = nullptr;
};

int InternGroup(CommGroup group, std::vector<CommGroup>& groups) {
  const auto same = [&](const CommGroup& known) {
    return known.id == group.id && known.ranks == group.ranks;
  };
  const auto found = std::find_if(groups.begin(), groups.end(), same);
  if (found != groups.end()) return static_cast<int>(found - groups.begin());
  groups.push_back(std::move(group));
  return static_cast<int>(groups.size()) - 1;
}

int ReadGroup(const Value* value, std::vector<CommGroup>& groups) {
  if (value == nullptr) return -1;
  CommGroup group;
  group.id = TextOf(*value, "group_id");
  const Value* member = value->Find("group_ranks");
  const auto* ranks = member != nullptr ? member->As<ValueList>() : nullptr;
  if (ranks != nullptr) {
    for (const Value& rank : *ranks) {
      if (const std::optional<int64_t> number = IntOf(&rank)) group.ranks.push_back(*number);
    }
  }
  std::sort(group.ranks.begin(), group.ranks.end());
  if (group.id.empty() && group.ranks.empty()) return -1;
  return InternGroup(std::move(group), groups);
}

// A rank given by one of the keywords for it, relative to the group or not, or by position.
std::optional<int64_t> RankArgument(const Arguments& arguments, std::string_view name,
                                    const CommGroup* group) {
  if (const auto rank = arguments.KeywordInt(name)) return rank;
  const std::string text(name);
  for (const std::string& relative : {"group_" + text, text + "_group"}) {
    const std::optional<int64_t> position = arguments.KeywordInt(relative);
    if (!position) continue;
    if (group == nullptr || group->ranks.empty()) return position;
    const auto index = static_cast<uint64_t>(*position);
    if (index >= group->ranks.size()) return std::nullopt;
    return group->ranks[index];
  }
  return arguments.PositionalInt(0);
}

bool IsSend(std::string_view api) {
  return api == "send" || api == "isend" || api == "send_object_list";
}
bool IsReceive(std::string_view api) {
  return api == "recv" || api == "irecv" || api == "recv_object_list";
}
// Whose values come out: those of one rank.
bool HasSource(std::string_view api) {
  return api.starts_with("broadcast") || api == "scatter" || api == "scatter_object_list";
}
// Who gets something: one rank.
bool HasDestination(std::string_view api) {
  return api == "gather" || api == "reduce" || api == "gather_object";
}

std::vector<PeerTransfer> BatchTransfers(const Arguments& arguments) {
  std::vector<PeerTransfer> transfers;
  const ValueList* operations = arguments.Operations();
  if (operations == nullptr) return transfers;
  for (const Value& operation : *operations) {
    const std::string op = TextOf(operation, "op");
    if (op.empty()) continue;
    PeerTransfer transfer;
    transfer.direction =
        op.find("send") != std::string::npos ? Transfer::kSend : Transfer::kReceive;
    transfer.peer = IntOf(operation.Find("peer"));
    transfer.tag = IntOf(operation.Find("tag")).value_or(0);
    transfers.push_back(transfer);
  }
  return transfers;
}

PeerTransfer OneTransfer(const Arguments& arguments, std::string_view api, const CommGroup* group) {
  PeerTransfer transfer;
  const bool sends = IsSend(api);
  transfer.direction = sends ? Transfer::kSend : Transfer::kReceive;
  transfer.peer = RankArgument(arguments, sends ? "dst" : "src", group);
  transfer.is_object = api.ends_with("_object_list");
  const auto tag = arguments.KeywordInt("tag");
  const auto positional = transfer.is_object ? std::nullopt : arguments.PositionalInt(kNoTag);
  transfer.tag = tag.value_or(positional.value_or(0));
  return transfer;
}

}  // namespace

std::optional<std::string_view> CommunicationApi(std::string_view call_name) {
  const std::optional<CallName> name = ParseCallName(call_name);
  if (!name || name->prefix != "Distributed" || name->kind != CallKind::kForward) {
    return std::nullopt;
  }
  const std::string_view api = name->path;
  const auto contains = [api](std::string_view part) { return api.find(part) != api.npos; };
  if (!contains(kAllToAll) && std::none_of(kMoves.begin(), kMoves.end(), contains)) {
    return std::nullopt;
  }
  return api;
}

CommCall ReadCommCall(const Call& call, std::string_view api, std::vector<CommGroup>& groups) {
  CommCall out;
  out.name = call.name;
  out.api = api;
  const Arguments arguments(call);
  out.group = ReadGroup(arguments.Group(), groups);
  const CommGroup* group = out.group >= 0 ? &groups[static_cast<size_t>(out.group)] : nullptr;
  if (api.starts_with("batch_")) {
    out.transfers = BatchTransfers(arguments);
    out.waits = false;
  } else if (IsSend(api) || IsReceive(api)) {
    out.transfers = {OneTransfer(arguments, api, group)};
    out.waits = !api.starts_with('i');
  } else if (HasSource(api)) {
    out.root = RankArgument(arguments, "src", group);
  } else if (HasDestination(api)) {
    out.root = RankArgument(arguments, "dst", group);
  }
  out.has_output = call.Find(dump_json::kOutput) != nullptr;
  return out;
}

}  // namespace plumbline
