// Sums of kernels/output_sums.h, compiled once per CPU target. Included after logarithm.inl.
//
// Work goes slice by slice in L1, by a few short loops, each of which keeps what it sums in
// registers; errors go from one to the next in memory. A slice that holds NaN or infinity, or a b
// that becomes infinite in the type of the device, is left to a scalar loop of the same arithmetic.
// The last slice is filled up with pairs of zeros, which add nothing but to `below`.

static constexpr size_t kOutputSlice = 1024;

// Counts and extremes do not depend on an order: they are kept in more vectors than kLanes elements
// take where those are so few that each would wait for the last one.
template <class T>
static constexpr size_t kOutputVectors = PL_WIDTH == 64 ? 4 : VectorOf<T>::kVectors;
template <class T>
static constexpr size_t kOutputStep = kOutputVectors<T>* PL_WIDTH / sizeof(T);
static constexpr size_t kOutputPadding = 64;  // a multiple of kLanes and of every step

// Numbers of a rule as T.
template <class T>
struct OutputLimits {
  T eps, share[3], small_value, small_atol, rtol, infinite_from, least_normal;

  explicit OutputLimits(const OutputRule& rule)
      : eps(static_cast<T>(rule.eps)),
        share{static_cast<T>(rule.share_limits[0]), static_cast<T>(rule.share_limits[1]),
              static_cast<T>(rule.share_limits[2])},
        small_value(static_cast<T>(rule.small_value)),
        small_atol(static_cast<T>(rule.small_atol)),
        rtol(static_cast<T>(rule.rtol)),
        infinite_from(static_cast<T>(rule.cast_infinite_from)),
        least_normal(static_cast<T>(PowerOfTwo(rule.cast_min_exponent))) {}
};

struct OutputLanes {
  alignas(64) double dot[kLanes], bench[kLanes], device[kLanes], rel[kLanes], error[kLanes],
      ulp[kLanes];
};

// `padded` is the next multiple of kOutputPadding; elements from `count` on are zeros.
template <class T>
struct OutputSlice {
  const T* bench;
  const T* device;
  size_t count, padded;
};

template <class T>
struct OutputScratch {
  alignas(64) T bench[kOutputSlice], device[kOutputSlice], error[kOutputSlice], rel[kOutputSlice];
};

// All that a block works on.
struct OutputTotals {
  const OutputRule& rule;
  OutputLanes lanes = {};
  OutputSums sums = {};
};
template <class T>
struct OutputState : OutputTotals {
  OutputLimits<T> limits;
  OutputScratch<T> scratch;

  explicit OutputState(const OutputRule& of) : OutputTotals{of}, limits(of) {}
};

template <class T>
struct OutputExtremes {
  T error = 0, rel = 0, bench = 0, device = 0;
  uint64_t mismatches = 0;
};

template <class V>
static inline void StoreVector(V v, void* to) {
  __builtin_memcpy(to, &v, sizeof(v));
}

// Of few vectors, which stay in registers: only what is made of them is in memory.
template <class T, size_t n>
static inline T LargestLane(const typename VectorOf<T>::Type (&vectors)[n]) {
  typename VectorOf<T>::Type all = vectors[0];
  PL_UNROLL
  for (size_t v = 1; v < n; ++v) all = Max(vectors[v], all);
  T lanes[PL_WIDTH / sizeof(T)];
  __builtin_memcpy(lanes, &all, sizeof(all));
  T largest = lanes[0];
  for (const T lane : lanes) largest = Larger(lane, largest);
  return largest;
}
template <class Counter, size_t n>
static inline uint64_t CountedLanes(const Counter (&vectors)[n]) {
  typedef decltype(+Counter{}[0]) Int;
  Counter all = vectors[0];
  PL_UNROLL
  for (size_t v = 1; v < n; ++v) all += vectors[v];
  Int lanes[sizeof(Counter) / sizeof(Int)];
  __builtin_memcpy(lanes, &all, sizeof(all));
  uint64_t sum = 0;
  for (const Int lane : lanes) sum += static_cast<uint64_t>(lane);
  return sum;
}
template <class T>
static inline T MagnitudeOf(T x) {
  return static_cast<T>(__builtin_fabs(static_cast<double>(x)));
}
static inline bool IsFinite(double x) { return __builtin_fabs(x) < __builtin_inf(); }

