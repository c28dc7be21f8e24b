#include "formats/json/dump_json_value.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>

#include "base/file/streamed_text.h"
#include "base/text/json.h"
#include "base/text/number_text.h"
#include "formats/json/dump_json.h"
#include "formats/json/json_feed.h"
#include "record/value.h"

namespace plumbline::dump_json {

namespace {

using json::Kind;
using json::Number;

std::string_view KindName(Kind kind) {
  switch (kind) {
    case Kind::kNull:
      return "null";
    case Kind::kBool:
      return "true or false";
    case Kind::kNumber:
      return "a number";
    case Kind::kString:
      return "a text";
    case Kind::kArray:
      return "a list";
    case Kind::kObject:
      return "an object";
    case Kind::kNone:
      break;
  }
  return "nothing";
}

double ToDouble(std::string_view digits) {
  double value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc::result_out_of_range) return value;
  const double infinity = std::numeric_limits<double>::infinity();
  return digits[0] == '-' ? -infinity : infinity;
}

// Statistics written as text: "3.5", "nan", "-inf", "12", "None".
std::optional<Statistic> StatisticFromText(std::string_view text) {
  if (text == "None" || text == "null" || text == "N/A") return Statistic();
  json::Reader in(text);
  Number number;
  if (in.Peek() != Kind::kNumber || !in.ReadNumber(number) || !in.ReadEnd()) return std::nullopt;
  if (const auto* digits = std::get_if<std::string_view>(&number)) return ToDouble(*digits);
  if (const auto* integer = std::get_if<int64_t>(&number)) return *integer;
  return std::get<double>(number);
}

// Leaves the last member of each key, at the place of the first, as a Python dict does.
void KeepLastOfEachKey(ValueMap& map) {
  constexpr size_t kFewMembers = 8;
  bool repeated = map.size() > kFewMembers;
  for (size_t i = 1; i < map.size() && !repeated; ++i) {
    const auto before = map.begin() + static_cast<std::ptrdiff_t>(i);
    repeated = std::any_of(map.begin(), before,
                           [&](const auto& member) { return member.first == map[i].first; });
  }
  if (!repeated) return;
  KeepLastOfEach(map, [](const auto& member) -> const std::string& { return member.first; });
}

bool IsText(const ValueMap& map, std::string_view key) {
  return std::any_of(map.begin(), map.end(), [key](const auto& member) {
    return member.first == key && member.second.template As<std::string>() != nullptr;
  });
}

}  // namespace

bool ValueReader::WrongType(std::string_view key, std::string_view expected, Kind got) {
  problem_ =
      fmt::format("{} has the wrong type (expected {}, got {})", key, expected, KindName(got));
  return false;
}

bool ValueReader::Read(Value& out) {
  switch (in_.Peek()) {
    case Kind::kNull:
      out = Value();
      return in_.ReadNull();
    case Kind::kBool: {
      bool truth;
      if (!in_.ReadBool(truth)) return false;
      out = truth;
      return true;
    }
    case Kind::kNumber:
      return ReadNumber(out);
    case Kind::kString: {
      std::string_view text;
      if (!in_.ReadString(text)) return false;
      out = std::string(text);
      return true;
    }
    case Kind::kArray:
      return ReadList(out);
    case Kind::kObject:
      return ReadObject(out);
    case Kind::kNone:
      break;
  }
  return in_.SkipValue();  // fails and says where
}

bool ValueReader::ReadNumber(Value& out) {
  Number number;
  if (!in_.ReadNumber(number)) return false;
  if (const auto* integer = std::get_if<int64_t>(&number)) {
    out = *integer;
  } else if (const auto* real = std::get_if<double>(&number)) {
    out = *real;
  } else {
    out = BigInt{std::string(std::get<std::string_view>(number))};
  }
  return true;
}

bool ValueReader::ReadList(Value& out) {
  if (!in_.EnterArray()) return false;
  auto& list = out.Emplace<ValueList>();
  while (in_.NextElement()) {
    if (!Read(list.emplace_back())) return false;
  }
  return !in_.failed();
}

