// Dot product, norms, absolute, relative and ULP differences of two runs in one pass, compiled once
// per CPU target. Included after moments.inl inside the same region and namespace.
//
// Work goes slice by slice in L1: both sides are widened to float (when that is exact), double or
// 64-bit integers, then reduced by a few loops that each vectorise. A slice with NaN or Inf on
// either side is left to a scalar loop. Nothing divides unless a slice may raise max_rel.

static constexpr size_t kPairSlice = 1024;
// The divisor in place of a golden 0: the spacing of doubles at 1.
static constexpr double kZeroReference = 0x1p-52;

// What one slice adds to the counts, and its extremes.
struct SliceCounts {
  uint64_t mismatch, golden_zero, golden_zero_mismatch, below_1e3, below_5e3;
  double max_abs, target_max, golden_max;
  uint64_t max_ulp;
  bool may_raise_rel;  // some pair may exceed the max_rel so far
};

struct PairLanes {
  double dot[kLanes], target[kLanes], golden[kLanes], difference[kLanes];
};

template <class T>
static constexpr bool kIsFloat = static_cast<T>(0.5f) != 0;

template <class T>
static inline double WideMagnitude(T x) {
  if constexpr (static_cast<T>(-1) < 0) {
    return __builtin_fabs(static_cast<double>(x));
  } else {
    return static_cast<double>(x);
  }
}

// |t - g|; for 64-bit integers from the exact difference.
template <class T>
static inline double WideDistance(T t, T g) {
  if constexpr (kIsFloat<T>) {
    return __builtin_fabs(static_cast<double>(t) - static_cast<double>(g));
  } else {
    const uint64_t up = static_cast<uint64_t>(t) - static_cast<uint64_t>(g);
    return static_cast<double>(t > g ? up : ~up + 1);
  }
}

template <class T>
static inline void AddSums(T t, T g, size_t l, PairLanes* lanes) {
  const double wide_t = static_cast<double>(t);
  const double wide_g = static_cast<double>(g);
  const double distance = WideDistance(t, g);
  lanes->dot[l] += wide_t * wide_g;
  lanes->target[l] += wide_t * wide_t;
  lanes->golden[l] += wide_g * wide_g;
  lanes->difference[l] += distance * distance;
}

// The four sums, and the largest distance.
template <class T>
static void PairSums(const T* t, const T* g, size_t count, PairLanes* out, double* max_abs) {
  PairLanes lanes = *out;
  double largest[kLanes] = {};
  size_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    for (size_t l = 0; l < kLanes; ++l) {
      AddSums(t[i + l], g[i + l], l, &lanes);
      largest[l] = Larger(WideDistance(t[i + l], g[i + l]), largest[l]);
    }
  }
  for (size_t l = 0; i < count; ++i, ++l) {
    AddSums(t[i], g[i], l, &lanes);
    largest[l] = Larger(WideDistance(t[i], g[i]), largest[l]);
  }
  for (size_t l = 1; l < kLanes; ++l) largest[0] = Larger(largest[l], largest[0]);
  *max_abs = largest[0];
  *out = lanes;
}

// Magnitudes, mismatches and zeros of 64-bit integers.
template <class T>
static void PairClasses(const T* t, const T* g, size_t count, SliceCounts* out) {
  uint64_t mismatch = 0, zero = 0, zero_mismatch = 0;
  T target_hi = t[0], target_lo = t[0], golden_hi = g[0], golden_lo = g[0];
  for (size_t i = 0; i < count; ++i) {
    const T x = t[i];
    const T y = g[i];
    const bool differs = x != y;
    mismatch += differs ? 1u : 0u;
    zero += y == 0 ? 1u : 0u;
    zero_mismatch += y == 0 && differs ? 1u : 0u;
    target_hi = Larger(x, target_hi);
    target_lo = Smaller(x, target_lo);
    golden_hi = Larger(y, golden_hi);
    golden_lo = Smaller(y, golden_lo);
  }
  out->mismatch = mismatch;
  out->golden_zero = zero;
  out->golden_zero_mismatch = zero_mismatch;
  out->target_max = Larger(WideMagnitude(target_hi), WideMagnitude(target_lo));
  out->golden_max = Larger(WideMagnitude(golden_hi), WideMagnitude(golden_lo));
}

static inline double Reference(double golden_magnitude) {
  return golden_magnitude == 0 ? kZeroReference : golden_magnitude;
}