// ae and re of all elements, the largest of them, and of both sides.
template <class T, bool count_mismatches>
static void MeasureErrors(const OutputSlice<T>& slice, T eps, OutputScratch<T>* scratch,
                          OutputExtremes<T>* out) {
  typedef typename VectorOf<T>::Type Vector;
  constexpr size_t kVectors = kOutputVectors<T>;
  constexpr size_t kPerVector = PL_WIDTH / sizeof(T);
  Vector error[kVectors] = {}, rel[kVectors] = {}, bench[kVectors] = {}, device[kVectors] = {};
  typename VectorOf<T>::Counter mismatches[kVectors] = {};
  for (size_t i = 0; i < slice.padded; i += kOutputStep<T>) {
    PL_UNROLL
    for (size_t v = 0; v < kVectors; ++v) {
      const size_t at = i + v * kPerVector;
      Prefetch(slice.bench + at);
      const Vector d = LoadVector<T>(slice.device + at);
      const Vector b = LoadVector<T>(slice.bench + at);
      const Vector distance = Abs(d - b);
      const Vector quotient = distance / (Abs(b) + eps);
      StoreVector(distance, scratch->error + at);
      StoreVector(quotient, scratch->rel + at);
      error[v] = Max(distance, error[v]);
      rel[v] = Max(quotient, rel[v]);
      bench[v] = Max(Abs(b), bench[v]);
      device[v] = Max(Abs(d), device[v]);
      if constexpr (count_mismatches) mismatches[v] = Count(mismatches[v], Differ(d, b));
    }
  }
  out->error = LargestLane<T>(error);
  out->rel = LargestLane<T>(rel);
  out->bench = LargestLane<T>(bench);
  out->device = LargestLane<T>(device);
  out->mismatches = CountedLanes(mismatches);
}

// Adds the products unless an element is NaN or infinite, or a sum overflows.
template <class T>
static bool AddFiniteProducts(const OutputSlice<T>& slice, OutputLanes* lanes) {
  VD dot[kWide], bench[kWide], device[kWide];
  __builtin_memcpy(dot, lanes->dot, sizeof(dot));
  __builtin_memcpy(bench, lanes->bench, sizeof(bench));
  __builtin_memcpy(device, lanes->device, sizeof(device));
  for (size_t i = 0; i < slice.padded; i += kLanes) {
    PL_UNROLL
    for (size_t v = 0; v < kWide; ++v) {
      const VD d = LoadWide(slice.device + i + v * kDoublesPerVector);
      const VD b = LoadWide(slice.bench + i + v * kDoublesPerVector);
      dot[v] = AddProduct<sizeof(T) == 4>(dot[v], d, b);
      bench[v] = AddProduct<sizeof(T) == 4>(bench[v], b, b);
      device[v] = AddProduct<sizeof(T) == 4>(device[v], d, d);
    }
  }
  VD all = {};
  for (size_t v = 0; v < kWide; ++v) all += bench[v] + device[v];
  double sum = 0;
  for (size_t l = 0; l < kDoublesPerVector; ++l) sum += all[l];
  if (!IsFinite(sum)) return false;
  __builtin_memcpy(lanes->dot, dot, sizeof(dot));
  __builtin_memcpy(lanes->bench, bench, sizeof(bench));
  __builtin_memcpy(lanes->device, device, sizeof(device));
  return true;
}

// Elements with a relative error below each limit. Where no error reaches a limit, all are.
template <class T>
static void CountShares(const OutputSlice<T>& slice, const OutputState<T>& state, T largest,
                        uint64_t* below) {
  typedef typename VectorOf<T>::Type Vector;
  constexpr size_t kVectors = kOutputVectors<T>;
  constexpr size_t kPerVector = PL_WIDTH / sizeof(T);
  for (size_t k = 0; k < state.rule.share_count; ++k) {
    const T limit = state.limits.share[k];
    if (largest < limit) {
      below[k] += slice.count;
      continue;
    }
    typename VectorOf<T>::Counter counts[kVectors] = {};
    for (size_t i = 0; i < slice.padded; i += kOutputStep<T>) {
      PL_UNROLL
      for (size_t v = 0; v < kVectors; ++v) {
        const Vector quotient = LoadVector<T>(state.scratch.rel + i + v * kPerVector);
        counts[v] = Count(counts[v], Less(quotient, Vector{} + limit));
      }
    }
    below[k] += CountedLanes(counts) - (slice.padded - slice.count);
  }
}

