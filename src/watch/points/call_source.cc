// Recordings of calls: dump.json of one rank and step, or directories of many.

#include <fmt/format.h>

#include <algorithm>
#include <mutex>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "base/file/directory.h"
#include "base/file/file.h"
#include "base/text/number_text.h"
#include "base/text/text_parts.h"
#include "formats/pytorch/tensor_file.h"
#include "load/detect.h"
#include "load/rank_directories.h"
#include "load/run_reader.h"
#include "plumbline/run.h"
#include "record/run_files.h"
#include "watch/points/recording.h"

namespace plumbline::watch {
namespace {

class HeldFile : public HeldTensor {
 public:
  explicit HeldFile(TensorFile file) : file_(std::move(file)) {}
  [[nodiscard]] TensorView view() const override { return file_.view(); }

 private:
  TensorFile file_;
};

class CallPart : public StepPart {
 public:
  Result<std::vector<WatchedTensor>> Read() override {
    std::vector<WatchedTensor> tensors;
    int64_t place = 0;
    OpenOptions options;
    options.salvage = true;
    options.defer_stacks = true;
    std::unordered_set<std::string> names;
    bool has_repeats = false;
    options.keep = [&](Call& call, const RunHeader& header) {
      has_repeats = !names.insert(call.name).second || has_repeats;
      AppendTensors(call, place++, header.by_plumbline, tensors);
      return false;
    };
    PL_TRY_ASSIGN(Run run, Run::Open(path, options));
    const RunLoss& loss = run.loss_so_far();
    is_damaged = loss.truncated || loss.recorder_drops > 0 || loss.unfinished;
    if (loss.truncated) {
      notes.push_back(fmt::format("{}: ends within a record (byte {}); the calls behind it are "
                                  "missing",
                                  path, loss.byte_offset));
    }
    if (loss.recorder_drops > 0) {
      notes.push_back(fmt::format("{}: the recorder lost {} of its calls, values or files", path,
                                  loss.recorder_drops));
    }
    if (loss.unfinished) {
      notes.push_back(fmt::format("{}: is older than the journal beside it. Run plumb recover.",
                                  path));
    }
    if (has_repeats) KeepLast(tensors);
    run_ = std::make_unique<Run>(std::move(run));
    return tensors;
  }

  Result<std::unique_ptr<HeldTensor>> Open(const WatchedTensor& tensor) override {
    PL_TRY_ASSIGN(TensorFile file, load::OpenTensor(*run_, tensor.file));
    return std::unique_ptr<HeldTensor>(std::make_unique<HeldFile>(std::move(file)));
  }

  std::vector<std::string> StackOf(const WatchedTensor& tensor) override {
    // Read by the first that asks.
    const std::scoped_lock lock(stacks_);
    const std::vector<std::string>& stack = *run_->StackOf(tensor.name);
    if (!stack.empty()) return stack;
    std::string forward = tensor.name;
    const size_t at = forward.rfind(".backward");
    if (at == std::string::npos) return {};
    forward.replace(at, 9, ".forward");
    return *run_->StackOf(forward);
  }

 private:
  // Of calls that are there again the last one counts.
  void KeepLast(std::vector<WatchedTensor>& tensors) {
    std::unordered_map<std::string, int64_t> last;
    for (const WatchedTensor& tensor : tensors) last[tensor.name] = tensor.place;
    const auto dropped = std::erase_if(tensors, [&](const WatchedTensor& tensor) {
      return last.at(tensor.name) != tensor.place;
    });
    notes.push_back(fmt::format("{}: calls occur again; the last one of each counts ({} left out)",
                                path, CountText(dropped, "tensor")));
  }

