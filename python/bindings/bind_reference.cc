// plumbline._reference: what fused operators should return, and their gradients. Tensors come and
// go through DLPack without a copy.

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/array.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <atomic>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "base/process/parallel.h"
#include "errors.h"
#include "file_path.h"
#include "precheck/reference/attention.h"
#include "precheck/reference/fused_operators.h"
#include "precheck/reference/user_references.h"

namespace nb = nanobind;

namespace plumbline::python {

// A contiguous tensor on the host, of any framework. In stubs it is an object, where nanobind's own
// name would be NumPy's array.
struct In {
  using Array = nb::ndarray<nb::ro, nb::c_contig, nb::device::cpu>;
  Array array;
};

}  // namespace plumbline::python

template <>
struct nanobind::detail::type_caster<plumbline::python::In> {
  NB_TYPE_CASTER(plumbline::python::In, const_name("object"))

  bool from_python(handle source, uint32_t flags, cleanup_list* cleanup) noexcept {
    make_caster<plumbline::python::In::Array> caster;
    if (!caster.from_python(source, flags, cleanup)) return false;
    value.array = std::move(caster.value);
    return true;
  }
};

namespace plumbline::python {
namespace {

namespace ref = precheck::reference;

using OptionalIn = std::optional<In>;
using TypeName = std::optional<std::string>;

// Threads of the loops; 0: one per core.
std::atomic<int> thread_count{0};

std::optional<DType> TypeOf(nb::dlpack::dtype type) {
  using Code = nb::dlpack::dtype_code;
  const int bits = type.bits;
  switch (static_cast<Code>(type.code)) {
    case Code::Float:
      if (bits == 64) return DType::kFloat64;
      if (bits == 32) return DType::kFloat32;
      if (bits == 16) return DType::kFloat16;
      return std::nullopt;
    case Code::Bfloat: return bits == 16 ? std::optional(DType::kBFloat16) : std::nullopt;
    case Code::Bool: return bits == 8 ? std::optional(DType::kBool) : std::nullopt;
    case Code::UInt: return bits == 8 ? std::optional(DType::kUInt8) : std::nullopt;
    case Code::Int:
      if (bits == 64) return DType::kInt64;
      if (bits == 32) return DType::kInt32;
      return std::nullopt;
    default: return std::nullopt;
  }
}

nb::dlpack::dtype TypeFor(DType type) {
  using Code = nb::dlpack::dtype_code;
  const auto make = [](Code code, int bits) {
    return nb::dlpack::dtype{static_cast<uint8_t>(code), static_cast<uint8_t>(bits), 1};
  };
  const int bits = InfoOf(type).size_bytes * 8;
  switch (InfoOf(type).kind) {
    case DTypeKind::kBool: return make(Code::Bool, bits);
    case DTypeKind::kUnsigned: return make(Code::UInt, bits);
    case DTypeKind::kSigned: return make(Code::Int, bits);
    default: return make(type == DType::kBFloat16 ? Code::Bfloat : Code::Float, bits);
  }
}

ref::Operand OperandOf(const In& in) {
  const In::Array& tensor = in.array;
  const std::optional<DType> type = TypeOf(tensor.dtype());
  if (!type) {
    Raise(Error(ErrorCode::kUnsupported,
                "a tensor has an element type that reference functions do not take"));
  }
  Shape shape(tensor.ndim());
  for (size_t i = 0; i < shape.size(); ++i) shape[i] = static_cast<int64_t>(tensor.shape(i));
  return {*type, static_cast<const std::byte*>(tensor.data()), std::move(shape)};
}
ref::OptionalOperand OperandOf(const OptionalIn& tensor) {
  if (!tensor) return std::nullopt;
  return OperandOf(*tensor);
}

std::optional<DType> Recorded(const TypeName& name) {
  return name ? ParseDType(*name) : std::nullopt;
}

nb::object OutOf(ref::Array array) {
  const std::vector<size_t> shape(array.shape().begin(), array.shape().end());
  const nb::dlpack::dtype type = TypeFor(array.dtype());
  std::byte* const data = array.data();
  const nb::capsule owner(
      std::make_unique<ref::ArrayMemory>(array.Release()).release(),
      [](void* memory) noexcept { delete static_cast<ref::ArrayMemory*>(memory); });
  return nb::cast(nb::ndarray<>(data, shape.size(), shape.data(), owner, nullptr, type));
}
nb::object OutOf(std::optional<ref::Array> array) {
  return array ? OutOf(*std::move(array)) : nb::none();
}
template <class T, size_t count>
nb::object OutOf(std::array<T, count> arrays) {
  nb::list list;
  for (T& array : arrays) list.append(OutOf(std::move(array)));
  return nb::tuple(list);
}
nb::object OutOf(ref::RmsNormResult result) {
  return nb::make_tuple(OutOf(std::move(result.y)), OutOf(std::move(result.rstd)));
}
nb::object OutOf(ref::MoeGatingResult result) {
  return nb::make_tuple(OutOf(std::move(result.y)), OutOf(std::move(result.expert_idx)),
                        OutOf(std::move(result.row_idx)));
}
nb::object OutOf(ref::LinearGradients result) {
  return nb::make_tuple(OutOf(std::move(result.input)), OutOf(std::move(result.weight)),
                        OutOf(std::move(result.bias)));
}
nb::object OutOf(ref::AttentionResult result) {
  return nb::make_tuple(OutOf(std::move(result.out)), OutOf(std::move(result.max)),
                        OutOf(std::move(result.sum)));
}

// The value of work(), computed without the interpreter lock on the wanted number of threads.
template <class Work>
nb::object Computed(const Work& work) {
  auto result = [&] {
    const nb::gil_scoped_release release;
    std::optional<decltype(work())> value;
    RunWithThreads(thread_count.load(), [&] { value.emplace(work()); });
    return *std::move(value);
  }();
  return OutOf(ValueOrRaise(std::move(result)));
}

void BindActivations(nb::module_& m) {
  m.def("fast_gelu", [](const In& x) {
    return Computed([x = OperandOf(x)] { return ref::FastGelu(x); });
  });
  m.def("fast_gelu_grad", [](const In& grad, const In& x) {
    return Computed(
        [g = OperandOf(grad), x = OperandOf(x)] { return ref::FastGeluGrad(g, x); });
  });
  m.def("mish", [](const In& x) {
    return Computed([x = OperandOf(x)] { return ref::Mish(x); });
  });
  m.def("mish_grad", [](const In& grad, const In& x) {
    return Computed([g = OperandOf(grad), x = OperandOf(x)] { return ref::MishGrad(g, x); });
  });
  m.def(
      "swiglu",
      [](const In& x, int64_t dim, const TypeName& recorded) {
        return Computed([=, x = OperandOf(x)] { return ref::Swiglu(x, dim, Recorded(recorded)); });
      },
      nb::arg("x"), nb::arg("dim"), nb::arg("recorded").none());
  m.def(
      "swiglu_grad",
      [](const In& grad, const In& x, int64_t dim, const TypeName& recorded) {
        return Computed([=, g = OperandOf(grad), x = OperandOf(x)] {
          return ref::SwigluGrad(g, x, dim, Recorded(recorded));
        });
      },
      nb::arg("grad"), nb::arg("x"), nb::arg("dim"), nb::arg("recorded").none());
}

// var, m, v, grad.
using StateTensors = std::tuple<In, In, In, In>;
// beta1_power, beta2_power, lr, beta1, beta2, epsilon.
using StateNumbers = std::array<double, 6>;

ref::AdamState StateOf(const StateTensors& tensors, const StateNumbers& numbers) {
  return {OperandOf(std::get<0>(tensors)), OperandOf(std::get<1>(tensors)),
          OperandOf(std::get<2>(tensors)), OperandOf(std::get<3>(tensors)),
          numbers[0], numbers[1], numbers[2], numbers[3], numbers[4], numbers[5]};
}

void BindOptimizers(nb::module_& m) {
  m.def("apply_adam",
        [](const StateTensors& tensors, const StateNumbers& numbers, bool use_nesterov) {
          return Computed([=, state = StateOf(tensors, numbers)] {
            return ref::ApplyAdam(state, use_nesterov);
          });
        });
  m.def(
      "apply_adam_w",
      [](const StateTensors& tensors, const StateNumbers& numbers,
         std::tuple<double, bool, bool> options, const OptionalIn& max_grad_norm) {
        const auto [decay, amsgrad, maximize] = options;
        const ref::AdamWOptions settings{decay, OperandOf(max_grad_norm), amsgrad, maximize};
        return Computed([&, state = StateOf(tensors, numbers)] {
          return ref::ApplyAdamW(state, settings);
        });
      },
      nb::arg("tensors"), nb::arg("numbers"), nb::arg("options"),
      nb::arg("max_grad_norm").none(), "Options: weight_decay, amsgrad, maximize.");
}

void BindRmsAndLayerNorm(nb::module_& m) {
  m.def(
      "rms_norm",
      [](const In& x, const In& gamma, double epsilon, const TypeName& recorded) {
        return Computed([=, x = OperandOf(x), gamma = OperandOf(gamma)] {
          return ref::RmsNorm(x, gamma, epsilon, Recorded(recorded));
        });
      },
      nb::arg("x"), nb::arg("gamma"), nb::arg("epsilon"), nb::arg("recorded").none());
  m.def("rms_norm_grad", [](const In& grad, const In& x, const In& gamma, const In& rstd) {
    return Computed([grad = OperandOf(grad), x = OperandOf(x), gamma = OperandOf(gamma),
                     rstd = OperandOf(rstd)] { return ref::RmsNormGrad(grad, x, gamma, rstd); });
  });
  m.def(
      "layer_norm",
      [](const In& input, const Shape& shape, const OptionalIn& weight, const OptionalIn& bias,
         double epsilon) {
        const ref::LayerNormCall call{OperandOf(input), shape, OperandOf(weight), OperandOf(bias),
                                      epsilon};
        return Computed([&] { return ref::LayerNorm(call); });
      },
      nb::arg("input"), nb::arg("normalized_shape"), nb::arg("weight").none(),
      nb::arg("bias").none(), nb::arg("epsilon"));
  m.def(
      "layer_norm_grad",
      [](const In& grad, const In& input, const Shape& shape, const OptionalIn& weight,
         double epsilon) {
        const ref::LayerNormCall call{OperandOf(input), shape, OperandOf(weight), std::nullopt,
                                      epsilon};
        return Computed([&, g = OperandOf(grad)] { return ref::LayerNormGrad(g, call); });
      },
      nb::arg("grad"), nb::arg("input"), nb::arg("normalized_shape"), nb::arg("weight").none(),
      nb::arg("epsilon"));
}

void BindGroupNorm(nb::module_& m) {
  m.def(
      "group_norm_silu",
      [](const In& input, const OptionalIn& weight, const OptionalIn& bias, int64_t group,
         double epsilon) {
        const ref::GroupNormCall call{OperandOf(input), OperandOf(weight), OperandOf(bias), group,
                                      epsilon};
        return Computed([&] { return ref::GroupNormSilu(call); });
      },
      nb::arg("input"), nb::arg("weight").none(), nb::arg("bias").none(), nb::arg("group"),
      nb::arg("epsilon"));
  m.def(
      "group_norm_silu_grad",
      [](const In& grad, const In& input, const OptionalIn& weight, const OptionalIn& bias,
         int64_t group, double epsilon) {
        const ref::GroupNormCall call{OperandOf(input), OperandOf(weight), OperandOf(bias), group,
                                      epsilon};
        return Computed([&, g = OperandOf(grad)] { return ref::GroupNormSiluGrad(g, call); });
      },
      nb::arg("grad"), nb::arg("input"), nb::arg("weight").none(), nb::arg("bias").none(),
      nb::arg("group"), nb::arg("epsilon"));
}

void BindSoftmax(nb::module_& m) {
  m.def(
      "scaled_masked_softmax",
      [](const In& x, const OptionalIn& mask, double scale, bool fixed_triu_mask,
         const TypeName& recorded) {
        const ref::MaskedSoftmaxOptions options{OperandOf(mask), scale, fixed_triu_mask};
        return Computed([&, x = OperandOf(x)] {
          return ref::ScaledMaskedSoftmax(x, options, Recorded(recorded));
        });
      },
      nb::arg("x"), nb::arg("mask").none(), nb::arg("scale"), nb::arg("fixed_triu_mask"),
      nb::arg("recorded").none());
  m.def(
      "scaled_masked_softmax_grad",
      [](const In& grad, const In& y, const OptionalIn& mask, double scale,
         bool fixed_triu_mask) {
        const ref::MaskedSoftmaxOptions options{OperandOf(mask), scale, fixed_triu_mask};
        return Computed([&, g = OperandOf(grad), y = OperandOf(y)] {
          return ref::ScaledMaskedSoftmaxGrad(g, y, options);
        });
      },
      nb::arg("grad"), nb::arg("y"), nb::arg("mask").none(), nb::arg("scale"),
      nb::arg("fixed_triu_mask"));
  m.def(
      "moe_gating_top_k_softmax",
      [](const In& x, const OptionalIn& finished, int64_t k, const TypeName& recorded) {
        const ref::MoeGatingCall call{OperandOf(x), OperandOf(finished), k};
        return Computed([&] { return ref::MoeGatingTopKSoftmax(call, Recorded(recorded)); });
      },
      nb::arg("x"), nb::arg("finished").none(), nb::arg("k"), nb::arg("recorded").none());
  m.def(
      "moe_gating_top_k_softmax_grad",
      [](const In& grad, const In& x, int64_t k, const TypeName& recorded) {
        const ref::MoeGatingCall call{OperandOf(x), std::nullopt, k};
        return Computed([&, g = OperandOf(grad)] {
          return ref::MoeGatingTopKSoftmaxGrad(g, call, Recorded(recorded));
        });
      },
      nb::arg("grad"), nb::arg("x"), nb::arg("k"), nb::arg("recorded").none());
}

ref::RotaryMode ModeOf(bool is_interleaved) {
  return is_interleaved ? ref::RotaryMode::kInterleave : ref::RotaryMode::kHalf;
}

void BindProducts(nb::module_& m) {
  m.def("rotary_mul", [](const In& x, const In& r1, const In& r2, bool is_interleaved) {
    return Computed([x = OperandOf(x), r1 = OperandOf(r1), r2 = OperandOf(r2), is_interleaved] {
      return ref::RotaryMul(x, r1, r2, ModeOf(is_interleaved));
    });
  });
  m.def("rotary_mul_grad", [](const In& grad, const In& x, const In& r1, const In& r2,
                              bool is_interleaved) {
    const ref::RotaryCall call{OperandOf(x), OperandOf(r1), OperandOf(r2), ModeOf(is_interleaved)};
    return Computed([&, g = OperandOf(grad)] { return ref::RotaryMulGrad(g, call); });
  });
  m.def(
      "linear",
      [](const In& input, const In& weight, const OptionalIn& bias) {
        return Computed([x = OperandOf(input), w = OperandOf(weight), b = OperandOf(bias)] {
          return ref::Linear(x, w, b);
        });
      },
      nb::arg("input"), nb::arg("weight"), nb::arg("bias").none());
  m.def("linear_grad", [](const In& grad, const In& input, const In& weight) {
    return Computed([g = OperandOf(grad), x = OperandOf(input), w = OperandOf(weight)] {
      return ref::LinearGrad(g, x, w);
    });
  });
  m.def("matmul_grad",
        [](const In& grad, const In& self, const In& other, std::array<bool, 2> wanted) {
          return Computed([g = OperandOf(grad), a = OperandOf(self), b = OperandOf(other), wanted] {
            return ref::MatmulGrad(g, a, b, wanted);
          });
        });
}

// A call of attention; the tensors are held as long as it.
class Attention {
 public:
  Attention(In query, In key, In value, int64_t head_num, std::string input_layout)
      : tensors_{std::move(query), std::move(key), std::move(value)} {
    call.query = OperandOf(tensors_[0]);
    call.key = OperandOf(tensors_[1]);
    call.value = OperandOf(tensors_[2]);
    call.head_num = head_num;
    call.input_layout = std::move(input_layout);
  }
  void SetPse(const In& tensor) { call.pse = OperandOf(Keep(tensor)); }
  void SetMask(const In& tensor) { call.atten_mask = OperandOf(Keep(tensor)); }