// x to the nearest number, ties to even, of a type with `drop_bits` fewer bits of mantissa: a power
// of two that is added and taken away again leaves nothing below its own last place. Requires: the
// result is finite in that type.
template <class T, class V>
static inline V Rounded(V x, int drop_bits, T least_normal) {
  typedef typename VectorOf<T>::Int Int;
  typedef typename VectorOf<T>::Counter Words;
  constexpr int kMantissa = sizeof(T) == 4 ? 23 : 52;
  constexpr Int kExponent =
      static_cast<Int>(sizeof(T) == 4 ? int64_t{0x7F800000} : int64_t{0x7FF0000000000000});
  const V magnitude = Abs(x);
  const Words exponent = (Words)Max(magnitude, V{} + least_normal) & kExponent;
  const V step = (V)(exponent + (static_cast<Int>(drop_bits) << kMantissa));
  const V rounded = (magnitude + step) - step;
  return (V)((Words)rounded | ((Words)x ^ (Words)magnitude));  // the sign of x
}

// What the fused loop counts, per lane of a vector.
template <class T>
struct OutputCounters {
  typedef typename VectorOf<T>::Type Vector;
  typedef typename VectorOf<T>::Counter Counter;
  Vector error = {}, rel = {}, bench = {}, device = {}, kept = {};
  Counter below[3] = {}, normal = {}, rel_bad = {}, small_bad = {}, above = {}, beneath = {};
};

// Everything that a standard of errors asks for, but for sums: ae and re, the shares, counts of N
// and S beyond the limits, whether d is above or beneath b' (`cast`: b' is not b). With `keep`,
// errors are kept in memory, as 0 outside N. One vector at a time: the loop is long enough that
// nothing waits.
template <class T, bool keep, bool cast>
static void CountErrors(const OutputSlice<T>& slice, OutputState<T>* state,
                        OutputCounters<T>* out) {
  typedef typename VectorOf<T>::Type Vector;
  constexpr size_t kPerVector = PL_WIDTH / sizeof(T);
  constexpr bool kThird = !(cast && sizeof(T) == 4);  // float16 has two shares
  const OutputLimits<T> limits = state->limits;
  const int drop_bits = state->rule.cast_drop_bits;
  const Vector zero = {};
  OutputCounters<T> m;
  for (size_t i = 0; i < slice.padded; i += kPerVector) {
    Prefetch(slice.bench + i);
    const Vector d = LoadVector<T>(slice.device + i);
    const Vector b = LoadVector<T>(slice.bench + i);
    const Vector magnitude = Abs(b);
    const Vector error = Abs(d - b);
    const Vector rel = error / (magnitude + limits.eps);
    m.error = Max(error, m.error);
    m.bench = Max(magnitude, m.bench);
    m.device = Max(Abs(d), m.device);
    m.below[0] = Count(m.below[0], Less(rel, zero + limits.share[0]));
    m.below[1] = Count(m.below[1], Less(rel, zero + limits.share[1]));
    if constexpr (kThird) m.below[2] = Count(m.below[2], Less(rel, zero + limits.share[2]));
    const auto is_normal = Less(zero + limits.small_value, magnitude);
    m.normal = Count(m.normal, is_normal);
    const Vector small_error = Select(is_normal, zero, error);
    m.small_bad = Count(m.small_bad, Less(zero + limits.small_atol, small_error));
    const Vector kept = Select(is_normal, rel, zero);
    if constexpr (keep) {
      m.kept = Max(kept, m.kept);
      StoreVector(kept, state->scratch.rel + i);
      StoreVector(Select(is_normal, error, zero), state->scratch.error + i);
    } else {
      m.rel_bad = Count(m.rel_bad, Less(zero + limits.rtol, kept));
    }
    Vector rounded = b;
    if constexpr (cast) rounded = Rounded<T>(b, drop_bits, limits.least_normal);
    m.above = Count(m.above, Less(rounded, d));
    m.beneath = Count(m.beneath, Less(d, rounded));
  }
  *out = m;
}

