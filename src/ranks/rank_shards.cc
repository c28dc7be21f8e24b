#include "ranks/rank_shards.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "base/file/file.h"
#include "base/text/json.h"
#include "ranks/rank_store.h"
#include "report/result_names.h"

namespace plumbline::ranks {

namespace {

using json::Document;
using json::Value;

constexpr uint64_t kVersion = 2;
constexpr std::string_view kFormat = "plumbline shard";

// What decides which shards belong together.
std::string IdentityOf(const ShardHeader& header) {
  const RankShardRequest& request = header.request;
  return fmt::format("{}\n{}\n{}\n{}\n{}", header.place.count, header.options, request.directory,
                     request.of_graphs, fmt::join(request.words, "\n"));
}

std::string RunPath(const std::string& directory, const ShardHeader& header) {
  const std::string name = fmt::format("run_{}.txt", DigestOfText(IdentityOf(header)));
  return JoinPath(JoinPath(directory, ".compare_ranks"), name);
}

}  // namespace

std::string RankShardPath(const std::string& directory, const ShardPlace& place) {
  return ShardPath(JoinPath(directory, "compare_ranks"), place);
}

Result<std::string> SharedStamp(const std::string& directory, const ShardHeader& header) {
  const std::string path = RunPath(directory, header);
  if (KindOf(path) != PathKind::kFile) {
    PL_TRY(MakeDirectories(std::string(DirectoryOf(path))));
    constexpr std::string_view kSummary[] = {".json"};
    const report::FreeName own = report::FreeStamp(directory, "compare_ranks", kSummary);
    // The first of all processes gives the file its name, complete as it is.
    const std::string draft = fmt::format("{}.{}", path, header.place.index);
    PL_TRY(WriteFileAtomically(draft, own.text, false));
    const bool is_linked = LinkFile(draft, path).has_value();
    if (!is_linked && KindOf(path) == PathKind::kMissing) {
      PL_TRY(RenameFile(draft, path));  // a file system without links
    } else {
      PL_TRY(RemoveFile(draft));
    }
  }
  PL_TRY_ASSIGN(const std::string stamp, ReadFile(path));
  const bool is_stamp = !stamp.empty() && std::ranges::all_of(stamp, [](char letter) {
    return letter == '_' || (letter >= '0' && letter <= '9');
  });
  if (is_stamp) return stamp;
  return Error(ErrorCode::kCorrupt, fmt::format("{}: holds no time. Remove it", path));
}

void ForgetSharedStamp(const std::string& directory, const ShardHeader& header) {
  (void)RemoveFile(RunPath(directory, header));
}

// The file: a line with the header, a line per rank, a line with their number and a digest.

namespace {

void AddDirectory(std::string_view key, const std::optional<load::RankDirectory>& directory,
                  Document& out) {
  out.Key(key);
  if (!directory) {
    out.Raw("null");
    return;
  }
  out.Open('{');
  out.Member("path", directory->path);
  out.Member("name", directory->name);
  out.Key("rank");
  out.Raw(directory->rank ? std::to_string(*directory->rank) : "null");
  out.Close('}');
}

std::string HeaderLine(const ShardHeader& header, const RanksReport& report) {
  Document out;
  out.Open('{');
  out.Member("format", kFormat);
  out.Number("version", kVersion);
  out.Number("shard", header.place.index);
  out.Number("of", header.place.count);
  out.Member("stamp", header.stamp);
  out.Texts("words", header.request.words);
  out.Member("directory", header.request.directory);
  out.Truth("of_graphs", header.request.of_graphs);
  out.Member("options", header.options);
  out.Member("target", report.target_path);
  out.Member("golden", report.golden_path);
  out.Truth("has_steps", report.has_steps);
  out.Number("pairs", report.ranks.size());
  out.Texts("notes", report.notes);
  out.Close('}');
  return out.line();
}

std::string RankText(size_t index, const ComparedRank& rank) {
  Document out;
  out.Open('{');
  out.Number("index", index);
  out.Key("step");
  out.Raw(rank.pair.step ? std::to_string(*rank.pair.step) : "null");
  AddDirectory("target", rank.pair.target, out);
  AddDirectory("golden", rank.pair.golden, out);
  out.Member("recordings", RecordingsDigest(rank.pair));
  out.Number("state", static_cast<uint64_t>(rank.state));
  out.Member("page", rank.page_path);
  if (rank.error) {
    out.Number("code", static_cast<uint64_t>(rank.error->code()));
    out.Member("error", rank.error->message());
  }
  if (rank.outcome) {
    out.Key("outcome");
    out.Raw(FormatOutcome(*rank.outcome));
  }
  out.Close('}');
  return out.line();
}

std::optional<std::string> TextAt(const Value& object, std::string_view key) {
  const Value* const member = object.Find(key);
  const std::string* const text = member == nullptr ? nullptr : member->AsText();
  return text == nullptr ? std::nullopt : std::optional(*text);
}
std::optional<uint64_t> NumberAt(const Value& object, std::string_view key) {
  const Value* const member = object.Find(key);
  return member == nullptr ? std::nullopt : member->AsNatural();
}
std::optional<bool> TruthAt(const Value& object, std::string_view key) {
  const Value* const member = object.Find(key);
  const bool* const truth = member == nullptr ? nullptr : member->AsBool();
  return truth == nullptr ? std::nullopt : std::optional(*truth);
}
std::optional<std::vector<std::string>> TextsAt(const Value& object, std::string_view key) {
  const Value* const member = object.Find(key);
  if (member == nullptr || member->AsList() == nullptr) return std::nullopt;
  std::vector<std::string> texts;
  for (const Value& element : *member->AsList()) {
    if (element.AsText() == nullptr) return std::nullopt;
    texts.push_back(*element.AsText());
  }
  return texts;
}
// False where it is neither a number nor null.
bool TakeOptional(const Value& object, std::string_view key, std::optional<int64_t>& number) {
  const Value* const member = object.Find(key);
  if (member == nullptr) return false;
  number = member->AsInteger();
  return number.has_value() || member->is_null();
}

bool TakeDirectory(const Value& object, std::string_view key,
                   std::optional<load::RankDirectory>& directory) {
  const Value* const member = object.Find(key);
  if (member == nullptr) return false;
  if (member->is_null()) return true;
  load::RankDirectory found;
  const auto path = TextAt(*member, "path"), name = TextAt(*member, "name");
  if (!path || !name || !TakeOptional(*member, "rank", found.rank)) return false;
  found.path = *path;
  found.name = *name;
  directory = std::move(found);
  return true;
}

bool TakeError(const Value& object, ComparedRank& rank) {
  const auto code = NumberAt(object, "code");
  const auto message = TextAt(object, "error");
  if (!code || !message || *code > static_cast<uint64_t>(ErrorCode::kInternal)) return false;
  rank.error = Error(static_cast<ErrorCode>(*code), *message);
  return true;
}

struct ShardRank {
  uint64_t index = 0;
  std::string recordings;
  ComparedRank rank;
};

std::optional<ShardRank> RankFrom(const Value& object) {
  ShardRank found;
  ComparedRank& rank = found.rank;
  const auto index = NumberAt(object, "index"), state = NumberAt(object, "state");
  const auto recordings = TextAt(object, "recordings"), page = TextAt(object, "page");
  const bool is_good = index && state && recordings && page &&
                       *state <= static_cast<uint64_t>(RankState::kMissing) &&
                       TakeOptional(object, "step", rank.pair.step) &&
                       TakeDirectory(object, "target", rank.pair.target) &&
                       TakeDirectory(object, "golden", rank.pair.golden) &&
                       (rank.pair.target || rank.pair.golden);
  if (!is_good) return std::nullopt;
  found.index = *index;
  found.recordings = *recordings;
  rank.state = static_cast<RankState>(*state);
  rank.page_path = *page;
  if (rank.state == RankState::kFailed && !TakeError(object, rank)) return std::nullopt;
  if (rank.state == RankState::kFailed || rank.state == RankState::kMissing) return found;
  const Value* const member = object.Find("outcome");
  auto outcome = member == nullptr ? Error(ErrorCode::kCorrupt, "") : ReadOutcome(*member);
  if (!outcome || !rank.pair.paired()) return std::nullopt;
  rank.outcome = std::move(*outcome);
  return found;
}

struct RankShard {
  std::string path;
  ShardHeader header;
  uint64_t pairs = 0;
  RanksReport head;  // all but its ranks
  std::vector<ShardRank> ranks;
};

bool TakeHeader(const Value& object, RankShard& shard) {
  const auto index = NumberAt(object, "shard"), count = NumberAt(object, "of"),
             pairs = NumberAt(object, "pairs");
  auto stamp = TextAt(object, "stamp"), directory = TextAt(object, "directory"),
       options = TextAt(object, "options"), target = TextAt(object, "target"),
       golden = TextAt(object, "golden");
  auto words = TextsAt(object, "words"), notes = TextsAt(object, "notes");
  const auto of_graphs = TruthAt(object, "of_graphs"), has_steps = TruthAt(object, "has_steps");
  if (!index || !count || !pairs || !stamp || !directory || !options || !target || !golden ||
      !words || !notes || !of_graphs || !has_steps || *index >= *count) {
    return false;
  }
  shard.header = {{*index, *count},
                  {std::move(*words), std::move(*directory), *of_graphs},
                  std::move(*options),
                  std::move(*stamp)};
  shard.pairs = *pairs;
  shard.head.target_path = std::move(*target);
  shard.head.golden_path = std::move(*golden);
  shard.head.has_steps = *has_steps;
  shard.head.notes = std::move(*notes);
  return true;
}

Result<RankShard> ReadRankShard(const std::string& path) {
  PL_TRY_ASSIGN(const std::string text, ReadFile(path));
  RankShard shard;
  shard.path = path;
  const size_t first = std::min(text.find('\n'), text.size());
  const Result<Value> head = Value::Parse(std::string_view(text).substr(0, first));
  if (!head || TextAt(*head, "format") != kFormat) {
    const Result<ShardRequest> other = RequestOfShard(path);
    if (other && !other->command.empty()) return ShardOfAnother(path, other->command);
    return Error(
        ErrorCode::kCorrupt,
        fmt::format("{}: is no shard (expected a file that `plumb compare --shard` wrote)", path));
  }
  if (NumberAt(*head, "version") != kVersion) {
    return Error(ErrorCode::kUnsupported,
                 fmt::format("{}: is of another version of plumbline (expected form {}). Compare "
                             "that shard again",
                             path, kVersion));
  }
  PL_TRY_ASSIGN(std::string_view body, CheckSealedLines(path, text));
  if (!TakeHeader(*head, shard)) return DamagedShard(path, "is damaged");
  body.remove_prefix(first + 1);
  while (!body.empty()) {
    const size_t size = body.find('\n');
    const Result<Value> line = Value::Parse(body.substr(0, size));
    std::optional<ShardRank> rank = line ? RankFrom(*line) : std::nullopt;
    if (!rank || rank->index >= shard.pairs) return DamagedShard(path, "is damaged");
    shard.ranks.push_back(std::move(*rank));
    body.remove_prefix(size + 1);
  }
  return shard;
}

}  // namespace

Status WriteRankShard(const std::string& path, const ShardHeader& header, const RanksReport& report,
                      std::span<const size_t> part) {
  std::string text = HeaderLine(header, report) + '\n';
  for (const size_t index : part) {
    const std::string line = RankText(index, report.ranks[index]);
    // What could not be read again is said here, and not when all have done their part.
    const Result<Value> again = Value::Parse(line);
    if (!again || !RankFrom(*again)) {
      return Error(ErrorCode::kUnsupported,
                   fmt::format("{}: {} has names that are no UTF-8, which a shard cannot hold. "
                               "Compare without --shard",
                               path, report.ranks[index].pair.label()));
    }
    text += line + '\n';
  }
  return WriteSealedLines(path, std::move(text), part.size());
}

namespace {

// Why two shards do not belong together.
Status CheckTogether(const RankShard& first, const RankShard& other) {
  const auto differ = [&](const std::string& what) {
    return Error(ErrorCode::kInvalidArgument,
                 fmt::format("{} and {}: {}. Merge the shards of one comparison", first.path,
                             other.path, what));
  };
  const ShardHeader &one = first.header, &two = other.header;
  if (one.place.count != two.place.count) {
    return differ(fmt::format("of {} and of {} shards", one.place.count, two.place.count));
  }
  if (one.request.words != two.request.words) {
    return differ(fmt::format("of two commands (plumb compare {}, and plumb compare {})",
                              fmt::join(one.request.words, " "),
                              fmt::join(two.request.words, " ")));
  }
  if (IdentityOf(one) != IdentityOf(two)) {
    return differ("run in two directories, or a file that the command names changed in between");
  }
  const bool is_same = first.pairs == other.pairs &&
                       first.head.target_path == other.head.target_path &&
                       first.head.golden_path == other.head.golden_path;
  if (!is_same) return differ("the ranks of the recordings were not the same");
  return {};
}

Status CheckComplete(const std::map<uint64_t, RankShard>& shards, const RankShard& first) {
  std::set<uint64_t> indexes;
  for (const auto& [index, shard] : shards) indexes.insert(index);
  return CheckAllThere(indexes, first.header.place.count, first.path, "plumb compare");
}

Status PutRanks(RankShard& shard, std::vector<bool>& is_there, RanksReport& report) {
  for (ShardRank& rank : shard.ranks) {
    if (is_there[rank.index]) return DamagedShard(shard.path, "has a rank of another shard");
    const std::string now = RecordingsDigest(rank.rank.pair);
    if (!now.empty() && now != rank.recordings) {
      return Error(ErrorCode::kInvalidArgument,
                   fmt::format("{}: {} has changed since it was compared. Compare that shard again",
                               shard.path, rank.rank.pair.label()));
    }
    is_there[rank.index] = true;
    rank.rank.shard = fmt::format("{}/{}", shard.header.place.index, shard.header.place.count);
    report.ranks[rank.index] = std::move(rank.rank);
  }
  shard.ranks = {};
  return {};
}

}  // namespace

Result<ShardSet> ReadShards(const std::vector<std::string>& files) {
  std::map<uint64_t, RankShard> shards;
  std::optional<uint64_t> first;  // named first
  for (const std::string& file : files) {
    PL_TRY_ASSIGN(RankShard shard, ReadRankShard(file));
    const uint64_t index = shard.header.place.index;
    if (first) PL_TRY(CheckTogether(shards.at(*first), shard));
    if (!first) first = index;
    const auto [at, is_new] = shards.try_emplace(index, std::move(shard));
    if (!is_new && at->second.header.stamp < shard.header.stamp) at->second = std::move(shard);
  }
  PL_TRY(CheckComplete(shards, shards.at(*first)));
  const RankShard& chosen = shards.at(*first);
  ShardSet set{chosen.header, chosen.head, chosen.path};
  set.report.ranks.resize(chosen.pairs);
  std::vector<bool> is_there(chosen.pairs);
  for (auto& [index, shard] : shards) {
    set.header.stamp = std::max(set.header.stamp, shard.header.stamp);
    PL_TRY(PutRanks(shard, is_there, set.report));
  }
  if (std::find(is_there.begin(), is_there.end(), false) != is_there.end()) {
    return DamagedShard(set.path, "and its shards do not have all ranks between them");
  }
  return set;
}

}  // namespace plumbline::ranks
