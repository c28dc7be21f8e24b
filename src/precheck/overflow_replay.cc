#include "precheck/overflow_replay.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <memory>
#include <span>
#include <thread>
#include <utility>

#include "base/file/file.h"
#include "base/text/json.h"
#include "base/text/number_text.h"
#include "base/text/text_parts.h"
#include "kernels/finite_scan.h"
#include "kernels/tensor_scan.h"
#include "precheck/executor_pool.h"
#include "precheck/result_rows.h"
#include "tensor/float_range.h"

namespace plumbline::precheck {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::string_view kColumns[] = {"API Name",        "Input Overflow", "CPU Overflow",
                                         "Device Overflow", "Result",         "Message"};
constexpr size_t kMostShown = 10;      // calls of one result in the summary
constexpr size_t kLongestCause = 240;  // of an error in the summary
constexpr size_t kLeastSlots = 6, kMostSlots = 96;
// What a CPU says that lacks the instructions for a product of half types; no fault of the call.
constexpr std::string_view kNoPrimitive =
    "could not create a primitive descriptor for a matmul primitive";

// ---- What a side returned ----

// Whether a tensor, whose elements are real, has an element that is none in `rounded_to`.
bool LeavesRange(const TensorView& view, DType rounded_to) {
  const kernels::Moments moments = kernels::ScanTensor(view, {}).moments;
  return moments.count > 0 && (RoundsToNonFinite(rounded_to, moments.max) ||
                               RoundsToNonFinite(rounded_to, moments.min));
}

bool IsFloating(DType dtype) { return InfoOf(dtype).kind == DTypeKind::kFloat; }

// A float type that ends before another one does.
bool IsNarrower(DType dtype, DType than) {
  return IsFloating(dtype) && IsFloating(than) && LargestFinite(dtype) < LargestFinite(than);
}

// A tree of values, looked through for NaN and infinities.
class Search {
 public:
  explicit Search(std::span<const std::byte> memory) : memory_(memory) {}

  // `other`: what the other side has in this place, whose narrower types tensors are rounded to;
  // null: nothing is rounded.
  void Look(const CallValue& value, const std::string& path, const CallValue* other = nullptr) {
    if (const auto* place = value.As<TensorPlace>()) return LookAtTensor(*place, path, other);
    if (const auto* number = value.As<double>()) {
      if (!std::isfinite(*number)) Found(path);
    } else if (value.As<bool>() != nullptr) {
      has_truth_value = true;
    } else if (const auto* special = value.As<SpecialValue>()) {
      LookAtSpecial(*special, path);
    } else if (const auto* sequence = value.As<CallSequence>()) {
      LookAtSequence(*sequence, path, other);
    } else if (const auto* map = value.As<CallMap>()) {
      LookAtMap(*map, path, other);
    }
  }

  bool has_overflow = false;
  bool has_truth_value = false;
  std::string first;      // path of the first overflow; empty: the value itself
  std::string unknown;    // type of a value that cannot be looked into
  bool was_rounded = false;

 private:
  void Found(const std::string& path) {
    if (!has_overflow) first = path;
    has_overflow = true;
  }

  void LookAtTensor(const TensorPlace& place, const std::string& path, const CallValue* other) {
    const Result<size_t> bytes = BytesOf(place);
    // The pool has checked places already; this one is checked for arguments.
    const bool is_inside =
        bytes && place.offset <= memory_.size() && *bytes <= memory_.size() - place.offset;
    if (!is_inside) {
      unknown = "tensor outside its memory";
      return;
    }
    const std::vector<int64_t> strides = ContiguousStrides(place.shape);
    const TensorView view{place.dtype, memory_.data() + place.offset, place.shape, strides};
    if (kernels::HasNonFinite(view, nullptr)) return Found(path);
    const auto* counterpart = other == nullptr ? nullptr : other->As<TensorPlace>();
    if (counterpart == nullptr || !IsNarrower(counterpart->dtype, place.dtype)) return;
    was_rounded = true;
    if (LeavesRange(view, counterpart->dtype)) Found(path);
  }

  void LookAtSpecial(const SpecialValue& special, const std::string& path) {
    if (special.kind == Special::kOther) unknown = special.type.empty() ? "object" : special.type;
    if (special.kind != Special::kNumpy) return;
    const std::optional<double> number = ParseReal(special.text);
    if (number && !std::isfinite(*number)) Found(path);
  }