// Counts of small relative errors, and whether `max_rel` may be exceeded.
template <class T>
static void PairRelative(const T* t, const T* g, size_t count, double max_rel, SliceCounts* out) {
  // Twice the rounding of the product and of the quotient: no larger error is missed.
  const double bound = max_rel * (1 - 0x1p-50);
  uint64_t below_1e3 = 0, below_5e3 = 0, above = 0;
  for (size_t i = 0; i < count; ++i) {
    const double distance = WideDistance(t[i], g[i]);
    const double reference = Reference(WideMagnitude(g[i]));
    below_1e3 += distance < 0.001 * reference ? 1u : 0u;
    below_5e3 += distance < 0.005 * reference ? 1u : 0u;
    above |= distance > bound * reference ? 1u : 0u;
  }
  out->below_1e3 = below_1e3;
  out->below_5e3 = below_5e3;
  out->may_raise_rel = above != 0;
}

// The largest relative error of a slice that may have one above the last.
template <class T>
static double MaxRelative(const T* t, const T* g, size_t count) {
  double largest = 0;
  size_t i = 0;
  if constexpr (kIsFloat<T>) {
    const VD zero = {};
    VD best[2] = {};
    for (; i + 2 * kDoublesPerVector <= count; i += 2 * kDoublesPerVector) {
      PL_UNROLL
      for (size_t v = 0; v < 2; ++v) {
        const VD x = LoadWide(t + i + v * kDoublesPerVector);
        const VD y = LoadWide(g + i + v * kDoublesPerVector);
        const VD reference = Select(Equal(y, zero), zero + kZeroReference, Abs(y));
        best[v] = Max(Abs(x - y) / reference, best[v]);
      }
    }
    best[0] = Max(best[1], best[0]);
    for (size_t l = 0; l < kDoublesPerVector; ++l) largest = Larger(best[0][l], largest);
  }
  for (; i < count; ++i) {
    const double error = WideDistance(t[i], g[i]) / Reference(WideMagnitude(g[i]));
    largest = Larger(error, largest);
  }
  return largest;
}

#include "kernels/ulp.inl"

// 64-bit integers against floats, or against integers of the other signedness. Both are compared as
// doubles, which may be equal for unequal numbers beyond 2^53: the difference of such is then taken
// from the bits.

static constexpr double kExactIntegers = 0x1p+53;  // doubles hold all integers up to here

static inline bool IsWideInteger(DType dtype) {
  return dtype == DType::kInt64 || dtype == DType::kUInt64;
}

// The integer modulo 2^64. Requires: `value` is one, of at most 64 bits.
static inline uint64_t IntegerBits(double value) {
  if (value < 0) return ~static_cast<uint64_t>(-value) + 1;
  return value < 0x1p+64 ? static_cast<uint64_t>(value) : 0;
}

// Element 0 as an integer modulo 2^64, which is `value` as a double.
static inline uint64_t BitsOf(DType dtype, const char* data, double value) {
  return IsWideInteger(dtype) ? Load<uint64_t>(data, 0) : IntegerBits(value);
}

// |target - golden| where the doubles `t` and `g` do not show it, else 0. Exact.
template <class T>
static inline double HiddenDistance(const RawPair& one, T t, T g) {
  if constexpr (kIsFloat<T> && sizeof(T) == 8) {
    if (!IsWideInteger(one.target_dtype) && !IsWideInteger(one.golden_dtype)) return 0;
    if (t != g || WideMagnitude(t) < kExactIntegers) return 0;
    const uint64_t up =
        BitsOf(one.target_dtype, one.target, t) - BitsOf(one.golden_dtype, one.golden, g);
    const uint64_t down = ~up + 1;
    return static_cast<double>(up < down ? up : down);
  } else {
    return 0;
  }
}

// Whether some pair of the slice may differ by what its doubles do not show.
template <class T>
static bool MayHide(const PairSlice<T>& slice) {
  if constexpr (kIsFloat<T> && sizeof(T) == 8) {
    const auto& [raw, t, g, count] = slice;
    if (!IsWideInteger(raw.target_dtype) && !IsWideInteger(raw.golden_dtype)) return false;
    uint64_t any = 0;
    for (size_t i = 0; i < count; ++i) any |= WideMagnitude(t[i]) < kExactIntegers ? 0u : 1u;
    return any != 0;
  } else {
    return false;
  }
}

static inline int ClassOf(double x) {
  if (x != x) return 1;
  if (__builtin_isfinite(x)) return 0;
  return x > 0 ? 2 : 3;
}

