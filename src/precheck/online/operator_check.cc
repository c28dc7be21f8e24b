#include "precheck/online/operator_check.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <condition_variable>
#include <ctime>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <thread>
#include <unordered_map>
#include <utility>

#include "base/file/directory.h"
#include "base/file/file.h"
#include "base/text/number_text.h"
#include "formats/array/npy.h"
#include "precheck/online/single_benchmark.h"
#include "precheck/outcome.h"
#include "precheck/result_files.h"
#include "precheck/result_rows.h"

namespace plumbline::precheck {
namespace {

constexpr std::string_view kResultColumns[] = {"API name", "Forward Test Success",
                                               "Backward Test Success", "Message"};
constexpr std::string_view kDetailsColumns[] = {
    "Npu Name",    "Bench Dtype",  "NPU Dtype",   "Shape",         "error_balance",
    "max_abs_diff", "max_abs_idx", "max_rel_diff", "max_rel_idx",  "eb_thd",
    "error_thd",   "Status",       "Message"};
constexpr std::string_view kDeviceFolder = "npu", kBenchFolder = "cpu";
constexpr int kDigits = 14;
// What waits for workers may hold; a single larger call is taken all the same.
constexpr size_t kMostWaitingBytes = size_t{512} << 20;
constexpr size_t kMostProblems = 8;

std::string_view VerdictWord(SingleVerdict verdict) {
  switch (verdict) {
    case SingleVerdict::kPass:
      return "True";
    case SingleVerdict::kFail:
      return "False";
    default:
      return "SKIP";
  }
}

TensorView ViewOf(const HeldArray& array, const std::vector<int64_t>& strides) {
  return {array.dtype, array.data, array.sizes, strides};
}

size_t BytesOf(const std::vector<OperatorLeaf>& leaves) {
  size_t bytes = 0;
  for (const OperatorLeaf& leaf : leaves) {
    const auto* array = std::get_if<HeldArray>(&leaf.value);
    if (array == nullptr) continue;
    size_t size = InfoOf(array->dtype).size_bytes;
    for (const int64_t length : array->sizes) size *= static_cast<size_t>(length);
    bytes += size;
  }
  return bytes;
}
size_t BytesOf(const OperatorCall& call) {
  return BytesOf(call.inputs) + BytesOf(call.device) + BytesOf(call.bench);
}

// "(2, 3)", "(4,)", "()", as Python prints a tuple.
std::string TupleText(const Shape& sizes) {
  std::string text = "(";
  for (size_t i = 0; i < sizes.size(); ++i) {
    text += fmt::format("{}{}", i > 0 ? ", " : "", sizes[i]);
  }
  return text + (sizes.size() == 1 ? ",)" : ")");
}

// One output of a call, judged.
struct JudgedOutput {
  std::string device_type, bench_type, shape;
  SingleGrade grade;
};

std::string TypeText(const OperatorValue& value) {
  constexpr std::string_view kNames[] = {"None", "", "bool", "int", "float"};
  if (const auto* array = std::get_if<HeldArray>(&value)) {
    return std::string(InfoOf(array->dtype).torch_name);
  }
  return std::string(kNames[value.index()]);
}

SingleGrade GradeScalars(const OperatorValue& device, const OperatorValue& bench) {
  SingleGrade grade;
  const bool is_equal = device.index() == bench.index() &&
                        (std::holds_alternative<bool>(device)
                             ? std::get<bool>(device) == std::get<bool>(bench)
                         : std::holds_alternative<int64_t>(device)
                             ? std::get<int64_t>(device) == std::get<int64_t>(bench)
                             : std::get<double>(device) == std::get<double>(bench));
  grade.verdict = is_equal ? SingleVerdict::kPass : SingleVerdict::kFail;
  if (!is_equal) grade.message = "another value than the benchmark";
  return grade;
}

JudgedOutput Judge(const OperatorValue& device, const OperatorValue& bench) {
  JudgedOutput judged{TypeText(device), TypeText(bench), {}, {}};
  const auto* d = std::get_if<HeldArray>(&device);
  const auto* b = std::get_if<HeldArray>(&bench);
  if (d != nullptr) judged.shape = TupleText(d->sizes);
  const bool is_nothing = std::holds_alternative<std::monostate>(device) ||
                          std::holds_alternative<std::monostate>(bench);
  if (is_nothing || (d == nullptr) != (b == nullptr)) {
    judged.grade.message = "not checked: only one side can be read as a tensor or number";
  } else if (d != nullptr) {
    const auto device_strides = ContiguousStrides(d->sizes);
    const auto bench_strides = ContiguousStrides(b->sizes);
    judged.grade = GradeSingle(ViewOf(*d, device_strides), ViewOf(*b, bench_strides));
  } else {
    judged.grade = GradeScalars(device, bench);
  }
  return judged;
}

// Outputs that are nothing on both sides are none.
std::vector<JudgedOutput> JudgeOutputs(const OperatorCall& call) {
  std::vector<JudgedOutput> outputs;
  if (call.device.size() != call.bench.size()) {
    outputs.emplace_back().grade = {SingleVerdict::kFail, {}, {},
                                    fmt::format("{} where the benchmark has {}",
                                                CountText(call.device.size(), "output"),
                                                call.bench.size())};
    return outputs;
  }
  for (size_t i = 0; i < call.device.size(); ++i) {
    const OperatorValue &device = call.device[i].value, &bench = call.bench[i].value;
    if (std::holds_alternative<std::monostate>(device) &&
        std::holds_alternative<std::monostate>(bench)) {
      continue;
    }
    outputs.push_back(Judge(device, bench));
  }
  return outputs;
}

// What is known of a call when it was judged.
struct JudgedCall {
  std::string name, where, message;  // "mm_3"
  SingleVerdict verdict = SingleVerdict::kNotChecked;
  std::vector<JudgedOutput> outputs;
  std::vector<std::string> problems;
};

void Conclude(JudgedCall& call) {
  // Failed wins over not checked, and that over passed.
  call.verdict = call.outputs.empty() ? SingleVerdict::kNotChecked : SingleVerdict::kPass;
  if (call.outputs.empty()) call.message = "not checked: nothing was returned";
  for (const JudgedOutput& output : call.outputs) {
    const SingleVerdict verdict = output.grade.verdict;
    const bool is_worse = verdict == SingleVerdict::kFail
                              ? call.verdict != SingleVerdict::kFail
                              : verdict == SingleVerdict::kNotChecked &&
                                    call.verdict == SingleVerdict::kPass;
    if (!is_worse) continue;
    call.verdict = verdict;
    const auto index = static_cast<size_t>(&output - call.outputs.data());
    call.message = call.outputs.size() == 1
                       ? output.grade.message
                       : fmt::format("output {}: {}", index, output.grade.message);
  }
}

std::string NumberCell(double value) {
  std::string text;
  AppendNumber(Number{value}, kDigits, text);
  return text;
}
std::string IndexCell(const std::optional<uint64_t>& index) {
  return index ? fmt::format("{}", *index) : "";
}

std::string DetailsRows(const JudgedCall& call) {
  std::string rows;
  for (size_t i = 0; i < call.outputs.size(); ++i) {
    const JudgedOutput& output = call.outputs[i];
    const SingleGrade& grade = output.grade;
    std::vector<std::string> cells(std::size(kDetailsColumns));
    cells[0] = fmt::format("{}_output.forward.output.{}", call.name, i);
    cells[1] = output.bench_type;
    cells[2] = output.device_type;
    cells[3] = output.shape;
    if (grade.measure) {
      cells[4] = NumberCell(grade.measure->error_balance);
      cells[5] = NumberCell(grade.measure->max_abs_error);
      cells[6] = IndexCell(grade.measure->max_abs_index);
      cells[7] = NumberCell(grade.measure->max_rel_error);
      cells[8] = IndexCell(grade.measure->max_rel_index);
    }
    if (grade.limits) {
      cells[9] = NumberCell(grade.limits->balance);
      cells[10] = NumberCell(grade.limits->error);
    }
    cells[11] = VerdictWord(grade.verdict);
    cells[12] = grade.message;
    AppendCsvRow(cells, rows);
  }
  return rows;
}

std::string RowOfResult(const JudgedCall& call) {
  std::string message = call.message;
  if (call.verdict == SingleVerdict::kFail && !call.where.empty()) message += "; " + call.where;
  const std::array<std::string, 4> cells = {call.name + "_output",
                                            std::string(VerdictWord(call.verdict)), "Nan", message};
  std::string row;
  AppendCsvRow(cells, row);
  return row;
}

plumbline::Status WriteArray(const std::string& path, DType dtype, std::span<const int64_t> sizes,
                             std::span<const std::byte> data) {
  PL_TRY_ASSIGN(const npy::Contents contents, npy::MakeContents(dtype, sizes, data));
  PL_TRY_ASSIGN(AtomicFile file, AtomicFile::Create(path));
  PL_TRY(file.Write(contents.header));
  PL_TRY(file.Write(contents.data));
  return file.Commit(/*durable=*/false);
}

template <class T>
plumbline::Status WriteScalar(const std::string& path, DType dtype, T value) {
  return WriteArray(path, dtype, {}, std::as_bytes(std::span<const T, 1>(&value, 1)));
}

plumbline::Status WriteLeaf(const std::string& path, const OperatorValue& value) {
  if (const auto* array = std::get_if<HeldArray>(&value)) {
    const size_t bytes = BytesOf(std::vector<OperatorLeaf>{{"", value}});
    return WriteArray(path, array->dtype, array->sizes, {array->data, bytes});
  }
  if (const auto* flag = std::get_if<bool>(&value)) return WriteScalar(path, DType::kBool, *flag);
  if (const auto* whole = std::get_if<int64_t>(&value)) {
    return WriteScalar(path, DType::kInt64, *whole);
  }
  if (const auto* number = std::get_if<double>(&value)) {
    return WriteScalar(path, DType::kFloat64, *number);
  }
  return {};
}

}  // namespace

Result<ArrayDump> ParseArrayDump(std::string_view word) {
  if (word == "OFF") return ArrayDump::kOff;
  if (word == "all") return ArrayDump::kAll;
  if (word == "list") return ArrayDump::kListed;
  if (word == "auto") return ArrayDump::kFailing;
  return Error(ErrorCode::kInvalidArgument,
               fmt::format("\"{}\" is unknown (expected OFF, all, list, auto)", word));
}

std::string AnswerText(const OperatorReport& report, uint64_t left_alone) {
  const uint64_t judged = report.passed + report.failed;
  std::string rest;
  if (report.not_checked > 0) rest += fmt::format(", {} not checked", report.not_checked);
  if (left_alone > 0) rest += fmt::format(", {} left alone", left_alone);
  if (report.failed > 0) {
    const FailedOperator& first = report.failures.front();
    return fmt::format("wrong: {}{}: {} ({} of {} failed{})", first.name,
                       first.where.empty() ? "" : " at " + first.where, first.message,
                       report.failed, CountText(judged, "checked call"), rest);
  }
  if (judged == 0) {
    const std::string why =
        ": " + (report.reasons.empty() ? "no operator of the device ran" : report.reasons.front());
    return fmt::format("nothing checked{}{}", why, rest.empty() ? "" : " (" + rest.substr(2) + ")");
  }
  return fmt::format("no wrong operator in {}{}", CountText(judged, "checked call"), rest);
}

class OperatorCheck::State {
 public:
  explicit State(const OperatorCheckOptions& options) : options_(options) {}