template <class Counter>
static inline uint64_t CountedIn(const Counter& counter) {
  const Counter one[1] = {counter};
  return CountedLanes(one);
}
template <class T>
static inline double LargestIn(const typename VectorOf<T>::Type& vector) {
  const typename VectorOf<T>::Type one[1] = {vector};
  return static_cast<double>(LargestLane<T>(one));
}

template <class T>
static void AddCounters(const OutputSlice<T>& slice, const OutputCounters<T>& m,
                        OutputState<T>* state) {
  OutputSums& sums = state->sums;
  for (size_t k = 0; k < state->rule.share_count; ++k) {
    sums.below[k] += CountedIn(m.below[k]) - (slice.padded - slice.count);
  }
  const uint64_t normal = CountedIn(m.normal);
  sums.error_max = Larger(LargestIn<T>(m.error), sums.error_max);
  sums.bench_max = Larger(LargestIn<T>(m.bench), sums.bench_max);
  sums.device_max = Larger(LargestIn<T>(m.device), sums.device_max);
  sums.normal += normal;
  sums.small += slice.count - normal;
  sums.rel_bad += CountedIn(m.rel_bad);
  sums.small_bad += CountedIn(m.small_bad);
  sums.rel_max = Larger(LargestIn<T>(m.kept), sums.rel_max);
  sums.above += CountedIn(m.above);
  sums.beneath += CountedIn(m.beneath);
}

// Sums of the errors that CountErrors() kept.
template <class T>
static void AddKeptErrors(const OutputSlice<T>& slice, const OutputScratch<T>& scratch,
                          OutputLanes* lanes) {
  VD rel[kWide], error[kWide];
  __builtin_memcpy(rel, lanes->rel, sizeof(rel));
  __builtin_memcpy(error, lanes->error, sizeof(error));
  for (size_t i = 0; i < slice.padded; i += kLanes) {
    PL_UNROLL
    for (size_t v = 0; v < kWide; ++v) {
      const VD distance = LoadWide(scratch.error + i + v * kDoublesPerVector);
      rel[v] += LoadWide(scratch.rel + i + v * kDoublesPerVector);
      error[v] = AddProduct<sizeof(T) == 4>(error[v], distance, distance);
    }
  }
  __builtin_memcpy(lanes->rel, rel, sizeof(rel));
  __builtin_memcpy(lanes->error, error, sizeof(error));
}

// Units of the last place: 2^(p - E) from the bits of |b|.
struct UlpScale {
  double least;       // 2^Emin
  uint64_t exponent;  // (p + twice the bias) at the place of the exponent; its top bit is lost

  explicit UlpScale(const OutputRule& rule)
      : least(__builtin_bit_cast(double, static_cast<int64_t>(rule.ulp_min_exponent + 1023) << 52)),
        exponent(static_cast<uint64_t>(rule.ulp_mantissa_bits + 2 * 1023) << 52) {}
};
static constexpr uint64_t kDoubleExponent = 0x7FF0000000000000;
static inline VD ScaleOf(VD b, TruthD is_zero, const UlpScale& scale) {
  const VD one = VD{} + 1.0;
  const VD magnitude = Select(is_zero, one, Max(Abs(b), VD{} + scale.least));
  return (VD)(scale.exponent - ((VUnsignedLong)magnitude & kDoubleExponent));
}
static inline double ScaleOf(double b, bool is_zero, const UlpScale& scale) {
  const double magnitude = is_zero ? 1.0 : Max(Abs(b), scale.least);
  const uint64_t bits = __builtin_bit_cast(uint64_t, magnitude) & kDoubleExponent;
  return __builtin_bit_cast(double, scale.exponent - bits);
}

// The rule for float8, whose mantissas are short for large and small exponents: w bits are taken
// where the exponent e of b, at least -22, is at most 3, 7 or 15 from 0; beyond, the distance is
// that of the logarithms. |d - b| 2^(w - e).
static inline double Float8Logarithm(double magnitude) {
  constexpr double kOneOverLn2 = 1.4426950408889634;
  return Max(LogRatio<double>(magnitude + 0x1p-1000, 1.0) * kOneOverLn2, -22.0);
}
static inline double Float8Ulp(double d, double b) {
  if (!IsFinite(d)) return Abs(d);
  const int64_t bits = __builtin_bit_cast(int64_t, Max(Abs(b), 0x1p-22)) >> 52;
  const int64_t e = bits - 1023;
  const int64_t distance = e < 0 ? -e : e;
  const int64_t width = distance <= 3 ? 3 : distance <= 7 ? 2 : distance <= 15 ? 1 : 0;
  if (width > 0) {
    return Abs(d - b) * __builtin_bit_cast(double, (width - e + 1023) << 52);
  }
  const double of_d = d == 0 ? 0 : __builtin_copysign(Float8Logarithm(Abs(d)), d);
  const double of_b = b == 0 ? 0 : __builtin_copysign(Float8Logarithm(Abs(b)), b);
  return Abs(of_d - of_b);
}

