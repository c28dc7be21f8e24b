#include "operators/overflow_summary.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>

#include "base/file/file.h"
#include "formats/acl/acl_dump.h"
#include "formats/acl/acl_file_name.h"
#include "formats/acl/acl_overflow.h"
#include "match/expand.h"
#include "operators/convert_file.h"
#include "report/result_names.h"

namespace plumbline::operators {
namespace {

constexpr uint64_t kNotValid = 65535;  // of contexts and threads
constexpr size_t kTitleWidth = 102;

struct Candidate {
  const load::DumpPath* file = nullptr;
  acl::DumpFileName name;
};

std::vector<Candidate> CandidatesOf(const load::DumpFiles& found, bool records) {
  std::vector<Candidate> candidates;
  for (const load::DumpPath& file : found.files) {
    const std::optional<acl::DumpFileName> name = acl::ParseDumpFileName(file.name);
    if (name && acl::IsOverflowFileName(file.name) == records) {
      candidates.push_back({&file, *name});
    }
  }
  return candidates;
}

// "===[1]===", as wide as all of them.
std::string TitleLine(size_t number) {
  const std::string title = fmt::format("[{}]", number);
  const size_t left = (kTitleWidth - title.size()) / 2;
  return std::string(left, '=') + title + std::string(kTitleWidth - title.size() - left, '=') +
         '\n';
}

// "status" of a part, as Python prints it.
std::string StatusText(const acl::OverflowPart& part) {
  const acl::OverflowField& status = part.fields.back();
  if (status.is_list) return fmt::format("[{}]", fmt::join(status.values, ", "));
  return fmt::to_string(status.values.front());
}

class Summary {
 public:
  Summary(const OverflowRequest& request, load::DumpFiles found)
      : request_(request),
        found_(std::move(found)),
        operators_(CandidatesOf(found_, /*records=*/false)) {
    summary_.notes = found_.notes;
    for (const Candidate& one : operators_) {
      if (!one.name.stream_id) continue;
      of_task_[{DirectoryOf(one.file->path), one.name.task_id, *one.name.stream_id}].push_back(
          &one);
    }
  }

  DumpResult<OverflowSummary> Make() {
    std::vector<Candidate> records = CandidatesOf(found_, /*records=*/true);
    std::ranges::stable_sort(records, {},
                             [](const Candidate& one) { return one.name.sort_time(); });
    summary_.found = records.size();
    for (const Error& one : found_.unreadable) AddFailure(DumpCode::kInvalidPath, one.message());
    if (records.empty()) return std::move(summary_);
    PL_TRY_ASSIGN(OutputDirectory output, OutputDirectory::Open(request_.output_directory));
    output_.emplace(std::move(output));
    size_t shown = 0;
    for (const Candidate& record : records) {
      const size_t failures = summary_.failures.size();
      if (shown == request_.count) {
        Tell(record.file->path, CheckRecords(record.file->path, record.file->name));
      } else if (Add(record)) {
        ++shown;
      }
      summary_.damaged += summary_.failures.size() > failures ? 1 : 0;
    }
    if (text_.empty()) return std::move(summary_);
    const report::FreeName path =
        report::FreePath(request_.output_directory, "overflow_summary", ".txt");
    const Status written = WriteFileAtomically(path.text, text_, /*durable=*/false);
    if (!written) return Failed(DumpCode::kWriteError, written.error());
    summary_.summary_path = path.text;
    return std::move(summary_);
  }

 private:
  void AddFailure(DumpCode code, const std::string& sentence) {
    if (summary_.failures.empty()) summary_.code = code;
    summary_.failures.push_back(fmt::format("{} (error {})", sentence, static_cast<int>(code)));
  }

  void Fail(const std::string& where, DumpCode code, const std::string& what) {
    AddFailure(code, fmt::format("{}: {}", where, what));
  }

  // All tensors of an operator's file as arrays, or the records as JSON; once a file.
  void Convert(const load::DumpPath& file) {
    if (!converted_.insert(file.path).second) return;
    FileConversion converted = ConvertFile(file.path, file.name, {}, *output_);
    for (PlacedFile& output : converted.outputs) summary_.outputs.push_back(std::move(output.path));
    Tell(file.path, converted.failures);
  }

  void Tell(const std::string& path, const std::vector<ConvertFailure>& failures) {
    for (const ConvertFailure& one : failures) {
      if (one.part.empty()) {
        AddFailure(one.failure.code, one.failure.text);
      } else {
        Fail(fmt::format("{}: {}", path, one.part), one.failure.code, one.failure.text);
      }
    }
  }

  // Whether it holds a record of an overflow. What is damaged is told and takes no other's place.
  bool Add(const Candidate& candidate) {
    const std::string& path = candidate.file->path;
    Convert(*candidate.file);
    const Result<acl::DumpFile> file = acl::DumpFile::Open(path, candidate.file->name);
    if (!file) return false;  // said by Convert()
    bool has_record = false;
    for (const acl::DumpedTensor& output : file->message().outputs) {
      const Result<acl::OverflowRecord> record = acl::ReadOverflow(output.data);
      if (record) has_record = AddRecord(candidate, *record) || has_record;
    }
    return has_record;
  }