  void LookAtSequence(const CallSequence& sequence, const std::string& path,
                      const CallValue* other) {
    const auto* others = other == nullptr ? nullptr : other->As<CallSequence>();
    const bool is_alike = others != nullptr && others->items.size() == sequence.items.size();
    for (size_t i = 0; i < sequence.items.size(); ++i) {
      Look(sequence.items[i], fmt::format("{}.{}", path, i),
           is_alike ? &others->items[i] : nullptr);
    }
  }

  void LookAtMap(const CallMap& map, const std::string& path, const CallValue* other) {
    const auto* others = other == nullptr ? nullptr : other->As<CallMap>();
    const bool is_alike = others != nullptr && others->size() == map.size();
    for (size_t i = 0; i < map.size(); ++i) {
      Look(map[i].second, fmt::format("{}.{}", path, map[i].first),
           is_alike ? &(*others)[i].second : nullptr);
    }
  }

  std::span<const std::byte> memory_;
};

Search SearchInputs(const RanCall& ran) {
  Search search(ran.inputs);
  const PreparedCall& call = ran.to_run->call;
  for (size_t i = 0; i < call.args.size(); ++i) {
    search.Look(call.args[i], fmt::format("input_args.{}", i));
  }
  for (const auto& [key, value] : call.kwargs) search.Look(value, "input_kwargs." + key);
  return search;
}

// ---- Results ----

// Whether a call was left out on purpose, or went wrong.
OverflowResult ResultOf(const Skip& skip) {
  switch (skip.cause) {
    case SkipCause::kUnsupportedType:
    case SkipCause::kNotInInventory:
    case SkipCause::kFiltered:
    case SkipCause::kRandom:
    case SkipCause::kNoOutput:
      return OverflowResult::kSkip;
    default:
      break;
  }
  const bool lacks_primitive = skip.detail.find(kNoPrimitive) != std::string::npos;
  return lacks_primitive ? OverflowResult::kSkip : OverflowResult::kError;
}

OverflowRow SkippedRow(std::string name, const Skip& skip) {
  OverflowRow row;
  row.name = std::move(name);
  row.result = ResultOf(skip);
  row.message = skip.Text();
  return row;
}

void AddSentence(std::string_view sentence, std::string& message) {
  if (sentence.empty()) return;
  if (!message.empty()) message += "; ";
  message += sentence;
}

std::string FailureText(const RanCall& ran) {
  std::string text;
  const std::pair<std::string_view, const SideResult*> sides[] = {{"CPU", ran.bench},
                                                                  {"device", ran.device}};
  for (const auto& [name, side] : sides) {
    if (!side->forward) {
      AddSentence(fmt::format("{}: {}", name, side->forward.error().Text()), text);
    }
  }
  return text;
}

// A call of which at least one side has nothing; nothing: both have something.
std::optional<OverflowRow> RowOfFailure(const RanCall& ran, OverflowRow row) {
  if (ran.bench->forward && ran.device->forward) return std::nullopt;
  const Skip& skip = (ran.device->forward ? ran.bench : ran.device)->forward.error();
  row.result = ResultOf(skip);
  row.message = FailureText(ran);
  return row;
}

// Why the outputs of a call say nothing about overflow; empty: they do.
std::string WhyNothingToSee(const RanCall& ran, const Search& bench, const Search& device) {
  if (ran.bench->forward->is_null() && ran.device->forward->is_null()) {
    return "returns None: there is nothing to look at";
  }
  if (bench.has_truth_value || device.has_truth_value) {
    return "returns a truth value, which cannot overflow";
  }
  const std::string& unknown = bench.unknown.empty() ? device.unknown : bench.unknown;
  const bool is_hidden = !unknown.empty() && !bench.has_overflow && !device.has_overflow;
  return is_hidden ? fmt::format("returns a {}, into which nobody can look", unknown)
                   : std::string();
}

std::string SidesText(const Search& bench, const Search& device) {
  if (bench.has_overflow && device.has_overflow) {
    return fmt::format("{} overflows on both sides", device.first);
  }
  if (device.has_overflow) {
    return fmt::format("{} overflows on the device and not on the CPU", device.first);
  }
  if (bench.has_overflow) {
    return fmt::format("{} overflows on the CPU and not on the device", bench.first);
  }
  return {};
}

}  // namespace