// One finite distance, or one of a device that is infinite.
static inline void AddUlp(double ulp, bool of_zero, size_t lane, OutputTotals* totals) {
  OutputSums& sums = totals->sums;
  if (ulp != ulp) {
    ++sums.ulp_nan;
    return;
  }
  totals->lanes.ulp[lane] += ulp;
  sums.ulp_max = Larger(ulp, sums.ulp_max);
  sums.ulp_counted += ulp > totals->rule.ulp_above ? 1u : 0u;
  sums.ulp_of_zero += of_zero && ulp > 0 ? 1u : 0u;
}

template <class T>
static void AddUlps(const OutputSlice<T>& slice, const T* errors, OutputTotals* totals) {
  const UlpScale scale(totals->rule);
  const VD above = VD{} + totals->rule.ulp_above;
  VD sum[kWide], largest[kWide] = {};
  VL counted[kWide] = {}, of_zero[kWide] = {};
  const VD zero = {};
  __builtin_memcpy(sum, totals->lanes.ulp, sizeof(sum));
  for (size_t i = 0; i < slice.padded; i += kLanes) {
    PL_UNROLL
    for (size_t v = 0; v < kWide; ++v) {
      const size_t at = i + v * kDoublesPerVector;
      const VD b = LoadWide(slice.bench + at);
      const TruthD is_zero = Equal(b, zero);
      const VD ulp = LoadWide(errors + at) * ScaleOf(b, is_zero, scale);
      sum[v] += ulp;
      largest[v] = Max(ulp, largest[v]);
      counted[v] = Count(counted[v], Less(above, ulp));
      of_zero[v] = Count(of_zero[v], Both(is_zero, Less(zero, ulp)));
    }
  }
  __builtin_memcpy(totals->lanes.ulp, sum, sizeof(sum));
  totals->sums.ulp_max = Larger(LargestLane<double>(largest), totals->sums.ulp_max);
  totals->sums.ulp_counted += CountedLanes(counted);
  totals->sums.ulp_of_zero += CountedLanes(of_zero);
}

// The same in floats, where the power of two is one: of float16, whose E is between -14 and 15. The
// product is exact, too. `ulps`: room for them.
typedef uint32_t VUnsigned __attribute__((vector_size(PL_WIDTH)));
static void AddFloatUlps(const OutputSlice<float>& slice, const float* errors, float* ulps,
                         OutputTotals* totals) {
  const OutputRule& rule = totals->rule;
  constexpr uint32_t kExponent = 0x7F800000;
  const uint32_t exponent = static_cast<uint32_t>(rule.ulp_mantissa_bits + 2 * 127) << 23;
  const VF zero = {};
  const VF above = zero + static_cast<float>(rule.ulp_above);
  const VF least = zero + static_cast<float>(UlpScale(rule).least);
  VF largest[1] = {};
  VI counted[1] = {}, of_zero[1] = {};
  for (size_t i = 0; i < slice.padded; i += PL_WIDTH / sizeof(float)) {
    const VF b = LoadVector<float>(slice.bench + i);
    const TruthF is_zero = Equal(b, zero);
    const VF magnitude = Select(is_zero, zero + 1.0f, Max(Abs(b), least));
    const VF scale = (VF)(exponent - ((VUnsigned)magnitude & kExponent));
    const VF ulp = LoadVector<float>(errors + i) * scale;
    StoreVector(ulp, ulps + i);
    largest[0] = Max(ulp, largest[0]);
    counted[0] = Count(counted[0], Less(above, ulp));
    of_zero[0] = Count(of_zero[0], Both(is_zero, Less(zero, ulp)));
  }
  VD sum[kWide];
  __builtin_memcpy(sum, totals->lanes.ulp, sizeof(sum));
  for (size_t i = 0; i < slice.padded; i += kLanes) {
    PL_UNROLL
    for (size_t v = 0; v < kWide; ++v) sum[v] += LoadWide(ulps + i + v * kDoublesPerVector);
  }
  __builtin_memcpy(totals->lanes.ulp, sum, sizeof(sum));
  const double most = static_cast<double>(LargestLane<float>(largest));
  totals->sums.ulp_max = Larger(most, totals->sums.ulp_max);
  totals->sums.ulp_counted += CountedLanes(counted);
  totals->sums.ulp_of_zero += CountedLanes(of_zero);
}