  bool AddRecord(const Candidate& candidate, const acl::OverflowRecord& record) {
    const auto is_bad = [](const acl::OverflowPart& part) { return part.has_overflow(); };
    const auto part = std::ranges::find_if(record.parts, is_bad);
    if (part == record.parts.end()) {
      Fail(candidate.file->path,
           record.is_new ? DumpCode::kInvalidOverflowStatus : DumpCode::kInvalidOverflowType,
           "the record has no status that is not 0");
      return false;
    }
    const bool is_sure = summary_.failures.empty();  // of records in front of this one
    const Candidate* kernel = FindOperator(*candidate.file, *part);
    std::optional<acl::DumpFile> dump = kernel != nullptr ? OpenOperator(*kernel) : std::nullopt;
    std::string title = "[unknown] unknown";
    if (kernel != nullptr) {
      const bool has_name = dump && !dump->message().op_name.empty();
      title = fmt::format("[{}] {}", kernel->name.op_type,
                          has_name ? dump->message().op_name : kernel->name.op_name);
    } else {
      summary_.notes.push_back(fmt::format("{}: its operator (task {}, stream {}) was not dumped",
                                           candidate.file->path, *part->Value("task_id"),
                                           *part->Value("stream_id")));
    }
    text_ += TitleLine(++number_) + title + "\n";
    for (const acl::OverflowPart& one : record.parts) {
      if (!one.has_overflow()) continue;
      text_ += fmt::format(" [{}][TaskId:{}][StreamId:{}][Status:{}]\n", one.kind,
                           *one.Value("task_id"), *one.Value("stream_id"), StatusText(one));
    }
    text_ += fmt::format(" [timestamp:{}]\n", candidate.name.timestamp);
    if (summary_.first.empty()) {
      summary_.first = fmt::format("{} ({}, status {})", title, part->kind, StatusText(*part));
      summary_.is_first_sure = is_sure;
    }
    if (dump) AddTensors(*kernel->file, dump->message());
    return true;
  }

  // The operator's file in the record's directory; of several the last one in front of the record.
  const Candidate* FindOperator(const load::DumpPath& record, const acl::OverflowPart& part) const {
    const auto fits = [&](std::string_view field, std::optional<uint64_t> own) {
      const std::optional<uint64_t> wanted = part.Value(field);
      return !wanted || *wanted == kNotValid || own == wanted;
    };
    const Candidate* found = nullptr;
    const uint64_t time = acl::ParseDumpFileName(record.name)->sort_time();
    const auto of_task =
        of_task_.find({DirectoryOf(record.path), *part.Value("task_id"), *part.Value("stream_id")});
    if (of_task == of_task_.end()) return nullptr;
    for (const Candidate* candidate : of_task->second) {
      const Candidate& one = *candidate;
      const auto& thread = one.name.thread;
      if (!fits("context_id", thread ? std::optional(thread->context_id) : std::nullopt) ||
          !fits("thread_id", thread ? std::optional(thread->thread_id) : std::nullopt)) {
        continue;
      }
      const bool is_before = one.name.sort_time() <= time;
      const bool found_before = found != nullptr && found->name.sort_time() <= time;
      const bool is_later = found == nullptr || one.name.sort_time() >= found->name.sort_time();
      if (found == nullptr || (is_before && (!found_before || is_later))) found = &one;
    }
    return found;
  }

  std::optional<acl::DumpFile> OpenOperator(const Candidate& kernel) {
    Convert(*kernel.file);
    Result<acl::DumpFile> file = acl::DumpFile::Open(kernel.file->path, kernel.file->name);
    if (!file) return std::nullopt;  // said by Convert()
    return *std::move(file);
  }

  void AddTensors(const load::DumpPath& file, const acl::Message& message) {
    for (size_t i = 0; i < message.inputs.size(); ++i) {
      AddTensor(file, message.inputs[i], fmt::format("input.{}", i));
    }
    for (size_t i = 0; i < message.outputs.size(); ++i) {
      AddTensor(file, message.outputs[i], fmt::format("output.{}", i));
    }
  }

  void AddTensor(const load::DumpPath& file, const acl::DumpedTensor& tensor,
                 const std::string& place) {
    const Result<acl::Elements> elements = acl::ElementsOf(tensor);
    if (!elements) return;  // said by Convert()
    const DTypeInfo& info = InfoOf(elements->dtype);
    if (elements->bytes.empty()) {
      Fail(fmt::format("{}: {}", file.path, place), DumpCode::kInvalidDumpData,
           "the tensor is empty");
      return;
    }
    TensorExtremes extremes{"None", "None", "None"};
    if (info.kind != DTypeKind::kComplex) extremes = ExtremesOf(*elements);
    const std::string_view dtype = info.numpy_descr.empty() ? "float32" : info.name;
    text_ += fmt::format(
        " {}.{}.npy\n -[Format: {}] [Shape: {}] [Dtype: {}] [Max: {}] [Min: {}] [Mean: {}]\n",
        file.name, place, DeviceFormatName(tensor.format), match::TupleText(elements->sizes), dtype,
        extremes.max, extremes.min, extremes.mean);
  }

  const OverflowRequest& request_;
  load::DumpFiles found_;
  std::vector<Candidate> operators_;
  // By directory, task and stream: thousands of records look for theirs.
  std::map<std::tuple<std::string_view, uint64_t, uint64_t>, std::vector<const Candidate*>>
      of_task_;
  std::optional<OutputDirectory> output_;
  std::set<std::string> converted_;
  std::string text_;
  size_t number_ = 0;
  OverflowSummary summary_;
};

}  // namespace

DumpResult<OverflowSummary> SummarizeOverflows(const OverflowRequest& request,
                                               load::DumpFiles found) {
  return Summary(request, std::move(found)).Make();
}

bool HasOverflowRecords(const load::DumpFiles& found) {
  return std::ranges::any_of(
      found.files, [](const load::DumpPath& file) { return acl::IsOverflowFileName(file.name); });
}

}  // namespace plumbline::operators