bool ValueReader::ReadMembers(ValueMap& out) {
  if (!in_.EnterObject()) return false;
  std::string_view key;
  while (in_.NextMember(key)) {
    out.emplace_back(key, Value());
    if (!Read(out.back().second)) return false;
  }
  KeepLastOfEachKey(out);
  return !in_.failed();
}

bool ValueReader::ReadObject(Value& out) {
  if (const Head* head = EnterKnownHead()) {
    auto& tensor = out.Emplace<TensorRecord>();
    tensor.type = head->type;
    tensor.dtype_text = head->dtype_text;
    tensor.shape = head->shape;
    return ReadStatistic(in_, kMax, tensor.max) && ReadTensor(in_, tensor, {true, true, {}});
  }
  const size_t start = in_.offset();
  if (!in_.EnterObject()) return false;
  ValueMap map;
  std::string_view key;
  while (in_.NextMember(key)) {
    const bool tensor =
        key == kDType && map.size() == 1 && IsText(map, kType) && in_.Peek() == Kind::kString;
    if (tensor) {
      std::string type = std::move(*map[0].second.As<std::string>());
      auto& record = out.Emplace<TensorRecord>();
      record.type = std::move(type);
      return ReadTensorMember(in_, kDType, record) && ReadTensor(in_, record, {true, false, start});
    }
    map.emplace_back(key, Value());
    if (!Read(map.back().second)) return false;
  }
  if (in_.failed()) return false;
  KeepLastOfEachKey(map);
  if (IsText(map, kType) && IsText(map, kDType)) {
    // A tensor with its keys in an unusual order: read it again, now knowing that.
    json::Reader again(feed_.text().substr(start, in_.offset() - start));
    return again.EnterObject() && ReadTensor(again, out.Emplace<TensorRecord>(), {});
  }
  out = std::move(map);
  return true;
}

const ValueReader::Head* ValueReader::EnterKnownHead() {
  for (const Head& head : heads_) {
    if (head.text.empty()) return nullptr;
    if (in_.EnterKnown(head.text)) return &head;
  }
  return nullptr;
}

void ValueReader::RememberHead(size_t start, const TensorRecord& tensor) {
  const std::string_view text = feed_.text().substr(start, in_.offset() - start);
  heads_[oldest_head_] = {std::string(text), tensor.type, tensor.dtype_text, tensor.shape};
  oldest_head_ = (oldest_head_ + 1) % heads_.size();
}

bool ValueReader::ReadTensor(json::Reader& in, TensorRecord& tensor, Progress progress) {
  std::string_view key;
  while (in.NextMember(key)) {
    // Only where nothing but type, dtype and shape stands before: that is all a head keeps.
    if (progress.start && key == kMax && progress.has_shape) RememberHead(*progress.start, tensor);
    if (progress.has_shape || key != kShape) progress.start.reset();
    progress.has_shape = progress.has_shape || key == kShape;
    if (!progress.has_type && key == kType) {
      std::string_view text;
      if (in.Peek() != Kind::kString) return WrongType(kType, "a text", in.Peek());
      if (!in.ReadString(text)) return false;
      tensor.type = text;
    } else if (!ReadTensorMember(in, key, tensor)) {
      return false;
    }
  }
  if (in.failed()) return false;
  if (!progress.has_shape) {
    problem_ = "a tensor has no shape";
    return false;
  }
  return true;
}

bool ValueReader::ReadTensorMember(json::Reader& in, std::string_view key, TensorRecord& tensor) {
  if (key == kDType) {
    std::string_view text;
    if (in.Peek() != Kind::kString) return WrongType(key, "a text", in.Peek());
    if (!in.ReadString(text)) return false;
    tensor.dtype_text = text;
    return true;
  }
  if (key == kShape) return ReadShape(in, tensor.shape);
  if (key == kMax) return ReadStatistic(in, kMax, tensor.max);
  if (key == kMin) return ReadStatistic(in, kMin, tensor.min);
  if (key == kMean) return ReadStatistic(in, kMean, tensor.mean);
  if (key == kNorm) return ReadStatistic(in, kNorm, tensor.norm);
  if (key == kRequiresGrad) return ReadGrad(in, tensor.requires_grad);
  if (key == kMaxFinite) return ReadOptionalStatistic(in, kMaxFinite, tensor.max_finite);
  if (key == kMinFinite) return ReadOptionalStatistic(in, kMinFinite, tensor.min_finite);
  if (key == kDigest) return ReadDigest(in, tensor.digest);
  if (key == kDataName) return ReadOptionalText(in, kDataName, tensor.data_name);
  if (key == kNanCount) return ReadCount(in, kNanCount, tensor.nan_count);
  if (key == kInfCount) return ReadCount(in, kInfCount, tensor.inf_count);
  if (key == kZeroCount) return ReadCount(in, kZeroCount, tensor.zero_count);
  return in.SkipValue();
}