template <class T>
static void AddFloat8Ulps(const OutputSlice<T>& slice, OutputTotals* totals) {
  for (size_t i = 0; i < slice.count; ++i) {
    const double b = static_cast<double>(Load<T>(slice.bench, i));
    const double ulp = Float8Ulp(static_cast<double>(Load<T>(slice.device, i)), b);
    AddUlp(ulp, b == 0, i % kLanes, totals);
  }
}

// b' of one element.
template <class T>
static inline T CastOne(T b, const OutputRule& rule, const OutputLimits<T>& limits) {
  typedef typename VectorOf<T>::Type Vector;
  const double magnitude = Abs(static_cast<double>(b));
  if (rule.cast_drop_bits == 0 || b != b) return b;
  if (magnitude >= static_cast<double>(limits.infinite_from)) {
    return static_cast<T>(__builtin_copysign(__builtin_inf(), static_cast<double>(b)));
  }
  return Rounded<T>(Vector{} + b, rule.cast_drop_bits, limits.least_normal)[0];
}

// Whether an element outside F is beyond the limits. Of an infinite b, only the same infinity or
// what the finite range cuts off at the same place is good: the quotient by |b| would be 0.
template <class T>
static inline bool IsBadNonFinite(T d, T b, T cast, const OutputRule& rule,
                                  const OutputLimits<T>& limits) {
  if (d != d || b != b) return (d == d) != (b == b);
  const T clip = static_cast<T>(rule.clip);
  const T clipped_d = d > clip ? clip : d < -clip ? -clip : d;
  const T clipped_b = cast > clip ? clip : cast < -clip ? -clip : cast;
  const T magnitude = MagnitudeOf(b);
  if (!IsFinite(static_cast<double>(b))) return d != b && clipped_d != clipped_b;
  const T rel = MagnitudeOf(clipped_d - clipped_b) / (magnitude + limits.eps);
  return !(rel <= limits.rtol);
}

// One pair that the sums of a standard are of.
template <class T>
static void AddSlowPair(T d, T b, size_t lane, OutputState<T>* state) {
  const OutputRule& rule = state->rule;
  const OutputLimits<T>& limits = state->limits;
  OutputSums& sums = state->sums;
  const T error = MagnitudeOf(d - b);
  const T magnitude = MagnitudeOf(b);
  const T rel = error / (magnitude + limits.eps);
  const T cast = CastOne(b, rule, limits);
  sums.above += d > cast ? 1u : 0u;
  sums.beneath += d < cast ? 1u : 0u;
  if (!IsFinite(static_cast<double>(d)) || !IsFinite(static_cast<double>(cast))) {
    ++sums.not_finite;
    sums.not_finite_bad += IsBadNonFinite(d, b, cast, rule, limits) ? 1u : 0u;
  } else if (!(magnitude > limits.small_value)) {
    ++sums.small;
    sums.small_bad += error > limits.small_atol ? 1u : 0u;
  } else if (rule.work == OutputWork::kLimits) {
    ++sums.normal;
    sums.rel_bad += rel > limits.rtol ? 1u : 0u;
  } else {
    const double wide = static_cast<double>(error);
    ++sums.normal;
    sums.rel_max = Larger(static_cast<double>(rel), sums.rel_max);
    state->lanes.rel[lane] += static_cast<double>(rel);
    state->lanes.error[lane] += wide * wide;
  }
}

static inline void AddSlowUlp(double d, double b, double error, size_t lane,
                              OutputTotals* totals) {
  double ulp = __builtin_nan("");
  if (IsFinite(b) && totals->rule.ulp_of_float8) ulp = Float8Ulp(d, b);
  if (IsFinite(b) && !totals->rule.ulp_of_float8) {
    ulp = error * ScaleOf(b, b == 0, UlpScale(totals->rule));
  }
  AddUlp(ulp, b == 0, lane, totals);
}