// One finite pair, scalar, for slices with NaN or Inf and for complex numbers. `index` is the
// element's number in the run.
static void AddFinitePair(double distance, double target_magnitude, double golden_magnitude,
                          bool differs, Pairwise* total) {
  const double reference = Reference(golden_magnitude);
  const bool golden_zero = golden_magnitude == 0;
  total->golden_zero_count += golden_zero ? 1u : 0u;
  total->golden_zero_mismatch += golden_zero && differs ? 1u : 0u;
  total->below_1e3 += distance < 0.001 * reference ? 1u : 0u;
  total->below_5e3 += distance < 0.005 * reference ? 1u : 0u;
  if (distance > total->max_abs) {
    total->max_abs = distance;
    total->max_abs_index = total->count;
  }
  total->max_rel = Larger(distance / reference, total->max_rel);
  total->target_max = Larger(target_magnitude, total->target_max);
  total->golden_max = Larger(golden_magnitude, total->golden_max);
}

static inline void CountPair(bool differs, Pairwise* total) {
  if (differs && total->mismatch_count++ == 0) total->first_mismatch = total->count;
  ++total->count;
}

// A slice with NaN or Inf, element by element.
template <class T>
static void SlowSlice(const PairSlice<T>& slice, PairLanes* lanes, Pairwise* total) {
  const auto& [raw, t, g, count] = slice;
  const size_t target_bytes = ElementBytes(raw.target_dtype);
  const size_t golden_bytes = ElementBytes(raw.golden_dtype);
  for (size_t i = 0; i < count; ++i) {
    const int target_class = ClassOf(static_cast<double>(t[i]));
    const int golden_class = ClassOf(static_cast<double>(g[i]));
    if (target_class != 0 || golden_class != 0) {
      ++total->nonfinite_count;
      const bool differs = target_class != golden_class;
      total->nonfinite_mismatch += differs ? 1u : 0u;
      CountPair(differs, total);
      continue;
    }
    AddSums(t[i], g[i], i % kLanes, lanes);
    const RawPair one = {raw.target_dtype, raw.target + i * target_bytes, raw.golden_dtype,
                         raw.golden + i * golden_bytes};
    const double hidden = HiddenDistance(one, t[i], g[i]);
    lanes->difference[i % kLanes] += hidden * hidden;
    total->max_ulp = Larger(SliceUlp(one, t + i, g + i, 1), total->max_ulp);
    const bool differs = t[i] != g[i] || hidden > 0;
    AddFinitePair(WideDistance(t[i], g[i]) + hidden, WideMagnitude(t[i]), WideMagnitude(g[i]),
                  differs, total);
    CountPair(differs, total);
  }
}

template <class T>
static void FastSlice(const PairSlice<T>& slice, const SliceCounts& counts, Pairwise* total) {
  const auto& [raw, t, g, count] = slice;
  if (counts.mismatch != 0 && total->mismatch_count == 0) {
    size_t i = 0;
    while (t[i] == g[i]) ++i;
    total->first_mismatch = total->count + i;
  }
  total->mismatch_count += counts.mismatch;
  total->golden_zero_count += counts.golden_zero;
  total->golden_zero_mismatch += counts.golden_zero_mismatch;
  total->below_1e3 += counts.below_1e3;
  total->below_5e3 += counts.below_5e3;
  total->target_max = Larger(counts.target_max, total->target_max);
  total->golden_max = Larger(counts.golden_max, total->golden_max);
  if (counts.mismatch != 0) {
    if (counts.max_abs > total->max_abs) {
      size_t i = 0;
      while (WideDistance(t[i], g[i]) != counts.max_abs) ++i;
      total->max_abs = counts.max_abs;
      total->max_abs_index = total->count + i;
    }
    if (counts.may_raise_rel) total->max_rel = Larger(MaxRelative(t, g, count), total->max_rel);
    total->max_ulp = Larger(counts.max_ulp, total->max_ulp);
  }
  total->count += count;
}

#include "kernels/float_pairs.inl"

template <class Vector, size_t n>
static inline uint64_t SumCounts(const Vector (&counts)[n]) {
  uint64_t sum = 0;
  for (const Vector& v : counts) {
    for (size_t i = 0; i < sizeof(Vector) / sizeof(v[0]); ++i) sum += static_cast<uint64_t>(v[i]);
  }
  return sum;
}
template <class Vector, size_t n>
static inline double LargestOf(const Vector (&values)[n]) {
  double largest = 0;
  for (const Vector& v : values) {
    for (size_t i = 0; i < sizeof(Vector) / sizeof(v[0]); ++i) {
      largest = Larger(static_cast<double>(v[i]), largest);
    }
  }
  return largest;
}

