#include "watch/gradients/gradient_files.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <span>

#include "base/process/log.h"
#include "formats/array/npy.h"
#include "formats/array/sign_pack.h"
#include "store/run_layout.h"

namespace plumbline::gradients {
namespace {

constexpr std::string_view kLockName = ".grad_probe.lock";

// Whether steps of a gradient probe are in a directory.
bool HoldsSteps(const Directory& directory) {
  const auto names = directory.List();
  return names && std::ranges::any_of(*names, [](const std::string& name) {
           return name.starts_with("step") || grad_summary::StepOf(name).has_value();
         });
}

// The directory and its lock; no lock where another process holds it.
struct HeldDirectory {
  Directory directory;
  std::optional<File> lock;
};
Result<HeldDirectory> Hold(const std::string& dump_path, const std::string& name) {
  PL_TRY_ASSIGN(Directory directory, OpenRankPlace({dump_path, {name}}));
  PL_TRY_ASSIGN(File lock, File::OpenAppend(directory, kLockName));
  PL_TRY_ASSIGN(const bool is_held, lock.TryLock());
  HeldDirectory held{std::move(directory), std::nullopt};
  if (is_held) held.lock = std::move(lock);
  return held;
}

Status MoveAside(const std::string& path) {
  for (int n = 1;; ++n) {
    const std::string aside = fmt::format("{}_earlier{}", path, n);
    if (KindOf(aside) != PathKind::kMissing) continue;
    LogWarning(fmt::format("{}: holds the gradients of an earlier run, which are now in {}", path,
                           aside));
    return RenameFile(path, aside);
  }
}

Result<HeldDirectory> Claim(const std::string& dump_path, int rank) {
  const std::string name = run_layout::RankName(rank);
  PL_TRY_ASSIGN(HeldDirectory held, Hold(dump_path, name));
  if (!held.lock) {
    const std::string other = run_layout::ContestedDirectory(name, getpid());
    LogWarning(fmt::format("{}: another process writes there. This one writes {}",
                           held.directory.path(), other));
    return Hold(dump_path, other);
  }
  if (!HoldsSteps(held.directory)) return held;
  PL_TRY(MoveAside(JoinPath(dump_path, name)));
  return Hold(dump_path, name);
}

std::span<const std::byte> BytesOf(const Signs& signs) {
  return std::as_bytes(std::span<const uint8_t>(signs.bits.get(), signs.bytes));
}

}  // namespace

Result<std::unique_ptr<GradientFiles>> GradientFiles::Create(const std::string& dump_path, int rank,
                                                             grad_summary::Columns columns,
                                                             bool packed) {
  PL_TRY_ASSIGN(HeldDirectory held, Claim(dump_path, rank));
  if (!held.lock) {
    return Error(ErrorCode::kIo, fmt::format("{}: another process writes there. Use another "
                                             "dump_path",
                                             held.directory.path()));
  }
  return std::unique_ptr<GradientFiles>(new GradientFiles(
      std::move(held.directory), *std::move(held.lock), std::move(columns), packed));
}

GradientFiles::~GradientFiles() {
  writer_.Drain();
  if (lost_ > 0) {
    LogWarning(fmt::format("{}: {} of the gradient probe could not be written", path(),
                           lost_ == 1 ? "1 step" : fmt::format("{} steps", lost_)));
  }
}

void GradientFiles::Write(Step step) {
  writer_.WaitForAtMost(1);
  writer_.Submit("", [this, step = std::move(step)] {
    const Status written = WriteStep(step);
    if (written) return;
    if (lost_++ == 0) {
      LogWarning(fmt::format("step {} of the gradient probe is lost: {}", step.number,
                             written.error().message()));
    }
  });
}

Status GradientFiles::WriteSigns(const Step& step, const std::string& directory) const {
  if (packed_) {
    std::vector<sign_pack::Entry> entries;
    for (size_t i = 0; i < step.rows.size(); ++i) {
      entries.push_back({step.rows[i].name, step.rows[i].shape, BytesOf(step.signs[i])});
    }
    PL_TRY_ASSIGN(AtomicFile file, AtomicFile::Create(JoinPath(directory, sign_pack::kFileName)));
    PL_TRY(sign_pack::Write(entries, file));
    return file.Commit(/*durable=*/false);
  }
  run_layout::TensorNames names(npy::kEnding);
  for (size_t i = 0; i < step.rows.size(); ++i) {
    const std::string path = JoinPath(directory, names.Reserve(step.rows[i].name));
    PL_TRY(sign_pack::WriteNpy(path, step.rows[i].shape, BytesOf(step.signs[i])));
  }
  return {};
}

Status GradientFiles::WriteStep(const Step& step) {
  PL_TRY(directory_.CheckPlace());
  const std::string name = run_layout::StepName(step.number);
  if (!step.signs.empty()) {
    const std::string unfinished = fmt::format(".{}.tmp", name);
    const bool is_there = directory_.KindOf(name) == PathKind::kDirectory;
    PL_TRY(directory_.MakeInside(is_there ? name : unfinished));
    PL_TRY(WriteSigns(step, JoinPath(path(), is_there ? name : unfinished)));
    if (!is_there) PL_TRY(directory_.Rename(unfinished, name));
  }
  return WriteFileAtomically(directory_, grad_summary::FileName(step.number),
                             grad_summary::FileText(columns_, step.rows), /*durable=*/false);
}

}  // namespace plumbline::gradients
