#include "precheck/call_plan.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <map>
#include <span>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "base/file/file.h"
#include "base/memory/digest.h"
#include "base/text/number_text.h"
#include "formats/json/dump_json.h"
#include "plumbline/run.h"
#include "precheck/api_inventory.h"
#include "precheck/preparation.h"
#include "record/run_files.h"

namespace plumbline::precheck {

namespace {

constexpr std::string_view kForward = ".forward";
constexpr std::string_view kBackward = ".backward";

// Entries that are no calls of APIs, by their first part: those of modules and of optimizers.
constexpr std::string_view kOtherEntries[] = {"Module.", "Cell.", "Optimizer."};

bool IsOtherEntry(std::string_view name) {
  const bool by_start = std::ranges::any_of(
      kOtherEntries, [name](std::string_view start) { return name.starts_with(start); });
  return by_start || name.find(".parameters_grad") != std::string_view::npos;
}

std::string EntryOf(const PlannedCall& call, std::string_view direction) {
  return call.name + std::string(direction);
}

// What a call is like apart from its values: types, shapes, gradient flags, everything that is no
// tensor. Two calls of one API whose texts are equal compute the same on different numbers.
class Signature {
 public:
  void Add(const Value& value) {
    std::visit([this](const auto& v) { Write(v); }, value.storage());
  }
  void AddText(std::string_view text) {
    text_ += std::to_string(text.size());
    text_ += ':';
    text_ += text;
  }
  [[nodiscard]] Digest128 Finish() const { return Xxh3Of(std::as_bytes(std::span(text_))); }

 private:
  void Write(std::monostate) { text_ += 'n'; }
  void Write(bool truth) { text_ += truth ? 't' : 'f'; }
  void Write(int64_t number) { text_ += fmt::format("i{};", number); }
  void Write(double number) { text_ += fmt::format("d{};", number); }
  void Write(const BigInt& number) { text_ += fmt::format("i{};", number.digits); }
  void Write(const std::string& text) {
    text_ += 's';
    AddText(text);
  }
  void Write(const ValueList& list) {
    text_ += '[';
    for (const Value& item : list) Add(item);
    text_ += ']';
  }
  void Write(const ValueMap& map) {
    text_ += '{';
    for (const auto& [key, item] : map) {
      AddText(key);
      Add(item);
    }
    text_ += '}';
  }
  void Write(const TensorRecord& tensor) {
    text_ += 'T';
    AddText(tensor.type);
    AddText(tensor.dtype_text);
    for (const int64_t size : tensor.shape) text_ += fmt::format("{},", size);
    text_ += tensor.requires_grad.value_or(false) ? 'g' : '-';
  }