bool ValueReader::ReadStatistic(json::Reader& in, std::string_view key, Statistic& out) {
  const Kind kind = in.Peek();
  if (kind == Kind::kNumber) {
    Number number;
    if (!in.ReadNumber(number)) return false;
    if (const auto* real = std::get_if<double>(&number)) {
      out = *real;
    } else if (const auto* integer = std::get_if<int64_t>(&number)) {
      out = *integer;
    } else {
      out = ToDouble(std::get<std::string_view>(number));
    }
    return true;
  }
  if (kind == Kind::kNull) {
    out = std::monostate();
    return in.ReadNull();
  }
  if (kind == Kind::kBool) {
    bool truth;
    if (!in.ReadBool(truth)) return false;
    out = truth;
    return true;
  }
  if (kind == Kind::kNone) return in.SkipValue();
  std::string_view text;
  if (kind != Kind::kString) return WrongType(key, "a number", kind);
  if (!in.ReadString(text)) return false;
  const auto value = StatisticFromText(text);
  if (!value) return WrongType(key, "a number", kind);
  out = *value;
  return true;
}

bool ValueReader::ReadOptionalStatistic(json::Reader& in, std::string_view key,
                                        std::optional<Statistic>& out) {
  return ReadStatistic(in, key, out.emplace());
}

bool ValueReader::ReadShape(json::Reader& in, Shape& shape) {
  if (in.Peek() == Kind::kNone) return in.SkipValue();
  if (in.Peek() != Kind::kArray) return WrongType(kShape, "a list", in.Peek());
  shape.clear();
  in.EnterArray();
  while (in.NextElement()) {
    Number number;
    if (in.Peek() == Kind::kNone) return in.SkipValue();
    if (in.Peek() != Kind::kNumber) return WrongType(kShape, "a list of sizes", in.Peek());
    if (!in.ReadNumber(number)) return false;
    const auto* size = std::get_if<int64_t>(&number);
    if (size == nullptr || *size < 0) {
      problem_ = "shape holds a number that is no size (expected whole numbers from 0)";
      return false;
    }
    shape.push_back(*size);
  }
  return !in.failed();
}

bool ValueReader::ReadGrad(json::Reader& in, std::optional<bool>& out) {
  switch (in.Peek()) {
    case Kind::kBool:
      return in.ReadBool(out.emplace());
    case Kind::kNull:
      out.reset();
      return in.ReadNull();
    case Kind::kNone:
      return in.SkipValue();
    default:
      return WrongType(kRequiresGrad, "true or false", in.Peek());
  }
}

bool ValueReader::ReadDigest(json::Reader& in, std::optional<std::string>& out) {
  if (in.Peek() != Kind::kNumber) return ReadOptionalText(in, kDigest, out);
  // 26.2.0 stores the value itself instead of an xor digest for tensors without dimensions.
  Number number;
  if (!in.ReadNumber(number)) return false;
  if (const auto* real = std::get_if<double>(&number)) {
    out = PythonFloat(*real);
  } else if (const auto* integer = std::get_if<int64_t>(&number)) {
    out = fmt::to_string(*integer);
  } else {
    out = std::string(std::get<std::string_view>(number));
  }
  return true;
}