// Takes the sums of a slice over, or leaves them and returns false when one is not finite. Only NaN
// or Inf make the squares of floats so; squares of doubles may overflow, and then the rest of the
// block is left to the scalar loop too.
template <class Vectors>
static inline bool KeepFiniteSums(const Vectors& m, PairLanes* lanes) {
  PairLanes sums;
  __builtin_memcpy(&sums, static_cast<const void*>(&m), sizeof(sums));
  if (!__builtin_isfinite(SumLanes(sums.target)) || !__builtin_isfinite(SumLanes(sums.golden))) {
    return false;
  }
  *lanes = sums;
  return true;
}

// `slice.t` is `slice.g`, or holds the same bits.
template <class T>
static void EqualSlices(const PairSlice<T>& slice, PairLanes* lanes, Pairwise* total) {
  const size_t count = slice.count;
  PairVectors<T> m = {};
  __builtin_memcpy(static_cast<void*>(&m), lanes, sizeof(PairLanes));
  // All three sums stay equal as long as the slices of the block are.
  if (__builtin_memcmp(lanes->dot, lanes->target, sizeof(lanes->dot)) == 0 &&
      __builtin_memcmp(lanes->dot, lanes->golden, sizeof(lanes->dot)) == 0) {
    ReduceEqual<T, true>(slice.t, count, &m);
    __builtin_memcpy(m.dot, m.target, sizeof(m.dot));
    __builtin_memcpy(m.golden, m.target, sizeof(m.golden));
  } else {
    ReduceEqual<T, false>(slice.t, count, &m);
  }
  if (!KeepFiniteSums(m, lanes)) return SlowSlice(slice, lanes, total);
  SliceCounts counts = {};
  counts.golden_zero = SumCounts(m.zero);
  counts.below_1e3 = counts.below_5e3 = count;
  counts.target_max = counts.golden_max = LargestOf(m.target_max);
  FastSlice(slice, counts, total);
}

#if PL_WIDTH == 64
#include "kernels/wide_float_pairs.inl"
#else
template <class T>
static void UnequalSlices(const PairSlice<T>& slice, PairLanes* lanes, Pairwise* total) {
  const auto& [raw, t, g, count] = slice;
  PairVectors<T> m = {};
  __builtin_memcpy(static_cast<void*>(&m), lanes, sizeof(PairLanes));
  ReduceClasses(t, g, count, &m);
  ReduceDistances(t, g, count, LimitOf(total->max_rel), &m);
  if (!KeepFiniteSums(m, lanes)) return SlowSlice(slice, lanes, total);
  SliceCounts counts = {};
  counts.mismatch = SumCounts(m.mismatch);
  counts.golden_zero = SumCounts(m.zero);
  counts.golden_zero_mismatch = SumCounts(m.zero_mismatch);
  counts.below_1e3 = SumCounts(m.below_1e3);
  counts.below_5e3 = SumCounts(m.below_5e3);
  counts.max_abs = LargestOf(m.largest);
  counts.target_max = LargestOf(m.target_max);
  counts.golden_max = LargestOf(m.golden_max);
  if (counts.mismatch != 0) counts.max_ulp = SliceUlp(raw, t, g, count);
  for (const TruthD& above : m.above) counts.may_raise_rel |= Any(above);
  FastSlice(slice, counts, total);
}
#endif

// `t` and `g` are the same pointer when all bits of the slice are equal.
template <class T>
static void PairOfSlices(const PairSlice<T>& slice, PairLanes* lanes, Pairwise* total) {
  const auto& [raw, t, g, count] = slice;
  if constexpr (kIsFloat<T>) {
    if (MayHide(slice)) return SlowSlice(slice, lanes, total);
    // The vector loops take whole groups; the rest of the last slice goes one by one.
    const size_t whole = count / kLanes * kLanes;
    if (whole != 0 && t == g) {
      EqualSlices<T>({raw, t, g, whole}, lanes, total);
    } else if (whole != 0) {
      UnequalSlices<T>({raw, t, g, whole}, lanes, total);
    }
    if (whole == count) return;
    const RawPair rest = {raw.target_dtype, raw.target + whole * ElementBytes(raw.target_dtype),
                          raw.golden_dtype, raw.golden + whole * ElementBytes(raw.golden_dtype)};
    return SlowSlice<T>({rest, t + whole, g + whole, count - whole}, lanes, total);
  } else {
    SliceCounts counts = {};
    PairClasses(t, g, count, &counts);
    PairSums(t, g, count, lanes, &counts.max_abs);
    if (counts.mismatch != 0) {
      PairRelative(t, g, count, total->max_rel, &counts);
    } else {
      counts.below_1e3 = counts.below_5e3 = count;
    }
    FastSlice(slice, counts, total);
  }
}

#include "kernels/complex_pairs.inl"