std::string_view OverflowWord(OverflowResult result) {
  constexpr std::array<std::string_view, kOverflowResults> kWords = {
      "normal", "abnormal", "not_reproduced", "skip", "error"};
  return kWords[static_cast<size_t>(result)];
}

OverflowRow ClassifyOverflow(const RanCall& ran) {
  OverflowRow row;
  row.name = ran.to_run->call.name;
  const Search inputs = SearchInputs(ran);
  row.input = inputs.has_overflow;
  if (auto failed = RowOfFailure(ran, row)) return *std::move(failed);
  const CallValue &on_cpu = *ran.bench->forward, &on_device = *ran.device->forward;
  if (on_cpu.is_null() != on_device.is_null()) {
    row.result = OverflowResult::kError;
    row.message = fmt::format("the {} returns None and the other side does not",
                              on_cpu.is_null() ? "CPU" : "device");
    return row;
  }
  Search bench(ran.bench_memory), device(ran.device_memory);
  bench.Look(on_cpu, "output", &on_device);
  device.Look(on_device, "output");
  if (row.message = WhyNothingToSee(ran, bench, device); !row.message.empty()) return row;
  row.cpu = bench.has_overflow;
  row.device = device.has_overflow;
  row.result = *row.cpu != *row.device ? OverflowResult::kAbnormal
               : *row.cpu              ? OverflowResult::kNormal
                                       : OverflowResult::kNotReproduced;
  row.message = SidesText(bench, device);
  if (*row.input) AddSentence(fmt::format("{} holds NaN or Inf", inputs.first), row.message);
  if (bench.was_rounded) {
    AddSentence("the CPU computed in a wider type, rounded to that of the device", row.message);
  }
  for (const SideResult* side : {ran.bench, ran.device}) AddSentence(side->note, row.message);
  return row;
}

namespace {

// ---- Calls made ready ----

template <class Use>
void ForEachTensor(CallValue& value, const Use& use) {
  if (auto* place = value.As<TensorPlace>()) use(*place);
  if (auto* sequence = value.As<CallSequence>()) {
    for (CallValue& item : sequence->items) ForEachTensor(item, use);
  }
  if (auto* map = value.As<CallMap>()) {
    for (auto& [key, item] : *map) ForEachTensor(item, use);
  }
}

template <class Use>
void ForEachInput(PreparedCall& call, const Use& use) {
  for (CallValue& value : call.args) ForEachTensor(value, use);
  for (auto& [key, value] : call.kwargs) ForEachTensor(value, use);
  if (!call.grads) return;
  for (CallValue& value : *call.grads) ForEachTensor(value, use);
}

bool IsNarrow(DType dtype) { return NarrowFormatOf(dtype) != nullptr; }

// What the CPU computes in.
enum class CpuTypes : uint8_t { kRecorded, kFloat32ForNarrow, kRaised };

void ApplyTypes(CpuTypes types, PreparedCall& call) {
  if (types == CpuTypes::kRaised) return;  // as it was planned
  ForEachInput(call, [types](TensorPlace& place) {
    const bool is_wider = types == CpuTypes::kFloat32ForNarrow && IsNarrow(place.dtype);
    place.raised = is_wider ? std::optional(DType::kFloat32) : std::nullopt;
  });
}

bool HasNarrowInput(PreparedCall call) {
  bool has_narrow = false;
  ForEachInput(call, [&](const TensorPlace& place) { has_narrow |= IsNarrow(place.dtype); });
  return has_narrow;
}

// The forward calls of a plan. Each call has a row of its own, so that calls may be judged side by
// side.
class OverflowCalls : public CheckedCalls {
 public:
  OverflowCalls(const CallPlan& plan, CpuTypes types)
      : plan_(plan), types_(types), rows_(plan.size()), wants_float32_(plan.size(), 0) {}

  [[nodiscard]] OrSkip<CallToRun> Prepare(size_t index) const override {
    // Their reference functions are of plumbline's own, and have no half types to overflow in.
    if (plan_.call(index).type() == "NPU") {
      return Skip{SkipCause::kUnsupportedType, "calls of type NPU are not run again"};
    }
    auto call = plan_.Prepare(index);
    if (!call) return call.error();
    CallToRun to_run;
    to_run.call = *std::move(call);
    to_run.call.grads.reset();
    to_run.call.backward_skip.reset();
    ApplyTypes(types_, to_run.call);
    return to_run;
  }