  std::string text_;
};

double BytesOf(const Value& value) {
  if (const auto* tensor = value.As<TensorRecord>()) {
    constexpr double kUnknownElement = 4;
    const std::optional<DType> dtype = ParseDType(tensor->dtype_text);
    double bytes = dtype ? InfoOf(*dtype).size_bytes : kUnknownElement;
    for (const int64_t size : tensor->shape) bytes *= static_cast<double>(size);
    return bytes;
  }
  double bytes = 0;
  if (const auto* list = value.As<ValueList>()) {
    for (const Value& item : *list) bytes += BytesOf(item);
  }
  if (const auto* map = value.As<ValueMap>()) {
    for (const auto& [key, item] : *map) bytes += BytesOf(item);
  }
  return bytes;
}

// The first tensor of a tree; null: there is none.
const TensorRecord* FirstTensor(const Value& value) {
  if (const auto* tensor = value.As<TensorRecord>()) return tensor;
  const TensorRecord* found = nullptr;
  if (const auto* list = value.As<ValueList>()) {
    for (size_t i = 0; i < list->size() && found == nullptr; ++i) found = FirstTensor((*list)[i]);
  }
  if (const auto* map = value.As<ValueMap>()) {
    for (size_t i = 0; i < map->size() && found == nullptr; ++i) {
      found = FirstTensor((*map)[i].second);
    }
  }
  return found;
}

// Bytes of the members of an entry that go into the call.
double InputBytes(const Call& call) {
  double bytes = 0;
  for (const std::string_view key :
       {dump_json::kInputArgs, dump_json::kInputKwargs, dump_json::kInput}) {
    const Value* const value = call.Find(key);
    if (value != nullptr) bytes += BytesOf(*value);
  }
  return bytes;
}

// Autocast depends on the type of the first output, so that one is a part of what a call is like.
Digest128 SignatureOf(const Call& call) {
  Signature signature;
  for (const std::string_view key :
       {dump_json::kInputArgs, dump_json::kInputKwargs, dump_json::kInput, dump_json::kOutput}) {
    const Value* const value = call.Find(key);
    if (value == nullptr) continue;
    signature.AddText(key);
    signature.Add(*value);
  }
  return signature.Finish();
}

bool Lists(const std::vector<std::string>& names, std::string_view api) {
  return std::ranges::find(names, api) != names.end();
}

uint64_t MachineMemory() {
  const long pages = ::sysconf(_SC_PHYS_PAGES), page_bytes = ::sysconf(_SC_PAGESIZE);
  if (pages <= 0 || page_bytes <= 0) return uint64_t{1} << 40;
  return static_cast<uint64_t>(pages) * static_cast<uint64_t>(page_bytes);
}

// Gathers the entries of a dump as they are read.
class Gatherer {
 public:
  explicit Gatherer(const PlanOptions& options) : options_(options) {}

  void Add(const dump_json::VisitedCall& visited) {
    const std::string_view name = visited.call.name;
    if (IsOtherEntry(name)) {
      ++others_;
      return;
    }
    const bool is_forward = name.ends_with(kForward);
    if (!is_forward && !name.ends_with(kBackward)) {
      if (bad_name_.empty()) bad_name_ = name.substr(0, kShownName);
      return;
    }
    const size_t suffix = is_forward ? kForward.size() : kBackward.size();
    Row& row = RowOf(std::string(name.substr(0, name.size() - suffix)));
    EntryRange& range = is_forward ? row.call.forward : row.call.backward;
    odd_.Add(visited, !range.empty());
    range = {visited.begin, visited.end};
    (is_forward ? row.forward_bytes : row.backward_bytes) = InputBytes(visited.call);
    if (framework_.empty()) FindFramework(visited.call);
    // What cannot be read is no sign of a recording without arguments.
    has_inputs_ = has_inputs_ || !visited.problem.empty() ||
                  visited.call.Find(dump_json::kInputArgs) != nullptr;
    if (!options_.dedupe) return;
    (is_forward ? row.forward_digest : row.backward_digest) = SignatureOf(visited.call);
  }

  [[nodiscard]] const OddEntries& odd() const { return odd_; }
  // By the type of the first tensor, for files that do not say it; empty: there is none.
  [[nodiscard]] std::string_view framework() const { return framework_; }

  // Whether these entries are calls that can be run; names `path`.
  [[nodiscard]] plumbline::Status Check(const std::string& path, const RunHeader& header) const {
    const auto refuse = [&](ErrorCode code, std::string_view problem) {
      return Error(code, fmt::format("{}: {}", path, problem));
    };
    constexpr ErrorCode kWrongRecording = ErrorCode::kInvalidArgument;
    constexpr std::string_view kAdvice =
        "Record with level L1 or mix and task statistics or tensor";
    if (header.holds_saves()) {
      return refuse(kWrongRecording,
                    fmt::format("holds saved values, not calls (level debug). {}", kAdvice));
    }
    if (!bad_name_.empty()) {
      return refuse(ErrorCode::kCorrupt,
                    fmt::format("the entry {} is of no known kind (expected a name that ends in "
                                ".forward or .backward). Remove it, or record again",
                                bad_name_));
    }
    if (rows_.empty() && (others_ > 0 || header.level == "L0")) {
      return refuse(kWrongRecording,
                    fmt::format("holds modules and no calls of APIs (level {}). {}",
                                header.level.empty() ? "L0" : header.level, kAdvice));
    }
    if (!rows_.empty() && !has_inputs_) {
      return refuse(kWrongRecording,
                    fmt::format("its calls are recorded without their arguments (task {}). {}, "
                                "and with data_mode all",
                                header.task.empty() ? "unknown" : header.task, kAdvice));
    }
    return {};
  }