  std::unique_ptr<Run> run_;
  std::mutex stacks_;
};

void AddPart(std::string path, int64_t step, int64_t rank, Recording& recording) {
  auto part = std::make_shared<CallPart>();
  part->path = std::move(path);
  part->step = step;
  part->rank = rank;
  recording.parts.push_back(std::move(part));
}

// The main file of a rank's directory; empty: there is none.
std::string MainFileIn(const std::string& directory) {
  for (const std::string_view name : {run_files::kDumpJson, run_files::kDebugJson}) {
    std::string path = JoinPath(directory, name);
    if (KindOf(path) == PathKind::kFile) return path;
  }
  return {};
}

Status AddStep(const std::string& directory, int64_t step, Recording& recording) {
  PL_TRY_ASSIGN(const auto ranks, load::ListRankDirectories(directory));
  int64_t unknown = -1;
  for (const load::RankDirectory& rank : ranks) {
    const std::string file = MainFileIn(rank.path);
    if (file.empty()) {
      ++recording.damaged;
      recording.notes.push_back(rank.path + ": holds no dump.json. Run plumb recover if its "
                                            "training was killed.");
      continue;
    }
    AddPart(file, step, rank.rank.value_or(unknown), recording);
    if (!rank.rank) --unknown;
  }
  return {};
}

// "3" of ".../step3/rank0/dump.json".
std::pair<int64_t, int64_t> PlaceOf(const std::string& file) {
  std::pair<int64_t, int64_t> place{0, 0};
  const auto absolute = AbsolutePath(file);
  if (!absolute) return place;
  constexpr std::string_view kStep = "/step", kRank = "/rank";
  for (const auto& [mark, number] : {std::pair(kStep, &place.first), {kRank, &place.second}}) {
    const size_t at = absolute->rfind(mark);
    if (at == std::string::npos) continue;
    const size_t begin = at + mark.size();
    const size_t end = std::min(absolute->find('/', begin), absolute->size());
    *number = ParseNatural(std::string_view(*absolute).substr(begin, end - begin)).value_or(0);
  }
  return place;
}

constexpr int kDepth = 3;  // of recordings below a path that is none

// The first few directories below that hold dump.json in their steps or ranks.
void FindRecordings(const std::string& directory, int depth, std::vector<std::string>& found) {
  constexpr size_t kMost = 3;
  const auto names = ListDirectories(directory);
  if (!names || depth == 0) return;
  for (const std::string& name : *names) {
    if (found.size() >= kMost) return;
    const std::string child = JoinPath(directory, name);
    const auto dumps = load::ListDumpJson(child);
    if (dumps && !dumps->empty()) {
      found.push_back(child);
    } else {
      FindRecordings(child, depth - 1, found);
    }
  }
}

}  // namespace

Result<Recording> OpenCalls(const std::string& path) {
  Recording recording;
  recording.kind = "recorded calls";
  recording.tensors_advice = "record with task \"tensor\"";
  if (KindOf(path) == PathKind::kFile || !MainFileIn(path).empty()) {
    const std::string file = KindOf(path) == PathKind::kFile ? path : MainFileIn(path);
    PL_TRY_ASSIGN(const std::string dump, load::ResolveDumpJson(file));
    const auto [step, rank] = PlaceOf(dump);
    AddPart(dump, step, rank, recording);
    return recording;
  }
  PL_TRY_ASSIGN(const auto steps, load::ListStepDirectories(path));
  for (const load::StepDirectory& step : steps) PL_TRY(AddStep(step.path, step.step, recording));
  if (!steps.empty()) {
    PL_TRY_ASSIGN(const auto ranks, load::ListRankDirectories(path));
    if (!ranks.empty()) {
      return Error(ErrorCode::kInvalidArgument,
                   fmt::format("{}: holds steps ({}) and ranks ({}), of two recordings. Name "
                               "one of them.",
                               path, BaseName(steps.front().path), ranks.front().name));
    }
  }
  if (steps.empty()) PL_TRY(AddStep(path, PlaceOf(JoinPath(path, "x")).first, recording));
  if (!recording.parts.empty()) return recording;
  std::vector<std::string> below;
  FindRecordings(path, kDepth, below);
  if (!below.empty()) {
    return Error(ErrorCode::kInvalidArgument,
                 fmt::format("{}: holds other recordings ({}). Name one of them.", path,
                             fmt::join(below, ", ")));
  }
  return Error(ErrorCode::kInvalidArgument,
               fmt::format("{}: nothing to watch (expected a recording with dump.json, a dump of "
                           "static graphs, a monitor's output or checkpoints)",
                           path));
}

}  // namespace plumbline::watch