  [[nodiscard]] CallOutcome Skipped(size_t index, Skip skip) const override {
    rows_[index] = SkippedRow(plan_.call(index).name, skip);
    return {};
  }

  [[nodiscard]] CallOutcome Judge(const RanCall& ran) const override {
    const SideValue& bench = ran.bench->forward;
    const bool has_failed = !bench && bench.error().cause == SkipCause::kCpuFailed;
    wants_float32_[ran.index] =
        types_ == CpuTypes::kRecorded && has_failed && HasNarrowInput(ran.to_run->call) ? 1 : 0;
    rows_[ran.index] = ClassifyOverflow(ran);
    return {};
  }

  // From now on the CPU computes in float32 where a type is narrower; returns which calls want it,
  // because the CPU could not run them in their types.
  std::vector<size_t> StartFloat32() {
    types_ = CpuTypes::kFloat32ForNarrow;
    std::vector<size_t> wanted;
    for (size_t i = 0; i < wants_float32_.size(); ++i) {
      if (wants_float32_[i] != 0) wanted.push_back(i);
    }
    return wanted;
  }

  [[nodiscard]] std::vector<std::optional<OverflowRow>>& rows() { return rows_; }

 private:
  const CallPlan& plan_;
  CpuTypes types_;
  // By call; one thread writes each, and the flow hands it over.
  mutable std::vector<std::optional<OverflowRow>> rows_;
  mutable std::vector<uint8_t> wants_float32_;
};

PoolOptions PoolOptionsOf(const OverflowReplayOptions& options, const std::string& framework,
                          size_t calls) {
  const size_t cores = std::max(1U, std::thread::hardware_concurrency());
  PoolOptions pool;
  pool.program.python = options.python;
  pool.framework = framework;
  pool.device_type = options.device_type;
  pool.devices = {options.device};
  pool.bench_workers = static_cast<int>(std::min(cores, std::max<size_t>(calls, 1)));
  pool.call_limit = options.api_timeout;
  pool.slots = std::clamp(4 * cores + 2, kLeastSlots, kMostSlots);
  return pool;
}

Result<CallPlan> OpenPlan(const OverflowReplayOptions& options, bool forward_only) {
  PlanOptions plan_options;
  plan_options.seed = options.seed;
  plan_options.keep_random = true;  // whether dropout overflows depends on no draw
  plan_options.forward_only = forward_only;
  PL_TRY_ASSIGN(CallPlan plan, CallPlan::Open(options.dump_json, plan_options));
  if (plan.framework() != "pytorch") {
    return Error(ErrorCode::kInvalidArgument,
                 fmt::format("{}: was recorded with {} (expected pytorch, whose calls alone are "
                             "checked for overflow)",
                             options.dump_json, plan.framework()));
  }
  return plan;
}

std::string ResultPath(const std::string& directory) {
  // A later second where this one has a file already.
  for (std::time_t time = std::time(nullptr);; ++time) {
    std::tm local{};
    localtime_r(&time, &local);
    char text[64];
    (void)std::strftime(text, sizeof(text), "overflow_check_result_%Y%m%d%H%M%S.csv", &local);
    std::string path = JoinPath(directory, text);
    if (KindOf(path) == PathKind::kMissing) return path;
  }
}

// One run over the calls of a plan.
class Replay {
 public:
  Replay(const OverflowReplayOptions& options, const CallPlan& plan)
      : options_(options), plan_(plan) {}

  Result<OverflowReplayReport> Run() {
    const auto begin = Clock::now();
    // A directory that cannot be written to is told before the work, not after.
    PL_TRY(MakeDirectories(options_.output_dir));
    const std::string path = ResultPath(options_.output_dir);
    PL_TRY(WriteFileAtomically(path, OverflowCsv({}), /*durable=*/false));
    PL_TRY(RunAll());
    PL_TRY(WriteFileAtomically(path, OverflowCsv(report_.rows), /*durable=*/false));
    report_.dump_json = plan_.path();
    report_.has_recorded_data = plan_.uses_recorded_data();
    report_.result_path = path;
    const std::vector<std::string>& warnings = plan_.warnings();
    report_.warnings.insert(report_.warnings.begin(), warnings.begin(), warnings.end());
    report_.seconds = std::chrono::duration<double>(Clock::now() - begin).count();
    return std::move(report_);
  }

