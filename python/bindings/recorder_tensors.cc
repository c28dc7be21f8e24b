// The tensor half of the recorder: one pass over memory, statistics, digest, file.

#include "base/digest.h"
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
    if (answer == nullptr) PyErr_Clear();
    const bool lazy = answer == Py_True;
    Py_XDECREF(answer);
    if (lazy) return true;
  }
  return false;
}

}  // namespace

bool RequiresGrad(PyObject* tensor) {
  static PyObject* const name = PyUnicode_InternFromString("requires_grad");
  PyObject* value = PyObject_GetAttr(tensor, name);
  if (value == nullptr) {
    PyErr_Clear();
    return false;
  }
  const bool truth = value == Py_True;
  Py_DECREF(value);
  return truth;
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
  TensorBuffer buffer = writer.AcquireBuffer(view.size_bytes());
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

void Recorder::PackTensor(PyObject* tensor, std::string_view path, EntryPacker& out) {
  const NoOverride plain(types_, hooks_, tensor);
  PackMemory(tensor, {"torch.Tensor", {}, RequiresGrad(tensor)}, path, out);
}

void Recorder::PackArray(PyObject* tensor, std::string_view dtype_text, std::string_view path,
                         EntryPacker& out) {
  PackMemory(tensor, {"numpy.ndarray", dtype_text, std::nullopt}, path, out);
}

void Recorder::PackMemory(PyObject* tensor, const Labels& labels, std::string_view path,
                          EntryPacker& out) {
  HostTensor host;
  bool readable = reader_.Read(tensor, &host);
  PyObject* copy = nullptr;
  if (readable && (!host.on_host || IsLazy(tensor, host.dtype))) {
    copy = PyObject_CallOneArg(hooks_.to_host, tensor);
    if (copy == nullptr) PyErr_Clear();
    Py_CLEAR(host.capsule);
    readable = copy != nullptr && reader_.Read(copy, &host) && host.on_host;
  }
  if (!readable) {
    Py_XDECREF(copy);
    PackUnreadable(tensor, out);
    return;
  }
  // A copy dies with this call, so only tensors of the training itself are remembered.
  // Copied out: a large scan gives up the interpreter lock, and other threads use the cache.
  const TensorFacts* known = copy == nullptr ? cache_.Find(tensor, host) : nullptr;
  const bool is_new = known == nullptr;
  TensorFacts facts = is_new ? TensorFacts() : *known;
  std::string data_name;
  if (ThisThread().saves_tensors) {
    data_name = SaveTensor(path, host, &facts);
  } else if (is_new) {
    ScanTensorInto(host, &facts);
  }
  if (is_new && copy == nullptr) cache_.Store(tensor, host, facts);
  PackFacts(host, facts, data_name, labels, out);
  Py_XDECREF(copy);
}

void Recorder::PackFacts(const HostTensor& host, const TensorFacts& facts,
                         std::string_view data_name, const Labels& labels, EntryPacker& out) {
  PackedTensor packed;
  packed.type = labels.type;
  packed.dtype_text = labels.dtype_text.empty() ? InfoOf(host.dtype).torch_name : labels.dtype_text;
  packed.shape = host.sizes;
  packed.max = facts.stats.max;
  packed.min = facts.stats.min;
  packed.mean = facts.stats.mean;
  packed.norm = facts.stats.norm;
  packed.max_finite = facts.stats.max_finite;
  packed.min_finite = facts.stats.min_finite;
  packed.requires_grad = labels.requires_grad;
  std::string digest;
  if (facts.has_digest) {
    digest = wants_xor_ ? XorHex(facts.digest) : Crc32Hex(static_cast<uint32_t>(facts.digest));
  }
  packed.digest = digest;
  packed.data_name = data_name;
  out.Tensor(packed);
}

void Recorder::PackUnreadable(PyObject* tensor, EntryPacker& out) {
  // (type text, dtype text, shape, requires_grad); the framework part never raises by contract,
  // but a user's subclass may.
  PyObject* answer = PyObject_CallOneArg(hooks_.describe_tensor, tensor);
  if (answer == nullptr || !PyTuple_Check(answer) || PyTuple_GET_SIZE(answer) != 4) {
    PyErr_Clear();
    Py_XDECREF(answer);
    observer_->CountLoss("tensors_unreadable",
                         ThisThread().entry_name + ": a tensor that cannot be described");
    out.Null();
    return;
  }
  PackedTensor packed;
  packed.type = TextOf(PyTuple_GET_ITEM(answer, 0));
  packed.dtype_text = TextOf(PyTuple_GET_ITEM(answer, 1));
  Shape shape;
  PyObject* sizes = PyTuple_GET_ITEM(answer, 2);
  for (Py_ssize_t i = 0; PyTuple_Check(sizes) && i < PyTuple_GET_SIZE(sizes); ++i) {
    const long long size = PyLong_AsLongLong(PyTuple_GET_ITEM(sizes, i));
    if (size == -1 && PyErr_Occurred() != nullptr) PyErr_Clear();  // symbolic size
    shape.push_back(size);
  }
  packed.shape = shape;
  packed.requires_grad = PyTuple_GET_ITEM(answer, 3) == Py_True;
  out.Tensor(packed);
  Py_DECREF(answer);
}

}  // namespace plumbline::python