// How the two sides are compared.
enum class PairForm { kFloat, kDouble, kInt64, kUInt64, kComplex };

static PairForm FormOf(DType target, DType golden) {
  const auto is_complex = [](DType d) { return d == DType::kComplex64 || d == DType::kComplex128; };
  if (is_complex(target) || is_complex(golden)) return PairForm::kComplex;
  if (FitsFloat(target) && FitsFloat(golden)) return PairForm::kFloat;
  // 64-bit integers with any integers but those of the other sign rule: exact.
  const bool wide = target == DType::kInt64 || golden == DType::kInt64;
  const bool unsigned_wide = target == DType::kUInt64 || golden == DType::kUInt64;
  if (IsInteger(target) && IsInteger(golden)) {
    if (wide && !unsigned_wide) return PairForm::kInt64;
    if (unsigned_wide && !IsSigned(target) && !IsSigned(golden)) return PairForm::kUInt64;
  }
  return PairForm::kDouble;
}

// The slice as T, in place if it is stored so and aligned, else widened into `buffer`.
template <class T>
static inline const T* SliceAs(DType stored, DType wanted, const char* data, size_t count,
                               T* buffer) {
  if (stored == wanted && reinterpret_cast<uintptr_t>(data) % alignof(T) == 0) {
    return reinterpret_cast<const T*>(data);
  }
  if constexpr (sizeof(T) == 4) {
    WidenToFloat(stored, data, count, buffer);
  } else {
    WidenToWide(stored, data, count, buffer);
  }
  return buffer;
}

// Whether two runs hold the same bytes; returns soon when they do not.
static bool SameBytes(const char* a, const char* b, size_t bytes) {
  constexpr size_t kStep = 256;
  size_t i = 0;
  for (; i + kStep <= bytes; i += kStep) {
    VL differences = {};
    for (size_t k = 0; k < kStep; k += PL_WIDTH) {
      if (k % 64 == 0) {
        Prefetch(a + i + k);
        Prefetch(b + i + k);
      }
      differences |= LoadVectorOf<VL>(a + i + k) ^ LoadVectorOf<VL>(b + i + k);
    }
    int64_t any = 0;
    for (size_t l = 0; l < kDoublesPerVector; ++l) any |= differences[l];
    if (any != 0) return false;
  }
  return __builtin_memcmp(a + i, b + i, bytes - i) == 0;
}

template <class T>
static void PairRuns(RawPair raw, DType form, size_t count, PairLanes* lanes, Pairwise* total) {
  alignas(64) T target[kPairSlice];
  alignas(64) T golden[kPairSlice];
  const size_t target_bytes = ElementBytes(raw.target_dtype);
  const size_t golden_bytes = ElementBytes(raw.golden_dtype);
  for (size_t i = 0; i < count; i += kPairSlice) {
    const size_t n = count - i < kPairSlice ? count - i : kPairSlice;
    const T* t = SliceAs(raw.target_dtype, form, raw.target, n, target);
    const bool identical = raw.target_dtype == raw.golden_dtype &&
                           SameBytes(raw.target, raw.golden, n * target_bytes);
    const T* g = identical ? t : SliceAs(raw.golden_dtype, form, raw.golden, n, golden);
    PairOfSlices<T>({raw, t, g, n}, lanes, total);
    raw.target += n * target_bytes;
    raw.golden += n * golden_bytes;
  }
}

static void PairwisePart(const PairOfRuns& runs, PairwiseState* state) {
  const RawPair raw = {runs.target_dtype, static_cast<const char*>(runs.target), runs.golden_dtype,
                       static_cast<const char*>(runs.golden)};
  PairLanes lanes;
  __builtin_memcpy(&lanes, state->lanes, sizeof(lanes));
  Pairwise* total = &state->total;
  switch (FormOf(runs.target_dtype, runs.golden_dtype)) {
    case PairForm::kFloat:
      PairRuns<float>(raw, DType::kFloat32, runs.count, &lanes, total);
      break;
    case PairForm::kDouble:
      PairRuns<double>(raw, DType::kFloat64, runs.count, &lanes, total);
      break;
    case PairForm::kInt64:
      PairRuns<int64_t>(raw, DType::kInt64, runs.count, &lanes, total);
      break;
    case PairForm::kUInt64:
      PairRuns<uint64_t>(raw, DType::kUInt64, runs.count, &lanes, total);
      break;
    case PairForm::kComplex:
      PairRunsOfComplex(raw, runs.count, &lanes, total);
      break;
  }
  __builtin_memcpy(state->lanes, &lanes, sizeof(lanes));
}