// One pair that the sums of the ladder are of.
template <class T>
static void AddSlowLadder(T d, T b, size_t lane, OutputState<T>* state) {
  const double wide_d = static_cast<double>(d), wide_b = static_cast<double>(b);
  OutputSums& sums = state->sums;
  const T error = MagnitudeOf(d - b);
  const T rel = error / (MagnitudeOf(b) + state->limits.eps);
  if (IsFinite(wide_d) && IsFinite(wide_b)) {
    state->lanes.dot[lane] += wide_d * wide_b;
    state->lanes.bench[lane] += wide_b * wide_b;
    state->lanes.device[lane] += wide_d * wide_d;
  } else {
    ++sums.any_not_finite;
  }
  sums.bench_max = Max(Abs(wide_b), sums.bench_max);
  sums.device_max = Max(Abs(wide_d), sums.device_max);
  sums.error_max = Max(static_cast<double>(error), sums.error_max);
  sums.error_nan += error != error ? 1u : 0u;
  for (size_t k = 0; k < state->rule.share_count; ++k) {
    sums.below[k] += rel < state->limits.share[k] ? 1u : 0u;
  }
}

template <class T>
static void AddSlowSlice(const OutputSlice<T>& slice, OutputState<T>* state) {
  for (size_t i = 0; i < slice.count; ++i) {
    const size_t lane = i % kLanes;
    const T d = Load<T>(slice.device, i);
    const T b = Load<T>(slice.bench, i);
    AddSlowLadder(d, b, lane, state);
    switch (state->rule.work) {
      case OutputWork::kLadder:
        state->sums.mismatches += d != b && (d == d || b == b) ? 1u : 0u;
        break;
      case OutputWork::kUlp:
        AddSlowUlp(static_cast<double>(d), static_cast<double>(b),
                   static_cast<double>(MagnitudeOf(d - b)), lane, state);
        break;
      case OutputWork::kLimits:
      case OutputWork::kBenchmark: AddSlowPair(d, b, lane, state); break;
    }
  }
}

// A slice for a standard of errors; false, and nothing added, if it is one for the scalar loop.
template <class T, bool keep, bool cast>
static bool AddErrorSlice(const OutputSlice<T>& slice, OutputState<T>* state) {
  OutputCounters<T> counters;
  CountErrors<T, keep, cast>(slice, state, &counters);
  if (!(LargestIn<T>(counters.bench) < static_cast<double>(state->limits.infinite_from)) ||
      !AddFiniteProducts(slice, &state->lanes)) {
    return false;
  }
  AddCounters(slice, counters, state);
  if constexpr (keep) AddKeptErrors(slice, state->scratch, &state->lanes);
  return true;
}

// The same for the ladder and units of the last place.
template <class T>
static bool AddLadderSlice(const OutputSlice<T>& slice, OutputState<T>* state) {
  const OutputRule& rule = state->rule;
  OutputSums& sums = state->sums;
  OutputExtremes<T> extremes;
  rule.work == OutputWork::kLadder
      ? MeasureErrors<T, true>(slice, state->limits.eps, &state->scratch, &extremes)
      : MeasureErrors<T, false>(slice, state->limits.eps, &state->scratch, &extremes);
  if (!(extremes.bench < state->limits.infinite_from) ||
      !AddFiniteProducts(slice, &state->lanes)) {
    return false;
  }
  sums.bench_max = Larger(static_cast<double>(extremes.bench), sums.bench_max);
  sums.device_max = Larger(static_cast<double>(extremes.device), sums.device_max);
  sums.error_max = Larger(static_cast<double>(extremes.error), sums.error_max);
  sums.mismatches += extremes.mismatches;
  CountShares(slice, *state, extremes.rel, sums.below);
  if (rule.work != OutputWork::kUlp) return true;
  if constexpr (sizeof(T) == 4) {
    if (!rule.ulp_of_float8 && rule.ulp_mantissa_bits - rule.ulp_min_exponent < 64) {
      AddFloatUlps(slice, state->scratch.error, state->scratch.rel, state);
      return true;
    }
  }
  rule.ulp_of_float8 ? AddFloat8Ulps(slice, state) : AddUlps(slice, state->scratch.error, state);
  return true;
}

