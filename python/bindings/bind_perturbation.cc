#include "bind_perturbation.h"

#include <fmt/format.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/process/log.h"
#include "call_watch.h"
#include "callback.h"
#include "errors.h"
#include "recorder.h"
#include "watch/perturb/check.h"
#include "watch/perturb/noise.h"
#include "watch/perturb/output_difference.h"

namespace nb = nanobind;

namespace plumbline::python {
namespace {

using perturb::CheckedCall;
using perturb::Difference;

constexpr int kMostNesting = 10;

// A comparison that Python carries from one step to the next.
struct PendingComparison : perturb::Comparison {
  perturb::Expected expected;
  std::optional<DType> first_dtype;  // of the original
  double tolerance = 0;              // that the second output was compared with
  bool has_float = false;            // the second output holds a floating-point tensor
  std::string problem;               // why it cannot be compared; empty: it was
};

// A tensor with readable memory, on the host.
struct ReadTensor {
  nb::object owner;  // the tensor, or its copy on the host
  HostTensor host;
};

class Checker {
 public:
  Checker(Recorder& recorder, std::unique_ptr<perturb::Check> check)
      : recorder_(recorder), check_(std::move(check)), reader_(recorder.types()) {}

  perturb::Check& check() { return *check_; }
  Recorder& recorder() { return recorder_; }
  CallWatch* watch = nullptr;  // owned by the recorder

  std::string Perturb(std::string_view mode, nb::handle source, nb::handle target, uint64_t seed);
  PendingComparison Compare(const CheckedCall& call, std::string_view mode, nb::handle original,
                            nb::handle second);
  PendingComparison CompareCpu(const CheckedCall& call, std::string_view mode, nb::handle original,
                               nb::handle golden);
  void Explain(PendingComparison& comparison, nb::handle exact, nb::handle changed);
  void Fixed(const CheckedCall& call, const nb::list& original, const nb::list& replacement);

 private:
  using Pairs = std::vector<std::pair<PyObject*, PyObject*>>;
  bool Read(PyObject* tensor, ReadTensor* out) const;
  [[nodiscard]] bool IsTensor(PyObject* value) const { return recorder_.IsTensor(value); }
  [[nodiscard]] bool FindFirst(PyObject* value, int depth, PendingComparison* out) const;
  [[nodiscard]] bool HasFloat(PyObject* value, int depth) const;
  bool Items(PyObject* value, std::vector<PyObject*>* items) const;
  perturb::RatioSums Ratio(const perturb::RatioRule& rule, const TensorView& a,
                           const TensorView& b) const;
  [[nodiscard]] std::string ShapeText(std::span<const int64_t> sizes) const;

  struct Place {
    std::optional<int64_t> index;
    int depth = 0;
  };
  void Walk(PyObject* original, PyObject* second, Place place, PendingComparison* out) const;
  void ComparePair(PyObject* original, PyObject* second, Place place,
                   PendingComparison* out) const;
  void CompareScalars(PyObject* original, PyObject* second, Place place,
                      PendingComparison* out) const;
  void WalkCpu(PyObject* original, PyObject* golden, Place place, PendingComparison* out) const;
  void WalkExact(PyObject* exact, PyObject* changed, int depth, PendingComparison* out) const;

