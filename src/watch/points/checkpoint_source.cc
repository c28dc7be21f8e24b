// Checkpoints: one, or a directory of several whose names have numbers.

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "base/file/file.h"
#include "base/text/text_parts.h"
#include "load/checkpoint.h"
#include "watch/points/recording.h"

namespace plumbline::watch {
namespace {

using load::Checkpoint;
using load::CheckpointTensor;

class HeldWhole : public HeldTensor {
 public:
  explicit HeldWhole(load::WholeTensor whole) : whole_(std::move(whole)) {}
  [[nodiscard]] TensorView view() const override { return whole_.view(); }

 private:
  load::WholeTensor whole_;
};

// Parameters are weights; what optimizers and normalizations keep beside them is not.
bool IsParameter(std::string_view name) {
  const std::string lower = LowerCase(name);
  for (const std::string_view part :
       {"optimizer", "exp_avg", "momentum", "running_mean", "running_var", "num_batches",
        "state.", "moment1", "moment2", "adam_"}) {
    if (lower.find(part) != std::string::npos) return false;
  }
  return true;
}

class CheckpointPart : public StepPart {
 public:
  Result<std::vector<WatchedTensor>> Read() override {
    PL_TRY_ASSIGN(Checkpoint checkpoint, Checkpoint::Open(path));
    checkpoint_ = std::make_unique<Checkpoint>(std::move(checkpoint));
    notes = checkpoint_->warnings();
    std::vector<WatchedTensor> all;
    for (size_t i = 0; i < checkpoint_->tensors().size(); ++i) {
      const CheckpointTensor& tensor = checkpoint_->tensors()[i];
      WatchedTensor& out = all.emplace_back();
      out.name = tensor.name.empty() ? std::string(BaseName(path)) : tensor.name;
      out.io = "parameters";
      out.slot = "0";
      out.place = static_cast<int64_t>(i);
      if (IsParameter(out.name)) out.kinds |= kWeight;
      out.dtype = InfoOf(tensor.dtype).name;
      out.shape = tensor.sizes;
      out.has_shape = true;
      out.file = path;
      out.problem = tensor.problem;
      out.statistics.dtype = tensor.dtype;
    }
    return all;
  }

  Result<std::unique_ptr<HeldTensor>> Open(const WatchedTensor& tensor) override {
    const auto at = static_cast<size_t>(tensor.place);
    PL_TRY_ASSIGN(load::WholeTensor whole, load::WholeTensor::Of(checkpoint_->tensors()[at]));
    return std::unique_ptr<HeldTensor>(std::make_unique<HeldWhole>(std::move(whole)));
  }

 private:
  std::unique_ptr<Checkpoint> checkpoint_;
};

// The last number in a name: 100 of "iter_0000100", "checkpoint-100.pt" and "step100".
std::optional<int64_t> NumberIn(std::string_view name) {
  constexpr std::string_view kDigits = "0123456789";
  const size_t dot = name.rfind('.');
  if (dot != std::string_view::npos && dot > 0 && !IsDigits(name.substr(dot + 1))) {
    name = name.substr(0, dot);
  }
  const size_t last = name.find_last_of(kDigits);
  if (last == std::string_view::npos) return std::nullopt;
  const size_t before = name.find_last_not_of(kDigits, last);
  const size_t first = before == std::string_view::npos ? 0 : before + 1;
  return ParseNatural(name.substr(first, last - first + 1));
}

struct Numbered {
  std::string path;
  int64_t step = 0;
};

// Files of one checkpoint (shards) have numbers, too: "model-00001-of-00002.safetensors".
bool IsShard(std::string_view name) {
  return name.find("-of-") != std::string_view::npos || name.starts_with("mp_rank_") ||
         name.ends_with(".distcp");
}

std::vector<Numbered> ListCheckpoints(const std::string& path) {
  std::vector<Numbered> found;
  const auto names = ListDirectory(path);
  if (!names) return found;
  for (const std::string& name : *names) {
    if (name.starts_with('.') || IsShard(name)) continue;
    const auto step = NumberIn(name);
    const std::string child = JoinPath(path, name);
    if (step && load::LooksLikeCheckpoint(child)) found.push_back({child, *step});
  }
  std::ranges::stable_sort(found, {}, &Numbered::step);
  return found;
}

}  // namespace

bool HoldsCheckpoints(const std::string& path) {
  const std::vector<Numbered> found = ListCheckpoints(path);
  if (found.size() < 2) return false;
  return std::ranges::adjacent_find(found, {}, &Numbered::step) == found.end();
}

Result<Recording> OpenCheckpoints(const std::string& path) {
  Recording recording;
  recording.kind = "checkpoints";
  recording.tensors_advice = "checkpoints hold parameters alone";
  recording.counts_recorded = true;
  std::vector<Numbered> found;
  if (HoldsCheckpoints(path)) {
    found = ListCheckpoints(path);
  } else {
    found.push_back({path, NumberIn(BaseName(path)).value_or(0)});
  }
  for (const Numbered& one : found) {
    auto part = std::make_shared<CheckpointPart>();
    part->path = one.path;
    part->step = one.step;
    recording.parts.push_back(std::move(part));
  }
  return recording;
}

}  // namespace plumbline::watch