  ref::AttentionCall call;

 private:
  const In& Keep(const In& tensor) { return tensors_.emplace_back(tensor); }
  std::vector<In> tensors_;
};

void BindAttention(nb::module_& m) {
  using ref::AttentionCall;
  const auto number = [](auto member) {
    return [member](Attention& self, decltype(AttentionCall().*member) value) {
      self.call.*member = std::move(value);
    };
  };
  nb::class_<Attention>(m, "Attention", "One call of a fused attention.")
      .def(nb::init<In, In, In, int64_t, std::string>(), nb::arg("query"), nb::arg("key"),
           nb::arg("value"), nb::arg("head_num"), nb::arg("input_layout"))
      .def("pse", &Attention::SetPse)
      .def("atten_mask", &Attention::SetMask)
      .def("scale", number(&AttentionCall::scale))
      .def("pre_tokens", number(&AttentionCall::pre_tokens))
      .def("next_tokens", number(&AttentionCall::next_tokens))
      .def("sparse_mode", number(&AttentionCall::sparse_mode))
      .def("prefix", number(&AttentionCall::prefix))
      .def("actual_seq_qlen", number(&AttentionCall::actual_seq_qlen))
      .def("actual_seq_kvlen", number(&AttentionCall::actual_seq_kvlen))
      .def("adds_pse_after_scale", number(&AttentionCall::adds_pse_after_scale))
      .def("forward",
           [](const Attention& self) {
             return Computed([&] { return ref::FusionAttention(self.call); });
           },
           "Attention, and maximum and sum of the softmax.")
      .def("backward",
           [](const Attention& self, const In& dy) {
             return Computed(
                 [&, dy = OperandOf(dy)] { return ref::FusionAttentionGrad(self.call, dy); });
           },
           "Gradients of query, key and value.");
}

// An argument of a user's function. Tensors that it consists of are added to `kept`.
ref::UserValue UserValueOf(const std::string& name, nb::handle from, std::vector<In>& kept) {
  ref::UserValue to{name, {}};
  if (from.is_none()) return to;
  In tensor;
  if (nb::isinstance<nb::bool_>(from)) {
    to.value = nb::cast<bool>(from);
  } else if (nb::isinstance<nb::int_>(from)) {
    to.value = nb::cast<int64_t>(from);
  } else if (nb::isinstance<nb::float_>(from)) {
    to.value = nb::cast<double>(from);
  } else if (nb::isinstance<nb::str>(from)) {
    to.value = nb::cast<std::string>(from);
  } else if (nb::isinstance<nb::list>(from) || nb::isinstance<nb::tuple>(from)) {
    ref::UserValue::List list;
    for (const nb::handle item : from) list.push_back(UserValueOf("", item, kept));
    to.value = std::move(list);
  } else if (nb::try_cast<In>(from, tensor)) {
    to.value = OperandOf(kept.emplace_back(std::move(tensor)));
  } else {
    const std::string type = nb::cast<std::string>(nb::str(from.type()));
    Raise(Error(ErrorCode::kInvalidArgument,
                type + " cannot be handed to the reference function of a library"));
  }
  return to;
}

nb::list RunLibrary(const ref::UserLibrary& self, const std::string& name, bool is_backward,
                    const nb::tuple& args, const nb::dict& kwargs) {
  std::vector<In> kept;
  std::vector<ref::UserValue> values;
  for (const nb::handle item : args) values.push_back(UserValueOf("", item, kept));
  for (const auto& [key, item] : kwargs) {
    values.push_back(UserValueOf(nb::cast<std::string>(key), item, kept));
  }
  auto results = [&] {
    const nb::gil_scoped_release release;
    return self.Run(name, is_backward, values);
  }();
  nb::list list;
  for (auto& result : ValueOrRaise(std::move(results))) list.append(OutOf(std::move(result)));
  return list;
}

void BindUserReferences(nb::module_& m) {
  m.def(
      "read_user_references",
      [](const FilePath& path) {
        std::vector<std::tuple<std::string, std::string, std::string, std::string>> entries;
        for (const ref::UserReference& entry : ValueOrRaise(ref::ReadUserReferences(path.bytes))) {
          entries.emplace_back(entry.name, entry.forward, entry.backward, entry.description);
        }
        return entries;
      },
      nb::arg("path"), "Name, forward, backward and description of each operator of a file.");
  nb::class_<ref::UserLibrary>(m, "UserLibrary", "A shared library of reference functions.")
      .def(
          "__init__",
          [](ref::UserLibrary* self, const FilePath& path) {
            new (self) ref::UserLibrary(ValueOrRaise(ref::UserLibrary::Open(path.bytes)));
          },
          nb::arg("path"))
      .def_prop_ro("names", &ref::UserLibrary::names)
      .def("has_backward", &ref::UserLibrary::has_backward, nb::arg("name"))
      .def("run", &RunLibrary, nb::arg("name"), nb::arg("is_backward"), nb::arg("args"),
           nb::arg("kwargs"));
}

}  // namespace
}  // namespace plumbline::python

NB_MODULE(_reference, m) {
  using namespace plumbline;  // NOLINT: the macro stands outside of namespaces
  m.doc() = "Reference functions of fused operators, in double.";
  python::ImportErrors();
  m.def(
      "set_threads", [](int threads) { python::thread_count = threads; }, nb::arg("threads"),
      "How many threads a function uses at most; 0: one per core.");
  python::BindActivations(m);
  python::BindOptimizers(m);
  python::BindRmsAndLayerNorm(m);
  python::BindGroupNorm(m);
  python::BindSoftmax(m);
  python::BindProducts(m);
  python::BindAttention(m);
  python::BindUserReferences(m);
}
