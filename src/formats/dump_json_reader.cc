// dump.json -> header, calls and losses.

#include <fmt/format.h>

#include <algorithm>

#include "base/file_text.h"
#include "base/json.h"
#include "formats/dump_json.h"
#include "formats/dump_json_keys.h"
#include "formats/dump_json_value.h"
#include "formats/json_feed.h"
#include "formats/keep_last.h"
#include "record/value.h"

namespace plumbline::dump_json {
namespace {

using json::Kind;

// Nesting of argument values that is read: 400 containers, as many as are written (upstream's
// newest release has the same limit), in the list of arguments, and around a tensor and its shape.
constexpr int kMaxValueDepth = 403;
// The document, "data", and the entry itself.
constexpr int kOuterDepth = 3;
constexpr std::string_view kDebugLevel = "debug";

// Calls f for every tensor below `value`, until it returns true. Depth is bounded by the reader.
template <class F>
bool AnyTensor(const Value& value, const F& f) {
  if (const auto* tensor = value.As<TensorRecord>()) return f(*tensor);
  if (const auto* list = value.As<ValueList>()) {
    return std::any_of(list->begin(), list->end(), [&](const Value& v) { return AnyTensor(v, f); });
  }
  if (const auto* map = value.As<ValueMap>()) {
    return std::any_of(map->begin(), map->end(),
                       [&](const auto& member) { return AnyTensor(member.second, f); });
  }
  return false;
}

template <class F>
bool AnyTensorOf(const Call& call, const F& f) {
  return std::any_of(call.members.begin(), call.members.end(),
                     [&](const auto& member) { return AnyTensor(member.second, f); });
}

bool LooksLikeMindSpore(const TensorRecord& tensor) {
  // PyTorch spells "torch.float32", NumPy "float32", MindSpore "Float32".
  return tensor.type.starts_with("mindspore.") ||
         (!tensor.dtype_text.empty() && tensor.dtype_text[0] >= 'A' && tensor.dtype_text[0] <= 'Z');
}

// What the entries tell about header fields that are missing.
class EntryFacts {
 public:
  // `header`: as far as it is known; what stands in it needs no facts.
  void Add(const Call& call, const RunHeader& header) {
    const bool module = call.name.starts_with("Module.") || call.name.starts_with("Cell.");
    (module ? modules_ : apis_) = true;
    if (header.task.empty() && !tensors_) {
      tensors_ = AnyTensorOf(call, [](const TensorRecord& t) { return t.data_name.has_value(); });
    }
    if (header.framework.empty() && !mindspore_) {
      mindspore_ = AnyTensorOf(call, LooksLikeMindSpore);
    }
  }

  void Complete(RunHeader& header) const {
    if (header.task.empty()) header.task = tensors_ ? "tensor" : "statistics";
    if (header.level.empty()) header.level = !modules_ ? "L1" : apis_ ? "mix" : "L0";
    if (header.framework.empty()) header.framework = mindspore_ ? "mindspore" : "pytorch";
  }

 private:
  bool modules_ = false, apis_ = false, tensors_ = false, mindspore_ = false;
};

class DumpReader {
 public:
  // Without `visit` the entries are kept.
  explicit DumpReader(std::string_view text, std::function<void(VisitedCall&&)> visit = nullptr)
      : feed_(text, kMaxValueDepth + kOuterDepth),
        in_(feed_.in()),
        values_(feed_),
        visit_(std::move(visit)) {}

  // See KeepEntry; `text` is loaded as it is read, and given back.
  DumpReader(FileText& text, const KeepEntry& keep)
      : feed_(text, kMaxValueDepth + kOuterDepth), in_(feed_.in()), values_(feed_), keep_(&keep) {}

  Result<DumpFile> Run(bool salvage) {
    Status read = ReadDocument();
    if (!read) {
      if (!Salvageable(salvage)) return Explain(read.error());
      file_.loss.truncated = true;
      file_.loss.byte_offset = complete_;
    }
    if (visit_) return std::move(file_);
    file_.loss.duplicate_names = KeepLastOfEach(
        file_.calls, [](const Call& call) -> const std::string& { return call.name; });
    facts_.Complete(file_.header);
    return std::move(file_);
  }

