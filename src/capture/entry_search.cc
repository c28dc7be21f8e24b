// The searching half of the recorder: tasks that look at every tensor and record only what they
// find. Tensors are looked at when they are met and kept; records and files of them are made when
// the call has ended and turned out to be a hit.

#include <fmt/format.h>

#include "base/process/log.h"
#include "capture/call_recorder.h"

namespace plumbline::capture {

void CallRecorder::StoreKept(ThreadState& thread, std::string_view name, EntryPacker& out,
                             const KeptTensors& kept) {
  NameEntry(thread, name);
  thread.saves_tensors = true;
  const std::vector<std::byte> first(out.bytes().begin(), out.bytes().end());
  const std::span<const std::byte> bytes(first);
  out.Clear();
  size_t at = 0;
  for (const KeptTensor& tensor : kept.tensors) {
    out.Raw(bytes.subspan(at, tensor.begin - at));
    packer_.PackKept(tensor, out);
    at = tensor.end;
  }
  out.Raw(bytes.subspan(at));
}

void CallRecorder::EndEntry(ThreadState& thread, std::string_view name, EntryPacker& out,
                            KeptTensors& kept, bool is_listed) {
  if (!kept.awaited.empty()) packer_.ReadAwaited(kept);
  if (search_ == Search::kNothing || out.size() == kept.head) {
    AppendEntry(out.Finish());
  } else if (search_ == Search::kNanFlag) {
    if (kept.is_hit() && !kept.tensors.empty()) StoreKept(thread, name, out, kept);
    out.Key("is_nan");
    if (kept.is_unknown && !kept.is_hit()) {
      out.Null();
    } else {
      out.Int(kept.is_hit() ? 1 : 0);
    }
    AppendEntry(out.Finish());
  } else if (search_ == Search::kDifference) {
    EndCompared(thread, name, out, kept);
  } else {
    EndSearched(thread, name, out, kept, is_listed);
  }
  kept.Clear();
}

void CallRecorder::EndCompared(ThreadState& thread, std::string_view name, EntryPacker& out,
                               const KeptTensors& kept) {
  const size_t size = out.size();
  const Result<UnpackedEntry> entry = UnpackEntry(out.Finish());
  out.Truncate(size);
  const bool differs = entry.has_value() && reference_.Judge(entry->call) == Agreement::kDiffers;
  const bool is_hit = differs && observer_->TakeHit();
  if (is_hit) StoreKept(thread, name, out, kept);
  AppendEntry(out.Finish());
  if (!is_hit) return;
  LogWarning(fmt::format("{}: the same inputs as in {} gave another output; its tensors are stored",
                         name, config().bench_path));
  SecureHit();
}

void CallRecorder::EndSearched(ThreadState& thread, std::string_view name, EntryPacker& out,
                               KeptTensors& kept, bool is_listed) {
  const std::string_view origin = kept.origin();
  const bool is_consequence = config().counts_origins_only && origin == "propagated";
  const bool is_found = kept.is_hit() || kept.is_saturated();
  const bool counts = kept.is_hit() && !is_consequence;
  if (is_found && observer_->is_done()) return;
  if (counts && !observer_->TakeHit()) return;
  if (!is_found || (!counts && !TakeAside(name))) {
    out.Truncate(kept.head);
    if (is_listed) AppendEntry(out.Finish());
    return;
  }
  StoreKept(thread, name, out, kept);
  // Members of this kind are parameters, and one more would be taken for one.
  if (KindOfCall(name) != CallKind::kParametersGrad) {
    out.Key("overflow_origin");
    out.String(origin);
  }
  AppendEntry(out.Finish());
  LogWarning(fmt::format("plumbline is collecting data on {}. {} detected. ({})", name,
                         kept.is_hit() ? "Overflow" : "Saturation", origin));
  SecureHit();
}

bool CallRecorder::TakeAside(std::string_view name) {
  if (observer_->TakeAside()) return true;
  observer_->CountLoss("hits_left_out",
                       fmt::format("{}: one more hit that is no origin of NaN or Inf", name));
  return false;
}

void CallRecorder::SecureHit() {
  Status secured;
  threads_.run_unlocked([this, &secured] { secured = observer_->SecureHit(); });
  if (!secured) LogError(secured.error().message());
}

}  // namespace plumbline::capture