  Recorder& recorder_;
  std::unique_ptr<perturb::Check> check_;
  TensorReader reader_;
};

bool Checker::Read(PyObject* tensor, ReadTensor* out) const {
  out->owner = nb::borrow(tensor);
  if (!reader_.Read(tensor, &out->host)) return false;
  if (out->host.on_host) return true;
  PyObject* copy = PyObject_CallOneArg(recorder_.hooks().to_host, tensor);
  if (copy == nullptr) {
    DropError();
    return false;
  }
  out->owner = nb::steal(copy);
  return reader_.Read(copy, &out->host) && out->host.on_host;
}

// The members of a list, tuple or dict; false for anything else.
bool Checker::Items(PyObject* value, std::vector<PyObject*>* items) const {
  if (PyTuple_Check(value) || PyList_Check(value)) {
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(value); ++i) {
      items->push_back(PySequence_Fast_GET_ITEM(value, i));
    }
    return true;
  }
  if (!PyDict_Check(value)) return false;
  PyObject* key = nullptr;
  PyObject* item = nullptr;
  for (Py_ssize_t at = 0; PyDict_Next(value, &at, &key, &item) != 0;) items->push_back(item);
  return true;
}

bool Checker::FindFirst(PyObject* value, int depth, PendingComparison* out) const {
  if (IsTensor(value)) {
    ReadTensor tensor;
    if (!reader_.Read(value, &tensor.host)) return false;
    out->first_dtype = tensor.host.dtype;
    out->dtype = std::string(recorder_.types().texts.DTypeText(tensor.host.dtype));
    return true;
  }
  std::vector<PyObject*> items;
  if (depth > kMostNesting || !Items(value, &items)) return false;
  return std::ranges::any_of(items, [&](PyObject* one) { return FindFirst(one, depth + 1, out); });
}

bool Checker::HasFloat(PyObject* value, int depth) const {
  if (IsTensor(value)) {
    HostTensor host;
    if (!reader_.Read(value, &host)) return false;
    const DTypeKind kind = InfoOf(host.dtype).kind;
    return kind == DTypeKind::kFloat || kind == DTypeKind::kComplex;
  }
  std::vector<PyObject*> items;
  if (depth > kMostNesting || !Items(value, &items)) return false;
  return std::ranges::any_of(items, [&](PyObject* one) { return HasFloat(one, depth + 1); });
}

std::string Checker::ShapeText(std::span<const int64_t> sizes) const {
  const bool is_mindspore = check_->is_mindspore();
  const std::string joined = fmt::format("{}", fmt::join(sizes, ", "));
  if (!is_mindspore) return fmt::format("torch.Size([{}])", joined);
  return sizes.size() == 1 ? fmt::format("({},)", joined) : fmt::format("({})", joined);
}

perturb::RatioSums Checker::Ratio(const perturb::RatioRule& rule, const TensorView& a,
                                  const TensorView& b) const {
  constexpr int64_t kLarge = int64_t{1} << 17;
  if (a.element_count() < kLarge) return perturb::CompareOutputs(rule, a, b, nullptr);
  perturb::RatioSums sums;
  const kernels::Team team = recorder_.calls().threads().team();
  recorder_.calls().threads().run_unlocked(
      [&] { sums = perturb::CompareOutputs(rule, a, b, &team); });
  return sums;
}

void Checker::CompareScalars(PyObject* original, PyObject* second, Place place,
                             PendingComparison* out) const {
  perturb::OutputRow row{.difference = {}, .dtype = {}, .shape = {}, .index = place.index};
  if (PyFloat_Check(second)) {
    const double a = PyFloat_Check(original) ? PyFloat_AS_DOUBLE(original) : std::nan("");
    const double b = PyFloat_AS_DOUBLE(second);
    if (perturb::AreClose(a, b) || (std::isnan(a) && std::isnan(b))) return;
    row.difference = Difference{.max_rel = a / b - 1, .word = {}, .change = std::abs(a - b)};
  } else if (PyLong_Check(second)) {
    const int equal = PyObject_RichCompareBool(original, second, Py_EQ);
    if (equal < 0) DropError();
    if (equal != 0) return;
  } else {
    return;
  }
  out->rows.push_back(std::move(row));
}

void Checker::ComparePair(PyObject* original, PyObject* second, Place place,
                          PendingComparison* out) const {
  ReadTensor a, b;
  if (!Read(original, &a) || !Read(second, &b)) {
    out->problem = "an output has no memory that can be read";
    return;
  }
  perturb::OutputRow row{
      .difference = Difference(),
      .dtype = std::string(recorder_.types().texts.DTypeText(a.host.dtype)),
      .shape = ShapeText(a.host.sizes),
      .index = place.index};
  const bool is_same = std::ranges::equal(a.host.sizes, b.host.sizes);
  const bool is_complex_pair = (InfoOf(a.host.dtype).kind == DTypeKind::kComplex) ==
                               (InfoOf(b.host.dtype).kind == DTypeKind::kComplex);
  if (!is_same || !is_complex_pair) {
    row.difference->word = is_same ? "nan" : "shape_mismatch";
    out->rows.push_back(std::move(row));
    return;
  }
  out->elements += static_cast<uint64_t>(a.host.view().element_count());
  const perturb::RatioRule rule = check_->Rule(b.host.dtype);
  out->tolerance = rule.tolerance;
  *row.difference = perturb::DifferenceOf(rule, Ratio(rule, a.host.view(), b.host.view()));
  if (row.difference->word.empty()) out->ratio = std::max(out->ratio, row.difference->ratio());
  const double threshold =
      check_->Threshold(out->call, out->first_dtype, out->dtype, out->mode);
  if (!perturb::IsConsistent(*row.difference, threshold)) out->rows.push_back(std::move(row));
}

void Checker::Walk(PyObject* original, PyObject* second, Place place,
                   PendingComparison* out) const {
  if (place.depth > kMostNesting || !out->problem.empty()) return;
  if (IsTensor(second) && IsTensor(original)) return ComparePair(original, second, place, out);
  std::vector<PyObject*> left, right;
  if (!Items(second, &right)) return CompareScalars(original, second, place, out);
  if (!Items(original, &left) || left.size() != right.size()) {
    Difference difference;
    difference.word = "shape_mismatch";
    out->rows.push_back({difference, {}, {}, place.index});
    return;
  }
  for (size_t i = 0; i < right.size(); ++i) {
    const Place inner{place.index ? place.index : static_cast<int64_t>(i), place.depth + 1};
    Walk(left[i], right[i], inner, out);
  }
}

PendingComparison Checker::Compare(const CheckedCall& call, std::string_view mode,
                                   nb::handle original, nb::handle second) {
  PendingComparison out;
  out.call = call;
  out.mode = PerturbationNamed(mode).value_or(Perturbation::kNoChange);
  out.has_float = HasFloat(second.ptr(), 0);
  (void)FindFirst(original.ptr(), 0, &out);
  out.default_threshold = perturb::ThresholdOf(out.first_dtype, out.mode);
  if (!out.has_float) {
    out.problem = "the output holds no floating-point tensor";
    return out;
  }
  Walk(original.ptr(), second.ptr(), {}, &out);
  return out;
}

void Checker::WalkCpu(PyObject* original, PyObject* golden, Place place,
                      PendingComparison* out) const {
  if (place.depth > kMostNesting || !out->problem.empty()) return;
  if (!IsTensor(original) || !IsTensor(golden)) {
    std::vector<PyObject*> left, right;
    if (!Items(original, &left)) return CompareScalars(original, golden, place, out);
    if (!Items(golden, &right) || left.size() != right.size()) {
      out->rows.push_back({});
      return;
    }
    for (size_t i = 0; i < left.size(); ++i) {
      WalkCpu(left[i], right[i], {static_cast<int64_t>(i), place.depth + 1}, out);
    }
    return;
  }
  ReadTensor a, b;
  if (!Read(original, &a) || !Read(golden, &b)) {
    out->problem = "an output has no memory that can be read";
    return;
  }
  perturb::OutputRow row;
  if (place.depth == 0) {
    row.dtype = std::string(recorder_.types().texts.DTypeText(a.host.dtype));
    row.shape = ShapeText(a.host.sizes);
  }
  if (!std::ranges::equal(a.host.sizes, b.host.sizes)) {
    row.difference = Difference{.max_rel = 0, .word = "shape_mismatch", .change = 0};
    out->rows.push_back(std::move(row));
    return;
  }
  out->elements += static_cast<uint64_t>(a.host.view().element_count());
  const bool sees_non_finite = check_->config().sees_non_finite;
  const perturb::CpuVerdict verdict =
      perturb::CompareWithCpu(a.host.view(), b.host.view(), sees_non_finite);
  if (!verdict.is_golden_finite && !sees_non_finite) {
    LogWarning(fmt::format("perturbation check: {}: the output of the CPU holds NaN or Inf and is "
                           "not compared",
                           out->call.name));
  }
  out->tolerance = check_->Rule(b.host.dtype).tolerance;
  if (verdict.is_consistent) return;
  row.difference = verdict.difference;
  out->rows.push_back(std::move(row));
}

PendingComparison Checker::CompareCpu(const CheckedCall& call, std::string_view mode,
                                      nb::handle original, nb::handle golden) {
  PendingComparison out;
  out.call = call;
  out.mode = PerturbationNamed(mode).value_or(Perturbation::kToCpu);
  (void)FindFirst(original.ptr(), 0, &out);
  out.default_threshold = perturb::ThresholdOf(out.first_dtype, out.mode);
  WalkCpu(original.ptr(), golden.ptr(), {}, &out);
  // One row per call.
  if (out.rows.size() > 1) {
    const auto worst = std::ranges::max_element(out.rows, {}, [](const perturb::OutputRow& row) {
      return row.difference ? row.difference->max_rel : 0;
    });
    out.rows = {*worst};
  }
  return out;
}

void Checker::WalkExact(PyObject* exact, PyObject* changed, int depth,
                        PendingComparison* out) const {
  if (depth > kMostNesting) return;
  if (!IsTensor(exact) || !IsTensor(changed)) {
    std::vector<PyObject*> left, right;
    if (!Items(exact, &left) || !Items(changed, &right) || left.size() != right.size()) return;
    for (size_t i = 0; i < left.size(); ++i) WalkExact(left[i], right[i], depth + 1, out);
    return;
  }
  ReadTensor a, b;
  if (!Read(exact, &a) || !Read(changed, &b)) return;
  if (!std::ranges::equal(a.host.sizes, b.host.sizes) || a.host.dtype != b.host.dtype) return;
  const perturb::RatioRule rule{
      .tolerance = out->tolerance, .sees_non_finite = true, .is_mindspore = false};
  const Difference difference =
      perturb::DifferenceOf(rule, Ratio(rule, a.host.view(), b.host.view()));
  if (!out->expected) out->expected = Difference();
  out->expected->change = std::max(out->expected->change, difference.change);
  if (!difference.word.empty()) out->expected->word = difference.word;
}

// Adds what the operator makes of a change in raised precision; the largest of several counts.
void Checker::Explain(PendingComparison& comparison, nb::handle exact, nb::handle changed) {
  WalkExact(exact.ptr(), changed.ptr(), 0, &comparison);
}

// `original` and `replacement`: lists of as many tensors, of which all together make one row.
void Checker::Fixed(const CheckedCall& call, const nb::list& original,
                    const nb::list& replacement) {
  perturb::Replacement total;
  for (size_t i = 0; i < original.size(); ++i) {
    ReadTensor a, b;
    if (!Read(original[i].ptr(), &a) || !Read(replacement[i].ptr(), &b)) continue;
    if (!std::ranges::equal(a.host.sizes, b.host.sizes)) continue;
    const perturb::Replacement one =
        perturb::ReplacementOf(a.host.view(), b.host.view());
    total.max_abs = std::max(total.max_abs, one.max_abs);
    total.changed += one.changed;
    total.elements += one.elements;
  }
  check_->Fixed(call, total);
}

std::string Checker::Perturb(std::string_view mode, nb::handle source, nb::handle target,
                             uint64_t seed) {
  ReadTensor from;
  ReadTensor to;
  if (!reader_.Read(source.ptr(), &from.host) || !reader_.Read(target.ptr(), &to.host) ||
      !from.host.on_host || !to.host.on_host) {
    return "the tensor has no memory that can be read";
  }
  if (from.host.dtype != to.host.dtype || !std::ranges::equal(from.host.sizes, to.host.sizes)) {
    return "the copy is of another shape";
  }
  perturb::Noise noise = perturb::Noise::kNext;  // "ulp"
  if (mode == "add_noise" && !check_->config().has_ulp_noise) noise = perturb::Noise::kAbsolute;
  if (mode == "bit_noise") noise = perturb::Noise::kLowBit;
  if (mode == "change_value") noise = perturb::Noise::kSwap;
  const perturb::Target memory{const_cast<std::byte*>(to.host.data), to.host.strides};
  const kernels::Team team = recorder_.calls().threads().team();
  perturb::Change change;
  const auto work = [&] {
    change = perturb::AddNoise(noise, seed, from.host.view(), memory, &team);
  };
  constexpr int64_t kLarge = int64_t{1} << 17;
  if (from.host.view().element_count() < kLarge) {
    work();
  } else {
    recorder_.calls().threads().run_unlocked(work);
  }
  return std::string(change.obstacle);
}

std::vector<std::string> ModesOf(const PerturbationConfig& config) {
  std::vector<std::string> modes;
  for (const Perturbation mode : config.modes) modes.emplace_back(PerturbationName(mode));
  return modes;
}

bool WantsSample(Checker& self, const CheckedCall& call, const perturb::Preheat::Call& counted) {
  if (!counted.is_sampled) return false;
  LogInfo(fmt::format("perturbation check: preheat sample: {}, call {} of {}", call.name,
                      counted.number, counted.calls));
  (void)self;
  return true;
}

void BindResults(nb::module_& m) {
  nb::class_<CheckedCall>(m, "CheckedCall", "A call, as rows name it.")
      .def_ro("api", &CheckedCall::api)
      .def_ro("name", &CheckedCall::name)
      .def(
          "backward",
          [](const CheckedCall& self) {
            CheckedCall other = self;
            constexpr std::string_view kForward = ".forward";
            if (other.name.ends_with(kForward)) {
              other.name.resize(other.name.size() - kForward.size());
              other.name += ".backward";
            }
            return other;
          },
          "The same call under the name of its way back.");
  nb::class_<PendingComparison>(m, "PerturbedOutput", "The two runs of a call, compared.")
      .def_prop_ro("is_consistent",
                   [](const PendingComparison& self) { return self.rows.empty(); })
      .def_ro("problem", &PendingComparison::problem);
}

void BindCheck(nb::class_<Checker>& check) {
  check
      .def_prop_ro("modes", [](Checker& self) { return ModesOf(self.check().config()); })
      .def_prop_ro("fixes", [](Checker& self) { return self.check().config().fixes; })
      .def_prop_ro("is_backward", [](Checker& self) { return self.check().config().is_backward; })
      .def_prop_ro("warnings", [](Checker& self) { return self.check().warnings(); })
      .def(
          "begin",
          [](Checker& self, int64_t step, std::optional<int> rank) {
            self.check().Begin(step, rank);
          },
          nb::arg("step"), nb::arg("rank").none())
      .def("end_step", [](Checker& self) { self.check().EndStep(); })
      .def("close", [](Checker& self) { self.check().Close(); })
      .def(
          "watch",
          [](Checker& self, nb::object before, nb::object after) {
            perturb::Check* owned = &self.check();
            auto selects = [owned](const CheckedCall& call) { return owned->Selects(call); };
            auto watch = std::make_unique<CallWatch>(self.recorder(), std::move(selects),
                                                     std::move(before), std::move(after));
            self.watch = watch.get();
            self.recorder().set_watch(std::move(watch));
          },
          nb::arg("before"), nb::arg("after"),
          "From now on the recorder's probes call these around the original.")
      .def("set_open", [](Checker& self, bool open) { self.watch->set_open(open); });
}

void BindCalls(nb::class_<Checker>& check) {
  check
      .def(
          "preheat",
          [](Checker& self, const CheckedCall& call) -> int {
            const auto counted = self.check().CountForPreheat(call.api);
            if (!counted.is_compared) return 0;
            return WantsSample(self, call, counted) ? 2 : 1;
          },
          "0: the call is only counted; 1: compared; 2: with the CPU, too.")
      .def("add_sample",
           [](Checker& self, const PendingComparison& comparison, bool agrees) {
             self.check().AddSample(comparison, agrees);
           })
      .def("perturb", &Checker::Perturb, nb::arg("mode"), nb::arg("source"), nb::arg("target"),
           nb::arg("seed"),
           "Writes the perturbed values of `source` into `target`, a CPU tensor of the same shape; "
           "why that cannot be done, or an empty text.")
      .def("compare", &Checker::Compare, nb::arg("call"), nb::arg("mode"),
           nb::arg("original").none(), nb::arg("second").none())
      .def("compare_cpu", &Checker::CompareCpu, nb::arg("call"), nb::arg("mode"),
           nb::arg("original").none(), nb::arg("golden").none())
      .def("wants_expected", [](Checker& self, const PendingComparison& comparison) {
        return self.check().WantsExpected(comparison);
      })
      .def("explain", &Checker::Explain, nb::arg("comparison"), nb::arg("exact").none(),
           nb::arg("changed").none())
      .def("report",
           [](Checker& self, const PendingComparison& comparison) {
             self.check().Report(comparison, comparison.expected);
           })
      .def("skip",
           [](Checker& self, const CheckedCall& call, std::string_view mode,
              std::string_view reason) {
             const auto which = PerturbationNamed(mode);
             if (which) self.check().Skip(call, *which, reason);
           })
      .def("fixed", &Checker::Fixed, nb::arg("call"), nb::arg("original"),
           nb::arg("replacement"))
      .def(
          "guarded",
          [](Checker& self, const nb::callable& work) {
            ThreadState& thread = ThisThread();
            const ModeOff mode_off(self.recorder().hooks(), thread);
            const InTool in_tool(thread, self.recorder().gate());
            RunGuarded(self.recorder(), [&] { work(); });
          },
          nb::arg("work"), "Calls it as plumbline's own work, which raises nothing.");
}

}  // namespace

void BindPerturbation(nb::module_& m) {
  BindResults(m);
  nb::class_<Checker> check(m, "PerturbationCheck",
                            "Runs of calls with changed inputs, compared and written down.");
  check.def(
      "__init__",
      [](Checker* self, Recorder& recorder, const Config& config, std::string_view framework) {
        new (self) Checker(recorder, ValueOrRaise(perturb::Check::Create(config, framework)));
      },
      nb::keep_alive<1, 2>(), nb::arg("recorder"), nb::arg("config"), nb::arg("framework"));
  BindCheck(check);
  BindCalls(check);
}

}  // namespace plumbline::python
