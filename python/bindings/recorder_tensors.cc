// The tensor half of the recorder: one pass over memory, statistics, digest, file.

#include <algorithm>
#include <cmath>

#include "base/digest.h"
#include "callback.h"
#include "framework_team.h"
#include "kernels/tensor_scan.h"
#include "recorder.h"

namespace plumbline::python {
namespace {

// Tensors from this size on are reduced without the interpreter lock.
constexpr size_t kReleaseLockBytes = size_t{1} << 20;

kernels::TensorScan Scan(const TensorView& view, kernels::ScanWants wants) {
  const kernels::Team team = FrameworkTeam();
  wants.team = &team;
  if (view.size_bytes() < kReleaseLockBytes) return kernels::ScanTensor(view, wants);
  kernels::TensorScan scan;
  Py_BEGIN_ALLOW_THREADS;
  scan = kernels::ScanTensor(view, wants);
  Py_END_ALLOW_THREADS;
  return scan;
}

// Memory for a copy. Waiting for the writer's budget does not stop the other threads.
TensorBuffer BufferFrom(RunWriter& writer, size_t bytes) {
  TensorBuffer buffer;
  if (bytes < kReleaseLockBytes) buffer = writer.TryAcquireBuffer(bytes);
  if (buffer.is_valid()) return buffer;
  Py_BEGIN_ALLOW_THREADS;
  buffer = writer.AcquireBuffer(bytes);
  Py_END_ALLOW_THREADS;
  return buffer;
}

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

// Whether the values differ from the memory: a conjugation or negation not carried out yet.
bool IsLazy(PyObject* tensor, DType dtype) {
  static PyObject* const is_neg = PyUnicode_InternFromString("is_neg");
  static PyObject* const is_conj = PyUnicode_InternFromString("is_conj");
  const DTypeKind kind = InfoOf(dtype).kind;
  if (kind != DTypeKind::kFloat && kind != DTypeKind::kComplex) return false;
  for (PyObject* method : {is_neg, is_conj}) {
    if (method == is_conj && kind != DTypeKind::kComplex) continue;
    PyObject* answer = PyObject_CallMethodNoArgs(tensor, method);
    if (answer == nullptr) DropError();
    const bool lazy = answer == Py_True;
    Py_XDECREF(answer);
    if (lazy) return true;
  }
  return false;
}

TensorStats StatsWithZeros(const HostTensor& host, uint64_t zeros) {
  const TensorView view = host.view();
  kernels::Moments sums = Scan(view, {}).moments;
  sums.count += zeros;
  sums.zero_count += zeros;
  sums.max = std::max(sums.max, 0.0);
  sums.min = std::min(sums.min, 0.0);
  sums.finite_max = std::max(sums.finite_max, 0.0);
  sums.finite_min = std::min(sums.finite_min, 0.0);
  return ComputeStats(view.dtype, sums, /*is_scalar=*/false);
}

// A size that is not known yet (symbolic) is 0: readers take no negative one.
Shape ShapeOf(PyObject* sizes) {
  Shape shape;
  for (Py_ssize_t i = 0; PyTuple_Check(sizes) && i < PyTuple_GET_SIZE(sizes); ++i) {
    const long long size = PyLong_AsLongLong(PyTuple_GET_ITEM(sizes, i));
    if (PyErr_Occurred() != nullptr) DropError();
    shape.push_back(std::max(size, 0LL));
  }
  return shape;
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

// What is wrong with the values of a tensor, from its statistics; empty: nothing.
std::string_view ReasonOf(const PackedTensor& tensor) {
  const auto* max = std::get_if<double>(&tensor.max);
  const auto* min = std::get_if<double>(&tensor.min);
  if (max == nullptr || min == nullptr) return {};
  if (std::isnan(*max) || std::isnan(*min)) return "nan";
  if (std::isinf(*max) && *max > 0) return "inf";
  return std::isinf(*min) ? "-inf" : std::string_view();
}

// A tensor whose record has keys that a PackedTensor does not: a map with the same keys, in the
// order of 1.2.2, `extra` (a dict or null) behind requires_grad as in 26.x, `reason` last.
void PackWithExtra(const PackedTensor& tensor, PyObject* extra, std::string_view reason,
                   bool tells_grad, EntryPacker& out) {
  if (extra == nullptr && reason.empty()) return out.Tensor(tensor);
  BeginTensor(tensor.type, tensor.dtype_text, tensor.shape, out);
  if (!tensor.digest.starts_with("0x")) {  // summary_mode xor has no statistics
    PackStatistic("Max", tensor.max, out);
    PackStatistic("Min", tensor.min, out);
    PackStatistic("Mean", tensor.mean, out);
    PackStatistic("Norm", tensor.norm, out);
  }
  if (tells_grad) {
    out.Key("requires_grad");
    out.Bool(tensor.requires_grad == true);
  }
  if (extra != nullptr) PackJsonMembers(extra, 0, out);
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

}  // namespace

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

void Recorder::ScanTensorInto(const HostTensor& host, TensorFacts* facts) {
  kernels::ScanWants wants;
  wants.moments = !wants_xor_;
  wants.xor_words = wants_xor_;
  wants.crc32 = wants_digest_;
  // Upstream's rule (release 1.2.2): the digest of a bfloat16 tensor is that of its float32 copy.
  wants.crc_of_float32 = true;
  const TensorView view = host.view();
  const kernels::TensorScan scan = Scan(view, wants);
  if (wants_xor_) return FillXor(view, scan, facts);
  Fill(view, scan, wants_digest_, facts);
}

std::string Recorder::SaveTensor(std::string_view path, const HostTensor& host,
                                 TensorFacts* facts) {
  RunWriter& writer = observer_->writer();
  std::string tensor_name = ThisThread().entry_name;
  if (!path.empty()) {
    tensor_name += '.';
    tensor_name += path;
  }
  // A parameter's gradient of a later backward pass replaces the earlier one.
  const bool replaces = ThisThread().replaces_files ||
                        KindOfCall(ThisThread().entry_name) == CallKind::kParametersGrad;
  const std::string file_name = writer.ReserveTensorName(
      tensor_name, replaces ? RunWriter::NameUse::kReplace : RunWriter::NameUse::kNew);
  if (facts->has_content && writer.LinkIfKnown(facts->content, file_name)) return file_name;
  const TensorView view = host.view();
  TensorBuffer buffer = BufferFrom(writer, view.size_bytes());
  if (!buffer.is_valid()) {
    writer.CountLostTensor();
    ScanTensorInto(host, facts);
    return {};
  }
  kernels::ScanWants wants;
  wants.crc32 = true;  // of the stored bytes: the zip container of a .pt file needs it
  wants.content = true;
  wants.moments = !wants_xor_;
  wants.xor_words = wants_xor_;
  wants.copy_to = buffer.bytes().data();
  const kernels::TensorScan scan = Scan(view, wants);
  if (wants_xor_) {
    FillXor(view, scan, facts);
  } else {
    Fill(view, scan, wants_digest_, facts);
  }
  if (wants_digest_ && host.dtype == DType::kBFloat16) {
    kernels::ScanWants digest;
    digest.moments = false;
    digest.crc32 = true;
    digest.crc_of_float32 = true;
    facts->digest = Scan(view, digest).crc32;
  }
  facts->content = MakeContentKey(scan.content, view.dtype, view.sizes);
  facts->has_content = true;
  if (writer.LinkIfKnown(facts->content, file_name)) return file_name;
  writer.SaveTensor({file_name, view.dtype, view.sizes, scan.crc32, facts->content},
                    std::move(buffer));
  return file_name;
}

bool Recorder::IsPlainClass(PyTypeObject* type) const {
  static PyObject* const name = PyUnicode_InternFromString("__torch_dispatch__");
  auto* object = reinterpret_cast<PyObject*>(type);
  if (object == types_.tensor || object == hooks_.parameter_type) return true;
  if (types_.dtypes != nullptr) return true;  // such a framework has no dispatch to override
  PyObject* own = PyObject_GetAttr(object, name);
  PyObject* base = PyObject_GetAttr(types_.tensor, name);
  if (PyErr_Occurred() != nullptr) DropError();
  const bool is_plain = own == base;
  Py_XDECREF(own);
  Py_XDECREF(base);
  return is_plain;
}

Recorder::Labels Recorder::LabelsOf(PyObject* tensor) const {
  return {.type = types_.texts.tensor_type, .requires_grad = RequiresGrad(tensor, hooks_.names)};
}

void Recorder::PackTensor(PyObject* tensor, std::string_view path, EntryPacker& out) {
  if (ThisThread().kept != nullptr) return LookAt(tensor, path, out);
  const NoOverride plain(types_, hooks_, tensor);
  const bool is_plain = IsPlainClass(Py_TYPE(tensor));
  if (is_plain && PackMemory(tensor, LabelsOf(tensor), /*may_cache=*/true, path, out)) {
    return;
  }
  PackDescribed(tensor, path, out);
}

void Recorder::PackArray(PyObject* tensor, std::string_view dtype_text, std::string_view path,
                         EntryPacker& out) {
  const Labels labels{.type = "numpy.ndarray", .dtype_text = dtype_text};
  // Arrays never make a hit; those of a hit are recorded as they are now.
  if (!PackMemory(tensor, labels, /*may_cache=*/false, path, out)) out.Null();
}

bool Recorder::PackMemory(PyObject* tensor, const Labels& labels, bool may_cache,
                          std::string_view path, EntryPacker& out) {
  HostTensor host;
  if (!reader_.Read(tensor, &host)) return false;
  PyObject* copy = nullptr;
  if (!host.on_host || (types_.dtypes == nullptr && IsLazy(tensor, host.dtype))) {
    copy = PyObject_CallOneArg(hooks_.to_host, tensor);
    if (copy == nullptr) DropError();
    Py_CLEAR(host.capsule);
    if (copy == nullptr || !reader_.Read(copy, &host) || !host.on_host) {
      Py_XDECREF(copy);
      return false;
    }
  }
  // A copy dies with this call, so only tensors of the training itself are remembered. Searches for
  // NaN remember less than is wanted here.
  const bool knows_statistics = search_ == Search::kNothing || search_ == Search::kDifference;
  may_cache = may_cache && copy == nullptr && knows_statistics && hooks_.names.counts_every_write();
  // Copied out: a large scan gives up the interpreter lock, and other threads use the cache.
  const TensorFacts* known = may_cache ? cache_.Find(tensor, host) : nullptr;
  const bool is_new = known == nullptr;
  TensorFacts facts = is_new ? TensorFacts() : *known;
  std::string data_name;
  if (labels.implicit_zeros > 0) {
    facts.stats = StatsWithZeros(host, labels.implicit_zeros);
  } else if (ThisThread().saves_tensors) {
    data_name = SaveTensor(path, host, &facts);
  } else if (is_new) {
    ScanTensorInto(host, &facts);
  }
  if (is_new && may_cache) cache_.Store(tensor, host, facts);
  PackFacts(host, facts, data_name, labels, out);
  Py_XDECREF(copy);
  return true;
}

void Recorder::PackFacts(const HostTensor& host, const TensorFacts& facts,
                         std::string_view data_name, const Labels& labels, EntryPacker& out) {
  PackedTensor packed;
  packed.type = labels.type;
  packed.dtype_text =
      labels.dtype_text.empty() ? types_.texts.DTypeText(host.dtype) : labels.dtype_text;
  packed.shape = labels.shape == nullptr ? host.sizes : std::span<const int64_t>(*labels.shape);
  packed.max = facts.stats.max;
  packed.min = facts.stats.min;
  packed.mean = facts.stats.mean;
  packed.norm = facts.stats.norm;
  packed.max_finite = facts.stats.max_finite;
  packed.min_finite = facts.stats.min_finite;
  if (types_.texts.tells_grad) packed.requires_grad = labels.requires_grad;
  std::string digest;
  if (facts.has_digest) {
    digest = wants_xor_ ? XorHex(facts.digest) : Crc32Hex(static_cast<uint32_t>(facts.digest));
  }
  packed.digest = digest;
  packed.data_name = data_name;
  const bool explains = search_ == Search::kNonFinite;
  PackWithExtra(packed, labels.extra, explains ? ReasonOf(packed) : std::string_view(),
                types_.texts.tells_grad, out);
}

void Recorder::PackWithoutValues(const Labels& labels, EntryPacker& out) {
  PackedTensor packed;
  packed.type = labels.type;
  packed.dtype_text = labels.dtype_text;
  if (labels.shape != nullptr) packed.shape = *labels.shape;
  if (types_.texts.tells_grad) packed.requires_grad = labels.requires_grad;
  PackWithExtra(packed, labels.extra, {}, types_.texts.tells_grad, out);
}

// describe_tensor(tensor, with_bytes) answers with
//   (type, dtype text, shape, requires_grad, source, implicit zeros, extra, problem)
// `source`: None, or a tensor that holds the values; `with_bytes`: it should have every element,
// because a file or a digest is wanted. `problem`: None, or why values that exist are not there.
bool Recorder::Describe(PyObject* tensor, bool with_bytes, Description* out) {
  constexpr Py_ssize_t kType = 0, kDType = 1, kShape = 2, kGrad = 3, kSource = 4, kZeros = 5,
                       kExtra = 6, kProblem = 7, kFields = 8;
  out->answer = PyObject_CallFunctionObjArgs(hooks_.describe_tensor, tensor,
                                             with_bytes ? Py_True : Py_False, nullptr);
  if (out->answer == nullptr || !PyTuple_Check(out->answer) ||
      PyTuple_GET_SIZE(out->answer) != kFields) {
    DropError();
    observer_->CountLoss("tensors_unreadable",
                         ThisThread().entry_name + ": a tensor that cannot be described");
    return false;
  }
  const auto field = [out](Py_ssize_t i) { return PyTuple_GET_ITEM(out->answer, i); };
  out->shape = ShapeOf(field(kShape));
  out->labels = {.type = TextOf(field(kType)),
                 .dtype_text = TextOf(field(kDType)),
                 .requires_grad = field(kGrad) == Py_True,
                 .shape = &out->shape};
  out->labels.implicit_zeros = PyLong_AsUnsignedLongLongMask(field(kZeros));
  if (PyErr_Occurred() != nullptr) DropError();
  if (PyDict_Check(field(kExtra))) out->labels.extra = field(kExtra);
  if (IsTensor(field(kSource))) out->source = field(kSource);
  if (PyUnicode_Check(field(kProblem))) out->problem = TextOf(field(kProblem));
  return true;
}

void Recorder::PackDescribed(PyObject* tensor, std::string_view path, EntryPacker& out) {
  Description described;
  const bool with_bytes = ThisThread().saves_tensors || wants_digest_ || wants_xor_;
  if (!Describe(tensor, with_bytes, &described)) {
    PackWithoutValues({.type = types_.texts.tensor_type}, out);
    return;
  }
  std::string problem = described.problem;
  if (described.source == nullptr) {
    PackWithoutValues(described.labels, out);
  } else if (!PackMemory(described.source, described.labels, /*may_cache=*/false, path, out)) {
    problem = "a tensor whose memory cannot be read";
    PackWithoutValues(described.labels, out);
  }
  if (!problem.empty()) {
    observer_->CountLoss("tensors_unreadable", ThisThread().entry_name + ": " + problem);
  }
}

}  // namespace plumbline::python
