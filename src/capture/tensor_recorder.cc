#include "capture/tensor_recorder.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/memory/digest.h"
#include "kernels/finite_scan.h"
#include "tensor/float_range.h"

namespace plumbline::capture {
namespace {

// Tensors from this size on are read without the program's lock.
constexpr size_t kReleaseLockBytes = size_t{1} << 20;
constexpr size_t kWorthRememberingBytes = size_t{32} << 10;

// Copies what a scan found into the facts of a tensor.
void Fill(const TensorView& view, const kernels::TensorScan& scan, bool has_digest,
          TensorFacts* facts) {
  facts->stats = ComputeStats(view.dtype, scan.moments, view.sizes.empty());
  facts->has_digest = has_digest;
  facts->digest = scan.crc32;
}

// In xor mode the checksum stands instead of statistics. An empty tensor has none.
void FillXor(const TensorView& view, const kernels::TensorScan& scan, TensorFacts* facts) {
  facts->has_digest = view.element_count() > 0;
  facts->digest = scan.xor_words;
}

void PackStatistic(std::string_view key, const Statistic& value, EntryPacker& out) {
  out.Key(key);
  if (const auto* number = std::get_if<double>(&value)) {
    out.Float(*number);
  } else if (const auto* integer = std::get_if<int64_t>(&value)) {
    out.Int(*integer);
  } else if (const auto* truth = std::get_if<bool>(&value)) {
    out.Bool(*truth);
  } else {
    out.Null();
  }
}

bool IsSaturated(DType dtype, double magnitude) {
  return InfoOf(dtype).kind == DTypeKind::kFloat && magnitude == LargestFinite(dtype);
}

// What is wrong with the values of a tensor, from its statistics; empty: nothing.
std::string_view ReasonOf(const PackedTensor& tensor, DType dtype, bool finds_saturated) {
  const auto* max = std::get_if<double>(&tensor.max);
  const auto* min = std::get_if<double>(&tensor.min);
  if (max == nullptr || min == nullptr) return {};
  if (std::isnan(*max) || std::isnan(*min)) return "nan";
  if (std::isinf(*max) && *max > 0) return "inf";
  if (std::isinf(*min)) return "-inf";
  const double magnitude = std::max(std::abs(*max), std::abs(*min));
  return finds_saturated && IsSaturated(dtype, magnitude) ? "saturated" : std::string_view();
}

// Opens the map of a tensor's record with its first members.
void BeginTensor(std::string_view type, std::string_view dtype_text, std::span<const int64_t> shape,
                 EntryPacker& out) {
  out.BeginMap();
  out.Key("type");
  out.String(type);
  out.Key("dtype");
  out.String(dtype_text);
  out.Key("shape");
  out.BeginList();
  for (const int64_t size : shape) out.Int(size);
  out.EndList();
}

}  // namespace

FrameworkTexts TextsOf(std::string name) {
  const bool is_mindspore = name == "mindspore", is_mindtorch = name == "mindtorch";
  FrameworkTexts texts{.name = std::move(name),
                       .tensor_type = "torch.Tensor",
                       .dtype_type = "torch.dtype",
                       .has_mindspore_dtypes = is_mindspore || is_mindtorch,
                       .tells_grad = !is_mindspore && !is_mindtorch,
                       .tells_device = !is_mindspore};
  if (texts.has_mindspore_dtypes) {
    texts.tensor_type = "mindspore.Tensor";
    texts.dtype_type = "mindspore.dtype";
  }
  return texts;
}

TensorRecorder::TensorRecorder(CallRecorder& calls, const FrameworkTexts& texts)
    : calls_(calls),
      texts_(texts),
      wants_digest_(calls.config().summary_mode == SummaryMode::kMd5),
      wants_xor_(calls.config().summary_mode == SummaryMode::kXor),
      wants_position_digest_(calls.config().summary_mode == SummaryMode::kDigest) {}

kernels::TensorScan TensorRecorder::Scan(const TensorView& view, kernels::ScanWants wants,
                                         On thread) const {
  if (thread == On::kBackground) return kernels::ScanTensor(view, wants);
  const kernels::Team team = calls_.threads().team();
  wants.team = &team;
  if (view.size_bytes() < kReleaseLockBytes) return kernels::ScanTensor(view, wants);
  kernels::TensorScan scan;
  calls_.threads().run_unlocked([&] { scan = kernels::ScanTensor(view, wants); });
  return scan;
}

Sight TensorRecorder::Look(const TensorView& view) const {
  const kernels::Team team = calls_.threads().team();
  Sight sight;
  const auto look = [&] {
    if (!calls_.config().finds_saturated) {
      sight.hit = kernels::HasNonFinite(view, &team);
      return;
    }
    const kernels::AbsExtremes extremes = kernels::AbsExtremesOf(view, &team);
    sight.hit = extremes.has_nan || extremes.has_inf;
    sight.saturated = IsSaturated(view.dtype, extremes.max);
  };
  if (view.size_bytes() < kReleaseLockBytes) {
    look();
  } else {
    calls_.threads().run_unlocked(look);
  }
  return sight;
}

bool TensorRecorder::IsWorthRemembering(const TensorView& view) {
  return view.size_bytes() >= kWorthRememberingBytes;
}

TensorBuffer TensorRecorder::BufferFrom(RunWriter& writer, size_t bytes, On thread) const {
  if (thread == On::kBackground) return writer.AcquireBuffer(bytes);
  TensorBuffer buffer;
  if (bytes < kReleaseLockBytes) buffer = writer.TryAcquireBuffer(bytes);
  if (buffer.is_valid()) return buffer;
  calls_.threads().run_unlocked([&] { buffer = writer.AcquireBuffer(bytes); });
  return buffer;
}

TensorStats TensorRecorder::StatsWithZeros(const TensorView& view, uint64_t zeros) const {
  kernels::Moments sums = Scan(view, {}, On::kProgram).moments;
  sums.count += zeros;
  sums.zero_count += zeros;
  sums.max = std::max(sums.max, 0.0);
  sums.min = std::min(sums.min, 0.0);
  sums.finite_max = std::max(sums.finite_max, 0.0);
  sums.finite_min = std::min(sums.finite_min, 0.0);
  return ComputeStats(view.dtype, sums, /*is_scalar=*/false);
}

kernels::ScanWants TensorRecorder::WantsOfMode() const {
  kernels::ScanWants wants;
  wants.moments = !wants_xor_;
  wants.xor_words = wants_xor_;
  wants.position_digest = wants_position_digest_;
  return wants;
}

void TensorRecorder::TakeScan(const TensorView& view, const kernels::TensorScan& scan,
                              TensorFacts* facts) const {
  if (wants_xor_) return FillXor(view, scan, facts);
  Fill(view, scan, wants_digest_, facts);
  if (!wants_position_digest_) return;
  facts->has_digest = true;
  facts->digest = scan.position_digest.low;
  facts->digest_high = scan.position_digest.high;
}

void TensorRecorder::ScanInto(const TensorView& view, On thread, TensorFacts* facts) const {
  kernels::ScanWants wants = WantsOfMode();
  wants.crc32 = wants_digest_;
  // Upstream's rule (release 1.2.2): the digest of a bfloat16 tensor is that of its float32 copy.
  wants.crc_of_float32 = true;
  TakeScan(view, Scan(view, wants, thread), facts);
}

std::string TensorRecorder::ReserveName(RunWriter& writer, const ThreadState& thread,
                                        std::string_view path) const {
  std::string tensor_name = thread.entry_name;
  if (!path.empty()) {
    tensor_name += '.';
    tensor_name += path;
  }
  // A parameter's gradient of a later backward pass replaces the earlier one.
  const bool replaces =
      thread.replaces_files || KindOfCall(thread.entry_name) == CallKind::kParametersGrad;
  return writer.ReserveTensorName(
      tensor_name, replaces ? RunWriter::NameUse::kReplace : RunWriter::NameUse::kNew);
}

bool TensorRecorder::Save(RunWriter& writer, const std::string& file_name, const TensorView& view,
                          On thread, TensorFacts* facts) const {
  if (facts->has_content && writer.LinkIfKnown(facts->content, file_name)) return true;
  TensorBuffer buffer = BufferFrom(writer, view.size_bytes(), thread);
  if (!buffer.is_valid()) {
    writer.CountLostTensor();
    ScanInto(view, thread, facts);
    return false;
  }
  kernels::ScanWants wants = WantsOfMode();
  wants.crc32 = true;  // of the stored bytes: the zip container of a .pt file needs it
  wants.content = true;
  wants.copy_to = buffer.bytes().data();
  const kernels::TensorScan scan = Scan(view, wants, thread);
  TakeScan(view, scan, facts);
  if (wants_digest_ && view.dtype == DType::kBFloat16) {
    kernels::ScanWants digest;
    digest.moments = false;
    digest.crc32 = true;
    digest.crc_of_float32 = true;
    facts->digest = Scan(view, digest, thread).crc32;
  }
  facts->content = MakeContentKey(scan.content, view.dtype, view.sizes);
  facts->has_content = true;
  if (writer.LinkIfKnown(facts->content, file_name)) return true;
  writer.SaveTensor({file_name, view.dtype, view.sizes, scan.crc32, facts->content},
                    std::move(buffer));
  return true;
}

TensorRecorder::Reading TensorRecorder::Read(const ThreadState& thread, const TensorView& view,
                                             std::string_view path, uint64_t implicit_zeros,
                                             const TensorFacts* known) const {
  Reading reading;
  if (known != nullptr) reading.facts = *known;
  if (implicit_zeros > 0) {
    reading.facts.stats = StatsWithZeros(view, implicit_zeros);
  } else if (thread.saves_tensors) {
    RunWriter& writer = calls_.observer().writer();
    reading.data_name = ReserveName(writer, thread, path);
    if (!Save(writer, reading.data_name, view, On::kProgram, &reading.facts)) {
      reading.data_name.clear();
    }
  } else if (known == nullptr) {
    ScanInto(view, On::kProgram, &reading.facts);
  }
  return reading;
}

// A record with keys that a PackedTensor does not have is a map with the same keys, in the order of
// 1.2.2, the further members behind requires_grad as in 26.x, `reason` last.
void TensorRecorder::PackWithMembers(const PackedTensor& tensor, const TensorLabels& labels,
                                     std::string_view reason, EntryPacker& out) const {
  if (labels.extra_members.empty() && reason.empty()) return out.Tensor(tensor);
  BeginTensor(tensor.type, tensor.dtype_text, tensor.shape, out);
  if (tensor.late) {
    out.LateMembers(*tensor.late);
  } else if (!tensor.digest.starts_with("0x")) {  // summary_mode xor has no statistics
    PackStatistic("Max", tensor.max, out);
    PackStatistic("Min", tensor.min, out);
    PackStatistic("Mean", tensor.mean, out);
    PackStatistic("Norm", tensor.norm, out);
  }
  if (texts_.tells_grad) {
    out.Key("requires_grad");
    out.Bool(tensor.requires_grad == true);
  }
  out.Raw(labels.extra_members);
  if (tensor.max_finite) PackStatistic("Max_except_inf_nan", *tensor.max_finite, out);
  if (tensor.min_finite) PackStatistic("Min_except_inf_nan", *tensor.min_finite, out);
  if (!tensor.digest.empty()) {
    out.Key("md5");
    out.String(tensor.digest);
  }
  if (!tensor.data_name.empty()) {
    out.Key("data_name");
    out.String(tensor.data_name);
  }
  if (!reason.empty()) {
    out.Key("overflow_reason");
    out.String(reason);
  }
  out.EndMap();
}

void TensorRecorder::Pack(const TensorView& view, const Reading& reading,
                          const TensorLabels& labels, EntryPacker& out) const {
  const TensorFacts& facts = reading.facts;
  PackedTensor packed;
  packed.type = labels.type;
  packed.dtype_text = labels.dtype_text.empty() ? texts_.DTypeText(view.dtype) : labels.dtype_text;
  packed.shape = labels.shape == nullptr ? view.sizes : std::span<const int64_t>(*labels.shape);
  packed.max = facts.stats.max;
  packed.min = facts.stats.min;
  packed.mean = facts.stats.mean;
  packed.norm = facts.stats.norm;
  packed.max_finite = facts.stats.max_finite;
  packed.min_finite = facts.stats.min_finite;
  if (texts_.tells_grad) packed.requires_grad = labels.requires_grad;
  const std::string digest = DigestText(facts);
  packed.digest = digest;
  packed.data_name = reading.data_name;
  const bool explains = calls_.search() == Search::kNonFinite;
  const std::string_view reason =
      explains ? ReasonOf(packed, view.dtype, calls_.config().finds_saturated) : std::string_view();
  PackWithMembers(packed, labels, reason, out);
}

std::string TensorRecorder::DigestText(const TensorFacts& facts) const {
  if (!facts.has_digest) return {};
  if (wants_position_digest_) return PositionDigestHex({facts.digest, facts.digest_high});
  return wants_xor_ ? XorHex(facts.digest) : Crc32Hex(static_cast<uint32_t>(facts.digest));
}

void TensorRecorder::PackLate(const ThreadState& thread, const LateTensor& tensor,
                              std::string_view path, const TensorLabels& labels,
                              EntryPacker& out) const {
  Observer& observer = calls_.observer();
  std::string file_name;
  if (thread.saves_tensors) file_name = ReserveName(observer.writer(), thread, path);
  PackedTensor packed;
  packed.type = labels.type;
  packed.dtype_text =
      labels.dtype_text.empty() ? texts_.DTypeText(tensor.dtype) : labels.dtype_text;
  packed.shape = labels.shape == nullptr ? tensor.sizes : std::span<const int64_t>(*labels.shape);
  if (texts_.tells_grad) packed.requires_grad = labels.requires_grad;
  packed.data_name = file_name;
  packed.late = tensor.number;
  PackWithMembers(packed, labels, {}, out);
  observer.AwaitValues(tensor.number, {tensor.dtype, tensor.sizes.empty(), std::move(file_name)});
}

void TensorRecorder::AddLate(uint64_t number, const TensorView& view) const {
  for (const std::shared_ptr<RunWriter>& writer : calls_.observer().AwaitingOf(number, 1)) {
    const std::optional<RunWriter::LateTensor> awaited = writer->Awaited(number);
    if (!awaited) continue;
    TensorFacts facts;
    if (awaited->file_name.empty()) {
      ScanInto(view, On::kBackground, &facts);
    } else {
      (void)Save(*writer, awaited->file_name, view, On::kBackground, &facts);
    }
    return writer->AddValues(number, 1, [&](uint64_t, const RunWriter::LateTensor&) {
      return LateValues{facts.stats, DigestText(facts)};
    });
  }
}

void TensorRecorder::PackWithoutValues(const TensorLabels& labels, EntryPacker& out) const {
  PackedTensor packed;
  packed.type = labels.type;
  packed.dtype_text = labels.dtype_text;
  if (labels.shape != nullptr) packed.shape = *labels.shape;
  if (texts_.tells_grad) packed.requires_grad = labels.requires_grad;
  PackWithMembers(packed, labels, {}, out);
}

void TensorRecorder::PackBare(const TensorLabels& labels, EntryPacker& out) const {
  BeginTensor(labels.type, labels.dtype_text, labels.shape == nullptr ? Shape() : *labels.shape,
              out);
  if (texts_.tells_grad) {
    out.Key("requires_grad");
    out.Bool(labels.requires_grad == true);
  }
  out.EndMap();
}

}  // namespace plumbline::capture