  plumbline::Status Open() {
    if (options_.directory.empty()) return {};
    PL_TRY_ASSIGN(const std::string parent, RealPath(options_.directory));
    if (KindOf(parent) != PathKind::kDirectory) {
      return Error(ErrorCode::kInvalidArgument, parent + ": is no directory");
    }
    const std::string time = NameDirectory(parent);
    PL_TRY(MakeDirectories(JoinPath(report_.directory, kDeviceFolder)));
    PL_TRY(MakeDirectories(JoinPath(report_.directory, kBenchFolder)));
    const auto start = [&](RowJournal& file, std::string_view what,
                           std::span<const std::string_view> columns) -> plumbline::Status {
      const std::string name = fmt::format("accuracy_checking_{}_{}.csv", what, time);
      file.path = JoinPath(report_.directory, name);
      report_.files.push_back(file.path);
      PL_TRY(file.Open());
      return file.Append(HeaderText(columns));
    };
    PL_TRY(start(result_, "result", kResultColumns));
    return start(details_, "details", kDetailsColumns);
  }

  void StartWorkers() {
    for (int i = 0; i < options_.workers; ++i) {
      workers_.emplace_back([this] { Work(); });
    }
  }

  [[nodiscard]] bool DumpsNow(std::string_view op) const {
    if (options_.directory.empty()) return false;
    return options_.dump == ArrayDump::kAll ||
           (options_.dump == ArrayDump::kListed &&
            std::find(options_.listed.begin(), options_.listed.end(), op) != options_.listed.end());
  }
  [[nodiscard]] bool WantsInputs(std::string_view op) const {
    return DumpsNow(op) || (!options_.directory.empty() && options_.dump == ArrayDump::kFailing);
  }