 private:
  // Damage of the text itself; wrong types and too deep values are not a matter of truncation.
  [[nodiscard]] bool Damaged() const {
    return in_.failure() == json::Reader::Failure::kTruncated ||
           in_.failure() == json::Reader::Failure::kSyntax;
  }
  [[nodiscard]] bool Salvageable(bool salvage) const { return salvage && in_data_ && Damaged(); }

  [[nodiscard]] Error Explain(const Error& error) const {
    if (!in_data_ || !Damaged()) return error;
    return Error(error.code(),
                 fmt::format("{}; the {} complete entries before it end at byte {}. Read these "
                             "alone with --salvage",
                             error.message(), entries_, complete_));
  }

  Status ReadDocument() {
    std::string key;
    bool has_member = false;
    const auto enter = [&]() -> Status {
      if (!in_.EnterObject()) return in_.error();
      return {};
    };
    const auto next = [&]() -> Status {
      std::string_view name;
      has_member = in_.NextMember(name);
      if (in_.failed()) return in_.error();
      key = name;
      return {};
    };
    PL_TRY(feed_.Read(enter));
    PL_TRY(feed_.Read(next));
    while (has_member) {
      if (key == kData) {
        if (file_.header.level.empty()) LookAhead();
        PL_TRY(ReadEntries());
      } else {
        PL_TRY(feed_.Read([&] { return ReadHeaderMember(key); }));
      }
      PL_TRY(feed_.Read(next));
    }
    PL_TRY(feed_.ReadEnd());
    if (!in_data_) {
      return Error(ErrorCode::kCorrupt,
                   "no \"data\" object (expected the dump.json of a recording)");
    }
    return {};
  }

  // What an entry means depends on the level, which stands behind the entries where a tool has
  // sorted the keys. Damage is reported when it is read for good.
  void LookAhead() {
    const json::Reader here = in_;
    std::string_view key;
    bool more = in_.SkipValue();
    while (more && in_.NextMember(key)) {
      more = key == kData ? in_.SkipValue() : static_cast<bool>(ReadHeaderMember(key));
    }
    in_ = here;
  }

  Status ReadHeaderMember(std::string_view key) {
    std::string* field = nullptr;
    if (key == kTask) field = &file_.header.task;
    if (key == kLevel) field = &file_.header.level;
    if (key == kFramework) field = &file_.header.framework;
    if (key == kDumpDataDir) field = &file_.header.dump_data_dir;
    const Kind kind = in_.Peek();
    if (field == nullptr || kind == Kind::kNull || kind == Kind::kNone) {
      if (!in_.SkipValue()) return in_.error();
      return {};
    }
    const std::string name(key);
    std::string_view text;
    if (kind != Kind::kString) {
      return Error(ErrorCode::kCorrupt,
                   fmt::format("header field {} is no text (byte {})", name, in_.offset()));
    }
    if (!in_.ReadString(text)) return in_.error();
    *field = text;
    return {};
  }

  Status EnterEntries() {
    if (in_data_) {
      // Readers that keep the last one and readers that keep the first one would disagree.
      return Error(ErrorCode::kCorrupt,
                   fmt::format("a second \"data\" (byte {}; expected one). Remove the one that "
                               "does not belong to this recording",
                               in_.offset()));
    }
    if (in_.Peek() != Kind::kObject && in_.Peek() != Kind::kNone) {
      return Error(ErrorCode::kCorrupt,
                   fmt::format("\"data\" is no object (byte {})", in_.offset()));
    }
    in_data_ = in_.EnterObject();
    if (in_.failed()) return in_.error();
    return {};
  }