  // The calls in the order of their forward entries; `warnings` gets what was left out of `path`.
  std::vector<PlannedCall> Finish(const std::string& path, std::vector<std::string>& warnings) {
    odd_.Tell(path, warnings);
    const auto has_no_forward = [](const Row& row) { return row.call.forward.empty(); };
    if (const auto first = std::ranges::find_if(rows_, has_no_forward); first != rows_.end()) {
      const std::string name = first->call.name;
      const size_t count = std::erase_if(rows_, has_no_forward);
      warnings.push_back(
          fmt::format("{} without a forward in the recording {} not checked, such as "
                      "{}{}",
                      CountText(count, "backward"), count == 1 ? "is" : "are", name, kBackward));
    }
    std::ranges::sort(rows_, {}, [](const Row& row) { return row.call.forward.begin; });
    std::map<GroupKey, size_t> groups;  // -> index of the call that stands for the group
    std::vector<PlannedCall> calls;
    size_t merged = 0;
    for (Row& row : rows_) {
      PlannedCall& call = row.call;
      call.skip = WhyNotRun(call.name, options_);
      if (!call.skip) call.skip = odd_.WhyNot(EntryOf(call, kForward));
      call.cost = (row.forward_bytes + row.backward_bytes) * WorkPerByte(call.api());
      // Nobody knows what a call is like that was not read.
      if (options_.dedupe && !IsUnread(call)) {
        const auto [group, is_new] = groups.emplace(KeyOf(row), calls.size());
        if (!is_new) {
          ++calls[group->second].merged_calls;
          ++merged;
          continue;
        }
      }
      calls.push_back(std::move(call));
    }
    if (calls.empty()) warnings.emplace_back("there are no calls to check");
    if (merged > 0) {
      warnings.push_back(
          fmt::format("{} calls that differ from another in values alone are merged "
                      "with it",
                      merged));
    }
    return calls;
  }

 private:
  static constexpr size_t kShownName = 200;
  struct Row {
    PlannedCall call;
    double forward_bytes = 0, backward_bytes = 0;
    Digest128 forward_digest, backward_digest;
  };
  using GroupKey = std::tuple<std::string, Digest128, Digest128>;

  [[nodiscard]] bool IsUnread(const PlannedCall& call) const {
    return odd_.WhyNot(EntryOf(call, kForward)) || odd_.WhyNot(EntryOf(call, kBackward));
  }

  void FindFramework(const Call& call) {
    const TensorRecord* tensor = nullptr;
    for (size_t i = 0; i < call.members.size() && tensor == nullptr; ++i) {
      tensor = FirstTensor(call.members[i].second);
    }
    if (tensor == nullptr) return;
    framework_ = tensor->type.starts_with("mindspore.") ? "mindspore" : "pytorch";
  }

  Row& RowOf(std::string name) {
    const auto [found, is_new] = index_.emplace(std::move(name), rows_.size());
    if (is_new) rows_.emplace_back().call.name = found->first;
    return rows_[found->second];
  }

  // Of the name without its number, and what the call is like.
  static GroupKey KeyOf(const Row& row) {
    const std::string& name = row.call.name;
    return {name.substr(0, name.rfind('.')), row.forward_digest, row.backward_digest};
  }