 private:
  plumbline::Status RunAll() {
    const std::vector<size_t> order = plan_.ByCost();
    std::unique_ptr<ExecutorPool> pool;
    auto types = CpuTypes::kRecorded;
    if (!order.empty()) {
      PL_TRY_ASSIGN(pool, ExecutorPool::Start(
                              PoolOptionsOf(options_, plan_.framework(), order.size())));
      PL_TRY_ASSIGN(const ServerFacts facts, pool->AwaitReady());
      report_.device = facts.device;
      report_.framework_version = facts.framework_version;
      if (facts.device == "cpu") types = CpuTypes::kRaised;
      NoteDevice();
    }
    OverflowCalls calls(plan_, types);
    for (size_t i = 0; i < plan_.size(); ++i) {
      if (plan_.call(i).skip) (void)calls.Skipped(i, *plan_.call(i).skip);
    }
    done_ = plan_.size() - order.size();
    if (pool) {
      PL_TRY(RunSome(calls, order, *pool));
      const std::vector<size_t> again = calls.StartFloat32();
      done_ -= again.size();
      if (!again.empty() && !report_.was_interrupted) PL_TRY(RunSome(calls, again, *pool));
    }
    for (std::optional<OverflowRow>& row : calls.rows()) {
      if (row) report_.rows.push_back(*std::move(row));
    }
    return {};
  }

  plumbline::Status RunSome(const OverflowCalls& calls, const std::vector<size_t>& order,
                            ExecutorPool& pool) {
    FlowOptions flow;
    flow.threads = static_cast<size_t>(options_.threads);
    flow.is_stopped = options_.is_stopped;
    PL_TRY_ASSIGN(const FlowEnd end, RunCalls(calls, order, pool, flow, [this](size_t, CallOutcome) {
                    ++done_;
                    if (options_.on_progress) options_.on_progress(done_, plan_.size());
                    return plumbline::Status();
                  }));
    report_.was_interrupted = report_.was_interrupted || end.was_stopped;
    return {};
  }

  void NoteDevice() {
    if (options_.device_type != "auto" || report_.device != "cpu") return;
    report_.warnings.emplace_back(
        "there is no NPU and no CUDA device: the recorded types are compared with raised ones on "
        "the CPU. Name another device with --device_type");
  }

  const OverflowReplayOptions& options_;
  const CallPlan& plan_;
  OverflowReplayReport report_;
  uint64_t done_ = 0;
};

// ---- What is told ----

std::string_view CellOf(const std::optional<bool>& truth) {
  if (!truth) return "";
  return *truth ? "True" : "False";
}

const OverflowRow* FirstOf(const OverflowReplayReport& report, OverflowResult result) {
  const auto found = std::ranges::find(report.rows, result, &OverflowRow::result);
  return found == report.rows.end() ? nullptr : &*found;
}

std::string MoreText(uint64_t count) {
  return count > 1 ? fmt::format(" (and {} more)", count - 1) : std::string();
}

std::string FirstLine(const OverflowReplayReport& report) {
  const std::string calls = CountText(report.rows.size(), "call");
  const uint64_t abnormal = report.count(OverflowResult::kAbnormal);
  const uint64_t normal = report.count(OverflowResult::kNormal);
  const uint64_t errors = report.count(OverflowResult::kError);
  const uint64_t judged = abnormal + normal + report.count(OverflowResult::kNotReproduced);
  if (const OverflowRow* row = FirstOf(report, OverflowResult::kAbnormal)) {
    return fmt::format("abnormal overflow: {}, {}{}", row->name, row->message, MoreText(abnormal));
  }
  if (report.rows.empty()) return "nothing judged: no calls of APIs are in the recording";
  if (judged == 0) {
    return fmt::format("nothing judged: of {} {} skipped, {} failed", calls,
                       report.count(OverflowResult::kSkip), errors);
  }
  std::string line = fmt::format("no abnormal overflow in {} ({} judged)", calls, judged);
  if (const OverflowRow* row = FirstOf(report, OverflowResult::kNormal)) {
    line += fmt::format("; normal: {}{}", row->name, MoreText(normal));
  } else {
    line += ", and none at all";
  }
  if (errors > 0) line += fmt::format("; {} failed", errors);
  return line;
}

std::string CountsText(const OverflowReplayReport& report) {
  std::string text;
  for (size_t i = 0; i < kOverflowResults; ++i) {
    const auto result = static_cast<OverflowResult>(i);
    if (report.count(result) == 0) continue;
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", report.count(result),
                        OverflowWord(result));
  }
  return text.empty() ? "none" : text;
}

