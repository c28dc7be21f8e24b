#include "base/process/shards.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <span>
#include <utility>

#include "base/file/file.h"
#include "base/memory/digest.h"
#include "base/text/json_members.h"
#include "base/text/json_record.h"
#include "base/text/text_parts.h"
#include "plumbline/c_api.h"

namespace plumbline {
namespace {

using json::Value;

constexpr uint64_t kMostShards = 1000000;
constexpr uint64_t kMostItems = uint64_t{1} << 32;
constexpr std::string_view kFormat = "plumbline shard of a command", kEnding = ".shard";
// Of `plumb compare`, whose shards have a form of their own.
constexpr std::string_view kFormatOfRanks = "plumbline shard";

}  // namespace

std::string DigestOfText(std::string_view text) {
  const Digest128 digest = Xxh3Of(std::as_bytes(std::span(text)));
  return fmt::format("{:016x}{:016x}", digest.high, digest.low);
}

std::string StampOfFile(const std::string& path) {
  const Result<uint64_t> size = FileSize(path);
  const Result<int64_t> time = ModifiedAt(path);
  return size && time ? fmt::format("{} {}", *size, *time) : std::string();
}

Result<ShardPlace> ParseShardPlace(std::string_view text) {
  const size_t mark = text.find('/');
  if (mark != std::string_view::npos) {
    const auto index = ParseNatural(text.substr(0, mark));
    const auto count = ParseNatural(text.substr(mark + 1));
    if (index && count && *index < *count) {
      const ShardPlace place{static_cast<uint64_t>(*index), static_cast<uint64_t>(*count)};
      if (place.count <= kMostShards) return place;
      return Error(ErrorCode::kInvalidArgument,
                   fmt::format("\"{}\" is of too many parts (expected I/N with N up to {})", text,
                               kMostShards));
    }
  }
  return Error(ErrorCode::kInvalidArgument,
               fmt::format("\"{}\" is no part (expected I/N, as 0/4, 1/4, 2/4, 3/4)", text));
}

std::string ShardPath(std::string_view stem, const ShardPlace& place) {
  return fmt::format("{}_{}_of_{}{}", stem, place.index, place.count, kEnding);
}

Result<std::vector<std::string>> ShardFiles(const std::vector<std::string>& paths) {
  std::vector<std::string> files;
  for (const std::string& path : paths) {
    if (KindOf(path) != PathKind::kDirectory) {
      files.push_back(path);
      continue;
    }
    PL_TRY_ASSIGN(const std::vector<std::string> names, ListDirectory(path));
    const size_t before = files.size();
    for (const std::string& name : names) {
      if (name.ends_with(kEnding)) files.push_back(JoinPath(path, name));
    }
    if (files.size() == before) {
      return Error(ErrorCode::kNotFound,
                   fmt::format("{}: has no shards (expected files that plumb compare, precheck, "
                               "overflow or watch wrote with --shard; tables of ranks need "
                               "--config)",
                               path));
    }
  }
  return files;
}

Error DamagedShard(const std::string& path, std::string_view what) {
  return Error(ErrorCode::kCorrupt, fmt::format("{}: {}. Run that shard again", path, what));
}

Error ShardOfAnother(const std::string& path, std::string_view command) {
  return Error(ErrorCode::kInvalidArgument,
               fmt::format("{}: is a shard of plumb {}, others are of another command. Merge the "
                           "shards of one command: name their files",
                           path, command));
}

Status WriteSealedLines(const std::string& path, std::string text, size_t items) {
  text += fmt::format("{{\"ranks\":{},\"digest\":\"{}\"}}\n", items, DigestOfText(text));
  return WriteFileAtomically(path, text, false);
}

Result<std::string_view> CheckSealedLines(const std::string& path, std::string_view text) {
  const Error damaged = DamagedShard(path, "is damaged or cut");
  if (text.empty() || text.back() != '\n') return damaged;
  const size_t last = text.substr(0, text.size() - 1).rfind('\n');
  if (last == std::string_view::npos) return damaged;
  const std::string_view body = text.substr(0, last + 1);
  const Result<Value> end = Value::Parse(text.substr(last + 1));
  if (!end || json::TextAt(*end, "digest") != DigestOfText(body)) return damaged;
  return body;
}

Status CheckAllThere(const std::set<uint64_t>& indexes, uint64_t count, const std::string& path,
                     std::string_view command) {
  constexpr size_t kShown = 16;
  if (indexes.size() == count) return {};
  std::vector<uint64_t> missing;
  for (uint64_t i = 0; i < count; ++i) {
    if (!indexes.contains(i)) missing.push_back(i);
  }
  std::string text = fmt::format(
      "{}", fmt::join(std::span(missing).first(std::min(missing.size(), kShown)), ", "));
  if (missing.size() > kShown) text += fmt::format(" and {} more", missing.size() - kShown);
  return Error(
      ErrorCode::kNotFound,
      fmt::format("{}: of {} shards missing: {}. Run `{} ... --shard {}/{}`",
                  std::string(DirectoryOf(path)), count, text, command, missing.front(), count));
}

// Shards of commands that hand on what they read.

namespace {

// The first line.
struct Header {
  std::string format = std::string(kFormat);
  std::string version = PLUMBLINE_VERSION;
  Shard shard;
};

void VisitRecord(auto& archive, json::RecordOf<Header> auto& header) {
  auto& shard = header.shard;
  archive(header.format, header.version, shard.command, shard.place.index, shard.place.count,
          shard.words, shard.directory, shard.part.state, shard.part.all, shard.part.note);
}

struct ReadShard {
  std::string path;
  Header header;
  std::vector<std::pair<uint64_t, Value>> items;
};

Error NoShard(const std::string& path, const Result<Value>& head) {
  if (head && json::TextAt(*head, "format") == kFormatOfRanks) {
    return ShardOfAnother(path, "compare");
  }
  return Error(
      ErrorCode::kCorrupt,
      fmt::format("{}: is no shard (expected a file that a command with --shard wrote)", path));
}

// kUnsupported: of another version, whose header may have other members.
Result<Header> HeaderOf(const std::string& path, std::string_view line) {
  Header header;
  const Result<Value> value = Value::Parse(line);
  const Value::List* const list = value ? value->AsList() : nullptr;
  if (list == nullptr || list->size() < 2 || list->front() != Value(kFormat)) {
    return NoShard(path, value);
  }
  if ((*list)[1] != Value(PLUMBLINE_VERSION)) {
    return Error(ErrorCode::kUnsupported,
                 fmt::format("{}: is of another version of plumbline (expected {}). Run that "
                             "shard again",
                             path, PLUMBLINE_VERSION));
  }
  const ShardPlace& place = header.shard.place;
  const bool is_good = json::ReadRecord(*value, header) && place.index < place.count &&
                       place.count <= kMostShards && header.shard.part.all <= kMostItems;
  if (!is_good) return DamagedShard(path, "is damaged");
  return header;
}

Result<ReadShard> ReadOneShard(const std::string& path) {
  PL_TRY_ASSIGN(const std::string text, ReadFile(path));
  const size_t first = std::min(text.find('\n'), text.size());
  ReadShard shard{path, {}, {}};
  PL_TRY_ASSIGN(shard.header, HeaderOf(path, std::string_view(text).substr(0, first)));
  PL_TRY_ASSIGN(std::string_view body, CheckSealedLines(path, text));
  body.remove_prefix(first + 1);
  while (!body.empty()) {
    const size_t size = body.find('\n');
    Result<Value> line = Value::Parse(body.substr(0, size));
    const Value::List* const pair = line ? line->AsList() : nullptr;
    const auto index =
        pair != nullptr && pair->size() == 2 ? pair->front().AsNatural() : std::nullopt;
    if (!index || *index >= shard.header.shard.part.all) {
      return DamagedShard(path, "is damaged");
    }
    shard.items.emplace_back(*index, pair->back());
    body.remove_prefix(size + 1);
  }
  return shard;
}

// Why two shards do not belong together.
Status CheckTogether(const ReadShard& first, const ReadShard& other) {
  const Shard &one = first.header.shard, &two = other.header.shard;
  std::string difference;
  if (one.place.count != two.place.count) {
    difference = fmt::format("of {} and of {} shards", one.place.count, two.place.count);
  } else if (one.command != two.command || one.words != two.words) {
    difference = fmt::format("of two commands (plumb {} {}, and plumb {} {})", one.command,
                             fmt::join(one.words, " "), two.command, fmt::join(two.words, " "));
  } else if (one.directory != two.directory) {
    difference = "run in two directories";
  } else if (one.part.state != two.part.state || one.part.all != two.part.all) {
    difference = "the recording, a file that the command names or plumbline changed in between";
  }
  if (difference.empty()) return {};
  return Error(ErrorCode::kInvalidArgument,
               fmt::format("{}: does not go with {}: {}. Merge the shards of one command",
                           first.path, other.path, difference));
}

}  // namespace

Status WriteShard(const std::string& path, const Shard& shard) {
  Header header;
  header.shard = {shard.command,
                  shard.place,
                  shard.words,
                  shard.directory,
                  {shard.part.state, shard.part.all, shard.part.note, {}}};
  std::string text = json::RecordText(header) + '\n';
  if (!Value::Parse(text)) {
    return Error(ErrorCode::kUnsupported,
                 fmt::format("{}: the command has words that are no UTF-8, which a shard cannot "
                             "hold. Run it without --shard",
                             path));
  }
  for (const auto& [index, item] : shard.part.items) {
    // What could not be read again is said here, and not when all have done their part.
    if (!Value::Parse(item)) {
      return Error(
          ErrorCode::kUnsupported,
          fmt::format("{}: the recording has names that are no UTF-8, which a shard cannot "
                      "hold. Run the command without --shard",
                      path));
    }
    text += fmt::format("[{},{}]\n", index, item);
  }
  PL_TRY(MakeDirectories(std::string(DirectoryOf(path))));
  return WriteSealedLines(path, std::move(text), shard.part.items.size());
}

Result<ShardRequest> RequestOfShard(const std::string& path) {
  PL_TRY_ASSIGN(const std::string text, ReadFile(path));
  const std::string_view line = std::string_view(text).substr(0, text.find('\n'));
  const Result<Value> value = Value::Parse(line);
  if (value && json::TextAt(*value, "format") == kFormatOfRanks) {
    ShardRequest request;
    const Value* const words = value->Find("words");
    const Value::List none;
    const Value::List* const list = words == nullptr ? nullptr : words->AsList();
    for (const Value& word : list == nullptr ? none : *list) {
      if (word.AsText() != nullptr) request.words.push_back(*word.AsText());
    }
    return request;
  }
  PL_TRY_ASSIGN(Header header, HeaderOf(path, line));
  return ShardRequest{std::move(header.shard.command), std::move(header.shard.words),
                      std::move(header.shard.directory)};
}

Result<ShardedItems> ReadShardedItems(const std::vector<std::string>& files) {
  ShardedItems all;
  std::optional<ReadShard> first;
  std::set<uint64_t> there;
  std::vector<bool> is_there;
  for (const std::string& file : files) {
    PL_TRY_ASSIGN(ReadShard shard, ReadOneShard(file));
    if (first) PL_TRY(CheckTogether(*first, shard));
    if (!first) {
      all.state = shard.header.shard.part.state;
      all.items.resize(shard.header.shard.part.all);
      all.notes.resize(shard.header.shard.place.count);
      is_there.resize(all.items.size());
    }
    const uint64_t place = shard.header.shard.place.index;
    there.insert(place);
    all.notes[place] = std::move(shard.header.shard.part.note);
    for (auto& [index, item] : shard.items) {
      all.items[index] = std::move(item);
      is_there[index] = true;
    }
    shard.items = {};
    if (!first) first = std::move(shard);
  }
  if (!first) return Error(ErrorCode::kNotFound, "no shard");
  const Shard& chosen = first->header.shard;
  PL_TRY(CheckAllThere(there, chosen.place.count, first->path, "plumb " + chosen.command));
  if (std::find(is_there.begin(), is_there.end(), false) == is_there.end()) return all;
  return DamagedShard(first->path, "and its shards do not have all parts between them");
}

}  // namespace plumbline