  const PlanOptions& options_;
  std::vector<Row> rows_;
  std::unordered_map<std::string, size_t> index_;
  OddEntries odd_;
  std::string bad_name_;
  std::string_view framework_;
  size_t others_ = 0;
  bool has_inputs_ = false;
};

// Whether a message of the form "what (expected, got). What to do" has its last part.
bool HasAdvice(std::string_view message) {
  const size_t at = message.rfind(')');
  return at != std::string_view::npos && message.substr(at).find(". ") != std::string_view::npos;
}

}  // namespace

std::optional<Skip> WhyNotRun(std::string_view name, const PlanOptions& options) {
  std::optional<Skip> skip = WhyNotCallable(name);
  // That an API is random says more than that it is in no list, where it often is not either.
  if (skip && skip->cause == SkipCause::kUnsupportedType) return skip;
  const std::string_view api = ParseApiName(name)->api;
  if (Lists(options.black_list, api)) {
    return Skip{SkipCause::kFiltered, fmt::format("{} is in black_list", api)};
  }
  if (!options.white_list.empty() && !Lists(options.white_list, api)) {
    return Skip{SkipCause::kFiltered, fmt::format("{} is not in white_list", api)};
  }
  if (IsNeverRun(api)) {
    return Skip{SkipCause::kFiltered,
                fmt::format("{} returns memory that nothing wrote, or only moves data", api)};
  }
  if (IsRandom(api) && !options.keep_random) {
    return Skip{SkipCause::kRandom, fmt::format("{} returns something else each time", api)};
  }
  return skip;
}

Error UnreadableDump(const Error& error, const std::string& dump_json) {
  std::string message = error.message();
  const size_t at = message.rfind(dump_json::kSalvageAdvice);
  if (at == std::string::npos) {
    const bool is_of_text =
        error.code() == ErrorCode::kCorrupt || error.code() == ErrorCode::kUnsupported;
    if (!is_of_text || HasAdvice(message)) return error;
    return {error.code(), message + ". Name the dump.json of a recording, or record again"};
  }
  // No part of a step: a pass of what is left would be read as one of the whole.
  message.replace(
      at, std::string::npos,
      fmt::format("Write it anew from the journal beside it (plumb recover {}), copy it "
                  "again, or record again",
                  DirectoryOf(dump_json)));
  return {error.code(), message};
}

void OddEntries::Add(const dump_json::VisitedCall& visited, bool is_again) {
  const std::string& name = visited.call.name;
  if (is_again && repeated_++ == 0) first_repeated_ = name;
  if (visited.problem.empty()) {
    problems_.erase(name);
  } else {
    problems_.insert_or_assign(name, visited.problem);
  }
}

std::optional<Skip> OddEntries::WhyNot(const std::string& entry) const {
  const auto found = problems_.find(entry);
  if (found == problems_.end()) return std::nullopt;
  return Skip{SkipCause::kBadArgument,
              found->second + ". Record that call again, or correct its entry"};
}

void OddEntries::Tell(const std::string& dump_json, std::vector<std::string>& warnings) const {
  if (repeated_ == 0) return;
  warnings.push_back(fmt::format(
      "{}: {} a name that the file had before, such as {} (expected each once); the last of each "
      "name counts",
      dump_json, CountText(repeated_, "entry has", "entries have"), first_repeated_));
}

std::string_view PlannedCall::type() const {
  return std::string_view(name).substr(0, name.find('.'));
}

std::string_view PlannedCall::api() const {
  const std::optional<ApiName> parts = ParseApiName(name);
  if (parts) return parts->api;
  const size_t dot = name.find('.');
  return dot == std::string::npos ? std::string_view(name) : std::string_view(name).substr(dot + 1);
}

struct CallPlan::Impl {
  std::string path;
  File file;  // the entries of a call are read again when it is prepared
  RunHeader header;
  std::vector<PlannedCall> calls;
  OddEntries odd;
  std::vector<std::string> warnings;
  PreparationOptions preparation;
  bool forward_only = false;