void AppendRows(const OverflowReplayReport& report, OverflowResult result, std::string& text) {
  size_t shown = 0;
  for (const OverflowRow& row : report.rows) {
    if (row.result != result) continue;
    if (shown++ == kMostShown) break;
    std::string_view message = Utf8Beginning(row.message, kLongestCause);
    text += fmt::format("  {}: {}{}{}\n", OverflowWord(result), row.name,
                        message.empty() ? "" : ": ", message);
  }
  if (report.count(result) > kMostShown) {
    text += fmt::format("  {}: {} more\n", OverflowWord(result),
                        report.count(result) - kMostShown);
  }
}

void AppendMember(std::string_view name, std::string_view text, std::string& out) {
  out += fmt::format("\"{}\":", name);
  json::AppendString(text, out);
  out += ',';
}

void AppendTruth(std::string_view name, const std::optional<bool>& truth, std::string& out) {
  out += fmt::format("\"{}\":{},", name, !truth ? "null" : *truth ? "true" : "false");
}

}  // namespace

uint64_t OverflowReplayReport::count(OverflowResult result) const {
  return static_cast<uint64_t>(std::ranges::count(rows, result, &OverflowRow::result));
}

Result<OverflowReplayReport> RunOverflowReplay(const OverflowReplayOptions& options) {
  PL_TRY_ASSIGN(const CallPlan plan, OpenPlan(options, /*forward_only=*/true));
  return Replay(options, plan).Run();
}

std::string OverflowCsv(const std::vector<OverflowRow>& rows) {
  std::string text = HeaderText(kColumns);
  for (const OverflowRow& row : rows) {
    const std::string cells[] = {row.name,
                                 std::string(CellOf(row.input)),
                                 std::string(CellOf(row.cpu)),
                                 std::string(CellOf(row.device)),
                                 std::string(OverflowWord(row.result)),
                                 row.message};
    AppendCsvRow(cells, text);
  }
  return text;
}

std::string AnswerText(const OverflowReplayReport& report) {
  std::string text = FirstLine(report) + "\n";
  text += fmt::format("  calls: {}\n", CountsText(report));
  for (const OverflowResult result :
       {OverflowResult::kAbnormal, OverflowResult::kNormal, OverflowResult::kError}) {
    AppendRows(report, result, text);
  }
  text += fmt::format("  inputs: {}\n", report.has_recorded_data ? "as recorded"
                                                                 : "drawn from their statistics");
  if (!report.device.empty()) {
    text += fmt::format("  device: {} (pytorch {}), {:.1f} s\n", report.device,
                        report.framework_version, report.seconds);
  }
  return text + fmt::format("  written: {}\n", report.result_path);
}

std::string AnswerJson(const OverflowReplayReport& report) {
  std::string out = "{";
  AppendMember("answer", FirstLine(report), out);
  AppendMember("dump_json", report.dump_json, out);
  AppendMember("device", report.device, out);
  AppendMember("framework_version", report.framework_version, out);
  AppendMember("result_path", report.result_path, out);
  out += fmt::format("\"recorded_data\":{},\"interrupted\":{},\"seconds\":{:.3f},\"counts\":{{",
                     report.has_recorded_data, report.was_interrupted, report.seconds);
  for (size_t i = 0; i < kOverflowResults; ++i) {
    const auto result = static_cast<OverflowResult>(i);
    out += fmt::format("{}\"{}\":{}", i > 0 ? "," : "", OverflowWord(result), report.count(result));
  }
  out += "},\"calls\":[";
  for (size_t i = 0; i < report.rows.size(); ++i) {
    const OverflowRow& row = report.rows[i];
    out += i > 0 ? ",{" : "{";
    AppendMember("name", row.name, out);
    AppendTruth("input_overflow", row.input, out);
    AppendTruth("cpu_overflow", row.cpu, out);
    AppendTruth("device_overflow", row.device, out);
    AppendMember("result", OverflowWord(row.result), out);
    AppendMember("message", row.message, out);
    out.back() = '}';
  }
  return out + "]}\n";
}

// ---- One call in other types ----