  void Add(OperatorCall call) {
    if (is_forked()) return;
    std::unique_lock lock(mutex_);
    if (is_closing_) return;
    Job job{next_++, fmt::format("{}_{}", call.op, ++numbers_[call.op]), BytesOf(call), {}};
    job.call = std::move(call);
    if (options_.workers == 0) {
      lock.unlock();
      return Process(std::move(job));
    }
    has_room_.wait(lock, [&] {
      return waiting_bytes_ == 0 || waiting_bytes_ + job.bytes <= kMostWaitingBytes;
    });
    waiting_bytes_ += job.bytes;
    jobs_.push_back(std::move(job));
    has_job_.notify_one();
  }

  OperatorReport Finish() {
    if (is_forked()) return {};
    {
      const std::scoped_lock lock(mutex_);
      is_closing_ = true;
      has_job_.notify_all();
    }
    for (std::thread& worker : workers_) worker.join();
    workers_.clear();
    const std::scoped_lock lock(mutex_);
    for (RowJournal* file : {&details_, &result_}) {
      if (!file->file.is_open()) continue;
      if (const auto closed = file->file.Close(); !closed) AddProblem(closed.error().message());
    }
    return report_;
  }

  [[nodiscard]] bool is_forked() const { return ::getpid() != process_; }