  Status ReadEntries() {
    PL_TRY(feed_.Read([&] { return EnterEntries(); }));
    complete_ = in_.offset();
    for (;;) {
      Call call;
      size_t begin = 0;
      bool has_entry = false;
      PL_TRY(feed_.Read([&] { return ReadNextEntry(call, begin, has_entry); }));
      if (!has_entry) return {};
      complete_ = in_.offset();
      ++entries_;
      if (visit_) {
        visit_({std::move(call), begin, complete_});
      } else {
        Keep(std::move(call));
      }
    }
  }

  Status ReadNextEntry(Call& call, size_t& begin, bool& has_entry) {
    std::string_view key;
    has_entry = in_.NextMember(key);
    if (in_.failed()) return in_.error();
    if (!has_entry) return {};
    call = Call();
    call.name = key;
    in_.Peek();  // steps over blanks
    begin = in_.offset();
    return ReadEntry(call);
  }

  void Keep(Call&& call) {
    facts_.Add(call, file_.header);
    const bool wanted = keep_ == nullptr || !*keep_ || (*keep_)(call, file_.header);
    if (wanted) file_.calls.push_back(std::move(call));
    feed_.Release(complete_);
  }

  Status ReadEntry(Call& call) {
    call.kind = KindOfCall(call.name);
    bool read = false;
    // debug.json holds the saved structure itself: a tensor, list or null becomes one nameless
    // member.
    if (file_.header.level == kDebugLevel) {
      Value value;
      read = values_.Read(value);
      if (auto* members = value.As<ValueMap>()) {
        call.members = std::move(*members);
      } else {
        call.members.emplace_back("", std::move(value));
      }
    } else if (in_.Peek() == Kind::kObject || in_.Peek() == Kind::kNone) {
      read = values_.ReadMembers(call.members);
    } else {
      return Error(ErrorCode::kCorrupt,
                   fmt::format("{}: the entry is no object (byte {})", call.name, in_.offset()));
    }
    if (read) return {};
    if (in_.failed()) return in_.error().In(call.name);
    return Error(ErrorCode::kCorrupt, fmt::format("{}: {} (before byte {})", call.name,
                                                  values_.problem(), in_.offset()));
  }

  JsonFeed feed_;
  json::Reader& in_;
  ValueReader values_;
  DumpFile file_;
  EntryFacts facts_;
  std::function<void(VisitedCall&&)> visit_;
  const KeepEntry* keep_ = nullptr;
  bool in_data_ = false;
  uint64_t entries_ = 0;  // complete ones
  size_t complete_ = 0;   // end of the last complete entry
};

}  // namespace

Result<DumpFile> VisitDump(std::string_view text, bool salvage,
                           const std::function<void(VisitedCall&&)>& visit) {
  return DumpReader(text, visit).Run(salvage);
}

Result<std::vector<std::string>> ParseNames(std::string_view text) {
  json::Reader in(text, kMaxValueDepth + kOuterDepth);
  std::vector<std::string> names;
  std::string_view key;
  bool in_data = false;
  if (!in.EnterObject()) return in.error();
  while (in.NextMember(key)) {
    if (key != kData || in.Peek() != Kind::kObject) {
      if (!in.SkipValue()) break;
      continue;
    }
    if (in_data) return Error(ErrorCode::kCorrupt, "a second \"data\" (expected one)");
    in_data = in.EnterObject();
    while (in.NextMember(key)) {
      names.emplace_back(key);
      if (!in.SkipValue()) break;
    }
  }
  if (in.failed() || !in.ReadEnd()) return in.error();
  if (!in_data) {
    return Error(ErrorCode::kCorrupt, "no \"data\" object (expected the dump.json of a recording)");
  }
  return names;
}

Result<DumpFile> ParseDump(std::string_view text, bool salvage) {
  return DumpReader(text).Run(salvage);
}

Result<DumpFile> ReadDump(const std::string& path, bool salvage, const KeepEntry& keep) {
  PL_TRY_ASSIGN(FileText text, FileText::Open(path));
  auto file = DumpReader(text, keep).Run(salvage);
  if (!file) return file.error().In(path);
  return file;
}

}  // namespace plumbline::dump_json