  OrSkip<Call> ReadEntry(const std::string& name, EntryRange range) const;
};

OrSkip<Call> CallPlan::Impl::ReadEntry(const std::string& name, EntryRange range) const {
  std::string text(range.end - range.begin, '\0');
  const auto bytes = std::as_writable_bytes(std::span(text));
  const Result<size_t> read = file.ReadAt(bytes, range.begin);
  if (!read) return Skip{SkipCause::kMissingData, read.error().message()};
  if (*read == text.size()) {
    if (auto call = dump_json::ParseEntry(name, text)) return *std::move(call);
  }
  return Skip{SkipCause::kMissingData,
              fmt::format("{}: changed while its calls were being run", path)};
}

Result<CallPlan> CallPlan::Open(const std::string& dump_json, const PlanOptions& options) {
  PL_TRY(CheckApiNames("white_list", options.white_list));
  PL_TRY(CheckApiNames("black_list", options.black_list));
  auto impl = std::make_shared<Impl>();
  impl->path = dump_json;
  Gatherer gatherer(options);
  auto dump_read = dump_json::VisitDumpFile(
      dump_json, options.salvage, [&](dump_json::VisitedCall&& visited) { gatherer.Add(visited); });
  if (!dump_read) return UnreadableDump(dump_read.error(), dump_json);
  dump_json::DumpFile dump = *std::move(dump_read);
  PL_TRY(gatherer.Check(dump_json, dump.header));
  if (dump.loss.truncated) {
    impl->warnings.push_back(fmt::format("{}: is cut; its calls up to byte {} are used", dump_json,
                                         dump.loss.byte_offset));
  }
  impl->calls = gatherer.Finish(dump_json, impl->warnings);
  impl->odd = gatherer.odd();
  impl->header = std::move(dump.header);
  if (impl->header.framework.empty()) {
    impl->header.framework = gatherer.framework().empty() ? "pytorch" : gatherer.framework();
  }
  PL_TRY_ASSIGN(impl->file, File::OpenRead(dump_json));
  impl->forward_only = options.forward_only;
  impl->preparation.seed = options.seed;
  impl->preparation.keep_random = options.keep_random;
  impl->preparation.memory_limit =
      options.memory_limit > 0 ? options.memory_limit : MachineMemory();
  // The recorded path is of the machine that recorded; a copied dump has its tensors beside it.
  if (!impl->header.dump_data_dir.empty()) {
    impl->preparation.tensor_directory =
        JoinPath(DirectoryOf(dump_json), run_files::kTensorDirectory);
  }
  return CallPlan(std::move(impl));
}

size_t CallPlan::size() const { return impl_->calls.size(); }

const PlannedCall& CallPlan::call(size_t i) const { return impl_->calls[i]; }

std::vector<size_t> CallPlan::ByCost() const {
  std::vector<size_t> order;
  for (size_t i = 0; i < size(); ++i) {
    if (!call(i).skip) order.push_back(i);
  }
  std::ranges::stable_sort(order, std::greater<>(), [this](size_t i) { return call(i).cost; });
  return order;
}

const std::string& CallPlan::framework() const { return impl_->header.framework; }

const std::string& CallPlan::path() const { return impl_->path; }

bool CallPlan::uses_recorded_data() const { return !impl_->preparation.tensor_directory.empty(); }

const std::vector<std::string>& CallPlan::warnings() const { return impl_->warnings; }

OrSkip<PreparedCall> CallPlan::Prepare(size_t i) const {
  const PlannedCall& planned = call(i);
  if (planned.skip) return *planned.skip;
  OrSkip<Call> forward = impl_->ReadEntry(planned.name, planned.forward);
  if (!forward) return std::move(forward).error();
  RecordedCall recorded{planned.name, planned.type(), planned.api(), &*forward, nullptr};
  OrSkip<Call> backward = Call();
  std::optional<Skip> unread;
  if (!planned.backward.empty() && !impl_->forward_only) {
    unread = impl_->odd.WhyNot(EntryOf(planned, kBackward));
    if (!unread) {
      backward = impl_->ReadEntry(planned.name, planned.backward);
      if (!backward) return std::move(backward).error();
      recorded.backward = &*backward;
    }
  }
  OrSkip<PreparedCall> prepared = PrepareCall(recorded, impl_->preparation);
  if (prepared && unread) prepared->backward_skip = std::move(unread);
  return prepared;
}

}  // namespace plumbline::precheck