 private:
  struct Job {
    uint64_t place = 0;
    std::string name;
    size_t bytes = 0;
    OperatorCall call;
  };

  // A directory that is not there yet; the time in its name.
  std::string NameDirectory(const std::string& parent) {
    const std::string tag = options_.tag.empty() ? "" : "_" + options_.tag;
    for (std::time_t time = std::time(nullptr);; ++time) {
      std::tm local{};
      localtime_r(&time, &local);
      char text[32];
      const std::string stamp(text, std::strftime(text, sizeof(text), "%Y%m%d%H%M%S", &local));
      report_.directory =
          JoinPath(parent, fmt::format("msprobe{}_rank{}_{}", tag, options_.rank, stamp));
      if (KindOf(report_.directory) == PathKind::kMissing) return stamp;
    }
  }

  void Work() {
    std::unique_lock lock(mutex_);
    while (true) {
      has_job_.wait(lock, [&] { return is_closing_ || !jobs_.empty(); });
      if (jobs_.empty()) return;
      Job job = std::move(jobs_.front());
      jobs_.pop_front();
      const size_t bytes = job.bytes;
      lock.unlock();
      Process(std::move(job));
      lock.lock();
      waiting_bytes_ -= bytes;
      has_room_.notify_all();
    }
  }

  void Process(Job job) {
    JudgedCall judged;
    judged.name = job.name;
    judged.where = job.call.where;
    if (job.call.not_checked.empty()) {
      judged.outputs = JudgeOutputs(job.call);
      Conclude(judged);
    } else {
      judged.message = "not checked: " + job.call.not_checked;
    }
    const bool is_failing = judged.verdict == SingleVerdict::kFail;
    if (DumpsNow(job.call.op) || (is_failing && WantsInputs(job.call.op))) {
      const auto written = WriteArrays(job);
      if (!written) judged.problems.push_back(written.error().message());
    }
    // Owners of arrays may wait for other threads: not under the lock.
    job.call = {};
    const std::scoped_lock lock(mutex_);
    judged_.emplace(job.place, std::move(judged));
    for (auto first = judged_.begin(); first != judged_.end() && first->first == committed_;
         first = judged_.erase(first), ++committed_) {
      Commit(first->second);
    }
  }