bool ValueReader::ReadOptionalText(json::Reader& in, std::string_view key,
                                   std::optional<std::string>& out) {
  std::string_view text;
  switch (in.Peek()) {
    case Kind::kString:
      if (!in.ReadString(text)) return false;
      out = std::string(text);
      return true;
    case Kind::kNull:
      out.reset();
      return in.ReadNull();
    case Kind::kNone:
      return in.SkipValue();
    default:
      return WrongType(key, "a text", in.Peek());
  }
}

bool ValueReader::ReadCount(json::Reader& in, std::string_view key, std::optional<int64_t>& out) {
  if (in.Peek() == Kind::kNone) return in.SkipValue();
  if (in.Peek() != Kind::kNumber) return WrongType(key, "a whole number", in.Peek());
  Number number;
  if (!in.ReadNumber(number)) return false;
  const auto* count = std::get_if<int64_t>(&number);
  if (count == nullptr) return WrongType(key, "a whole number", Kind::kNumber);
  out = *count;
  return true;
}

// dump.json -> header, calls and losses.

namespace {

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
  DumpReader(StreamedText& text, const KeepEntry& keep)
      : feed_(text, kMaxValueDepth + kOuterDepth), in_(feed_.in()), values_(feed_), keep_(&keep) {}
  DumpReader(StreamedText& text, std::function<void(VisitedCall&&)> visit)
      : feed_(text, kMaxValueDepth + kOuterDepth),
        in_(feed_.in()),
        values_(feed_),
        visit_(std::move(visit)),
        visits_problems_(true) {}

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
                 fmt::format("{}; the {} complete entries before it end at byte {}. {}",
                             error.message(), entries_, complete_, kSalvageAdvice));
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
    if (key == kIsMerged && kind == Kind::kBool) {
      if (!in_.ReadBool(file_.header.is_merged)) return in_.error();
      return {};
    }
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
      std::string problem;
      PL_TRY(feed_.Read([&] { return ReadNextEntry(call, begin, has_entry, problem); }));
      if (!has_entry) return {};
      complete_ = in_.offset();
      ++entries_;
      if (visit_) {
        visit_({std::move(call), begin, complete_, std::move(problem)});
        feed_.Release(complete_);
      } else {
        Keep(std::move(call));
      }
    }
  }

  Status ReadNextEntry(Call& call, size_t& begin, bool& has_entry, std::string& problem) {
    std::string_view key;
    has_entry = in_.NextMember(key);
    if (in_.failed()) return in_.error();
    if (!has_entry) return {};
    call = Call();
    call.name = key;
    in_.Peek();  // steps over blanks
    begin = in_.offset();
    problem.clear();
    if (!visits_problems_) return ReadEntry(call);
    const json::Reader at_value = in_;
    const Status read = ReadEntry(call);
    if (read || in_.failed()) return read;
    // The text is in order, and what it holds is none of an entry.
    in_ = at_value;
    if (!in_.SkipValue()) return in_.error().In(call.name);
    problem = read.error().message();
    call.members.clear();
    return {};
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
  bool visits_problems_ = false;  // else they are errors
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

Result<DumpFile> VisitDumpFile(const std::string& path, bool salvage,
                               const std::function<void(VisitedCall&&)>& visit) {
  PL_TRY_ASSIGN(StreamedText text, StreamedText::Open(path));
  auto file = DumpReader(text, visit).Run(salvage);
  if (!file) return file.error().In(path);
  return file;
}

Result<Call> ParseEntry(std::string name, std::string_view text) {
  JsonFeed feed(text, kMaxValueDepth + 1);
  ValueReader values(feed);
  Call call;
  call.kind = KindOfCall(name);
  call.name = std::move(name);
  const bool is_object = feed.in().Peek() == Kind::kObject;
  if (is_object && values.ReadMembers(call.members) && feed.in().ReadEnd()) return call;
  if (feed.in().failed()) return feed.in().error().In(call.name);
  return Error(
      ErrorCode::kCorrupt,
      fmt::format("{}: {}", call.name, is_object ? values.problem() : "the entry is no object"));
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
  PL_TRY_ASSIGN(StreamedText text, StreamedText::Open(path));
  auto file = DumpReader(text, keep).Run(salvage);
  if (!file) return file.error().In(path);
  return file;
}

}  // namespace plumbline::dump_json