template <class T>
static bool AddFastSlice(const OutputSlice<T>& slice, OutputState<T>* state) {
  const bool cast = state->rule.cast_drop_bits != 0;
  switch (state->rule.work) {
    case OutputWork::kLadder:
    case OutputWork::kUlp: return AddLadderSlice(slice, state);
    case OutputWork::kLimits:
      return cast ? AddErrorSlice<T, false, true>(slice, state)
                  : AddErrorSlice<T, false, false>(slice, state);
    case OutputWork::kBenchmark:
      return cast ? AddErrorSlice<T, true, true>(slice, state)
                  : AddErrorSlice<T, true, false>(slice, state);
  }
  return false;
}

// `count` elements as T, filled up with zeros; where they lie if they are T and need no filling.
template <class T>
static const T* OutputSide(DType dtype, const char* from, size_t count, size_t padded, T* room) {
  if constexpr (sizeof(T) == 4) {
    if (dtype == DType::kFloat32 && count == padded) return reinterpret_cast<const T*>(from);
    WidenToFloat(dtype, from, count, room);
  } else {
    if (dtype == DType::kFloat64 && count == padded) return reinterpret_cast<const T*>(from);
    WidenToWide(dtype, from, count, room);
  }
  for (size_t i = count; i < padded; ++i) room[i] = 0;
  return room;
}

static inline double SumOutputLanes(const double* lanes) {
  double half[kLanes / 2];
  for (size_t l = 0; l < 8; ++l) half[l] = lanes[l] + lanes[l + 8];
  for (size_t l = 0; l < 4; ++l) half[l] += half[l + 4];
  return (half[0] + half[2]) + (half[1] + half[3]);
}

// The benchmark of a slice rounded to a narrow type, in place.
template <class T>
static const T* RoundBench(const NarrowFormat& format, const OutputSlice<T>& slice, T* room) {
  for (size_t k = 0; k < slice.padded; ++k) {
    const float value = static_cast<float>(Load<T>(slice.bench, k));
    room[k] = static_cast<T>(NarrowToFloat(format, FloatToNarrow(format, value)));
  }
  return room;
}

template <class T>
static void OutputBlockAs(const OutputRule& rule, const OutputRuns& runs, OutputSums* sums) {
  OutputState<T> state(rule);
  const char* bench = static_cast<const char*>(runs.bench);
  const char* device = static_cast<const char*>(runs.device);
  const size_t bench_bytes = ElementBytes(rule.bench_dtype);
  const size_t device_bytes = ElementBytes(rule.device_dtype);
  for (size_t i = 0; i < runs.count; i += kOutputSlice) {
    OutputSlice<T> slice;
    slice.count = runs.count - i < kOutputSlice ? runs.count - i : kOutputSlice;
    slice.padded = (slice.count + kOutputPadding - 1) / kOutputPadding * kOutputPadding;
    slice.bench = OutputSide(rule.bench_dtype, bench + i * bench_bytes, slice.count, slice.padded,
                             state.scratch.bench);
    slice.device = OutputSide(rule.device_dtype, device + i * device_bytes, slice.count,
                              slice.padded, state.scratch.device);
    if (rule.bench_rounded_to != nullptr) {
      slice.bench = RoundBench(*rule.bench_rounded_to, slice, state.scratch.bench);
    }
    state.sums.count += slice.count;
    if (!AddFastSlice(slice, &state)) AddSlowSlice(slice, &state);
  }
  *sums = state.sums;
  sums->dot = SumOutputLanes(state.lanes.dot);
  sums->bench_squares = SumOutputLanes(state.lanes.bench);
  sums->device_squares = SumOutputLanes(state.lanes.device);
  sums->rel_sum = SumOutputLanes(state.lanes.rel);
  sums->error_squares = SumOutputLanes(state.lanes.error);
  sums->ulp_sum = SumOutputLanes(state.lanes.ulp);
}

static void OutputPart(const OutputRule& rule, const OutputRuns& runs, OutputSums* sums) {
  if (rule.as_double) return OutputBlockAs<double>(rule, runs, sums);
  OutputBlockAs<float>(rule, runs, sums);
}