  plumbline::Status WriteArrays(const Job& job) const {
    const auto write = [&](std::string_view folder, std::string_view part,
                           const std::vector<OperatorLeaf>& leaves) -> plumbline::Status {
      const std::string place = JoinPath(report_.directory, folder);
      for (const OperatorLeaf& leaf : leaves) {
        const std::string name = fmt::format("{}_{}{}{}", job.name, part, leaf.path, npy::kEnding);
        PL_TRY(WriteLeaf(JoinPath(place, name), leaf.value));
      }
      return {};
    };
    PL_TRY(write(kDeviceFolder, "input", job.call.inputs));
    PL_TRY(write(kBenchFolder, "output", job.call.bench));
    return write(kDeviceFolder, "output", job.call.device);
  }

  // Under the lock, in the order of the calls.
  void Commit(const JudgedCall& call) {
    for (const std::string& problem : call.problems) AddProblem(problem);
    switch (call.verdict) {
      case SingleVerdict::kPass:
        ++report_.passed;
        break;
      case SingleVerdict::kFail:
        ++report_.failed;
        if (report_.failures.size() < OperatorReport::kMostFailures) {
          report_.failures.push_back({call.name, call.where, call.message});
        }
        break;
      case SingleVerdict::kNotChecked:
        ++report_.not_checked;
        AddReason(call);
    }
    if (options_.directory.empty()) return;
    const uint64_t before = details_.size;
    auto written = details_.Append(DetailsRows(call));
    if (written) {
      written = result_.Append(RowOfResult(call));
      if (!written) (void)details_.CutTo(before);
    }
    if (!written) AddProblem(written.error().message());
  }

  void AddReason(const JudgedCall& call) {
    auto& reasons = report_.reasons;
    constexpr std::string_view kStart = "not checked: ";
    std::string_view text = call.message;
    const size_t at = text.find(kStart);
    if (at != std::string_view::npos) text.remove_prefix(at + kStart.size());
    const bool is_known = std::find(reasons.begin(), reasons.end(), text) != reasons.end();
    if (!is_known && reasons.size() < OperatorReport::kMostReasons) reasons.emplace_back(text);
  }

  void AddProblem(const std::string& text) {
    auto& problems = report_.problems;
    const bool is_known = std::find(problems.begin(), problems.end(), text) != problems.end();
    if (!is_known && problems.size() < kMostProblems) problems.push_back(text);
  }

  const OperatorCheckOptions options_;
  const pid_t process_ = ::getpid();
  mutable std::mutex mutex_;  // guards everything below
  std::condition_variable has_job_, has_room_;
  std::deque<Job> jobs_;
  size_t waiting_bytes_ = 0;  // of jobs that are not done
  bool is_closing_ = false;
  std::unordered_map<std::string, uint64_t> numbers_;  // of calls, by operator
  uint64_t next_ = 0, committed_ = 0;
  std::map<uint64_t, JudgedCall> judged_;  // done before an earlier one
  RowJournal result_, details_;
  OperatorReport report_;
  std::vector<std::thread> workers_;
};

OperatorCheck::OperatorCheck(std::unique_ptr<State> state) : state_(std::move(state)) {}

OperatorCheck::~OperatorCheck() {
  (void)Finish();
  // The copy of what threads of another process wait for cannot be destroyed.
  if (state_->is_forked()) (void)state_.release();
}

Result<std::unique_ptr<OperatorCheck>> OperatorCheck::Start(const OperatorCheckOptions& options) {
  auto state = std::make_unique<State>(options);
  PL_TRY(state->Open());
  state->StartWorkers();
  return std::unique_ptr<OperatorCheck>(new OperatorCheck(std::move(state)));
}

bool OperatorCheck::WantsInputs(std::string_view op) const { return state_->WantsInputs(op); }

void OperatorCheck::Add(OperatorCall call) { state_->Add(std::move(call)); }

OperatorReport OperatorCheck::Finish() { return state_->Finish(); }

}  // namespace plumbline::precheck