namespace {

constexpr std::array kOtherTypes = {DType::kBFloat16, DType::kFloat32};
constexpr std::string_view kForward = ".forward", kBackward = ".backward";

// The same call once per type, on the CPU alone.
class OtherTypeCalls : public CheckedCalls {
 public:
  OtherTypeCalls(PreparedCall call, bool is_backward)
      : call_(std::move(call)), is_backward_(is_backward) {
    for (size_t i = 0; i < kOtherTypes.size(); ++i) runs_[i].dtype = kOtherTypes[i];
  }

  [[nodiscard]] OrSkip<CallToRun> Prepare(size_t index) const override {
    CallToRun to_run;
    to_run.call = call_;
    to_run.runs_device = false;
    to_run.call.autocast.reset();
    ForEachInput(to_run.call, [index](TensorPlace& place) {
      place.raised.reset();
      if (IsFloating(place.dtype)) place.raised = kOtherTypes[index];
    });
    return to_run;
  }

  [[nodiscard]] CallOutcome Skipped(size_t index, Skip skip) const override {
    runs_[index].problem = skip.Text();
    return {};
  }

  [[nodiscard]] CallOutcome Judge(const RanCall& ran) const override {
    const SideResult& side = *ran.bench;
    if (is_backward_ && !side.backward) {
      return Skipped(ran.index, {SkipCause::kBackwardSkipped, "no gradient was computed"});
    }
    const SideValue& value = is_backward_ ? *side.backward : side.forward;
    if (!value) return Skipped(ran.index, value.error());
    Search search(ran.bench_memory);
    search.Look(*value, "output");
    if (value->is_null() || !search.unknown.empty()) {
      return Skipped(ran.index, {SkipCause::kNoOutput, "returns nothing that can be looked at"});
    }
    runs_[ran.index].stays_finite = !search.has_overflow;
    return {};
  }

  [[nodiscard]] const std::array<OtherTypeRun, 2>& runs() const { return runs_; }

 private:
  const PreparedCall call_;
  const bool is_backward_;
  mutable std::array<OtherTypeRun, 2> runs_;  // one thread writes each
};

Result<PreparedCall> PrepareNamed(const CallPlan& plan, std::string_view name) {
  const bool is_backward = name.ends_with(kBackward);
  if (!is_backward && !name.ends_with(kForward)) {
    return Error(ErrorCode::kUnsupported, fmt::format("{}: is no call of an API", name));
  }
  const auto call_name =
      name.substr(0, name.size() - (is_backward ? kBackward : kForward).size());
  for (size_t i = 0; i < plan.size(); ++i) {
    if (plan.call(i).name != call_name) continue;
    auto call = plan.Prepare(i);
    if (!call) return Error(ErrorCode::kUnsupported, call.error().Text());
    if (!is_backward) call->grads.reset();
    if (is_backward && !call->grads) {
      const std::string why = call->backward_skip ? call->backward_skip->Text() : "not recorded";
      return Error(ErrorCode::kUnsupported, fmt::format("{}: no gradients: {}", name, why));
    }
    return *std::move(call);
  }
  return Error(ErrorCode::kNotFound, fmt::format("{}: {} is no call there", plan.path(), name));
}

}  // namespace

Result<std::array<OtherTypeRun, 2>> RunInOtherTypes(const std::string& name,
                                                    const OverflowReplayOptions& options) {
  const bool is_backward = name.ends_with(kBackward);
  PL_TRY_ASSIGN(const CallPlan plan, OpenPlan(options, !is_backward));
  if (!plan.uses_recorded_data()) {
    return Error(ErrorCode::kUnsupported,
                 fmt::format("{}: no tensors were saved (record with task tensor)", plan.path()));
  }
  PL_TRY_ASSIGN(PreparedCall call, PrepareNamed(plan, name));
  OverflowReplayOptions on_cpu = options;
  on_cpu.device_type = "cpu";
  PL_TRY_ASSIGN(const std::unique_ptr<ExecutorPool> pool,
                ExecutorPool::Start(PoolOptionsOf(on_cpu, plan.framework(), kOtherTypes.size())));
  const OtherTypeCalls calls(std::move(call), is_backward);
  PL_TRY_ASSIGN(const FlowEnd end,
                RunCalls(calls, {0, 1}, *pool, {}, [](size_t, CallOutcome) {
                  return plumbline::Status();
                }));
  return calls.runs();
}

}  // namespace plumbline::precheck
