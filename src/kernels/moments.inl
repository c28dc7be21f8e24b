// Max, min, sum, sum of squares, NaN, Inf and zero counts in one pass, compiled once per CPU
// target. Included after convert.inl inside the same region and namespace.
//
// Work goes slice by slice: kSlice elements are widened into a buffer in L1 (float32 and float64
// are read in place), then reduced. The fast loop does not count NaN and Inf; when the sum of
// squares shows that one was met, the slice is visited again, still in L1, by a loop that does.

static constexpr size_t kSlice = 2048;

template <class T>
static inline T Larger(T a, T b) {
  return a > b ? a : b;
}
template <class T>
static inline T Smaller(T a, T b) {
  return a < b ? a : b;
}

// Sum in the fixed order 8, 4, 2, 1.
static inline double SumLanes(const double* lanes) {
  double half[8];
  for (int l = 0; l < 8; ++l) half[l] = lanes[l] + lanes[l + 8];
  for (int l = 0; l < 4; ++l) half[l] += half[l + 4];
  half[0] += half[2];
  half[1] += half[3];
  return half[0] + half[1];
}

// Counts and extremes of a slice with NaN or Inf; the sums need no repair.
template <class T>
static void CountNonFinite(const void* data, size_t count, Moments* total) {
  typedef typename VectorOf<T>::Type Vector;
  typedef typename VectorOf<T>::Counter Counter;
  constexpr size_t kStep = PL_WIDTH / sizeof(T);
  const char* in = static_cast<const char*>(data);
  const Vector inf = Vector{} + static_cast<T>(__builtin_inf());
  Counter nans = {}, infs = {};
  Vector hi = -inf, lo = inf;
  for (size_t i = 0; i < count; i += kStep, in += sizeof(Vector)) {
    Vector x = {};
    if (count - i >= kStep) {
      x = LoadVector<T>(in);
    } else {
      // Repeats the last element of the slice in the rest of the vector, as finite or NaN or Inf
      // as it is; the counts are corrected below.
      x = x + Load<T>(data, count - 1);
      __builtin_memcpy(&x, in, (count - i) * sizeof(T));
    }
    const Vector magnitude = Abs(x);
    const auto finite = Less(magnitude, inf);
    nans = Count(nans, Differ(x, x));
    infs = Count(infs, Equal(magnitude, inf));
    hi = Max(Select(finite, x, -inf), hi);
    lo = Min(Select(finite, x, inf), lo);
  }
  const size_t repeats = (kStep - count % kStep) % kStep;
  const T last = Load<T>(data, count - 1);
  const bool last_is_inf = last == inf[0] || last == -inf[0];
  total->nan_count -= last != last ? repeats : 0;
  total->inf_count -= last_is_inf ? repeats : 0;
  for (size_t l = 0; l < kStep; ++l) {
    total->nan_count += static_cast<uint64_t>(nans[l]);
    total->inf_count += static_cast<uint64_t>(infs[l]);
    total->finite_max = Larger(static_cast<double>(hi[l]), total->finite_max);
    total->finite_min = Smaller(static_cast<double>(lo[l]), total->finite_min);
  }
}

// The loops compare -0 equal to +0, so the sign of an extreme that is zero depends on their order.
// This makes it +0 for a maximum when any +0 is there, -0 for a minimum when any -0 is.
template <class T>
static void SettleZeroSigns(const void* in, size_t count, double* max,
                            double* min) {
  typedef typename VectorOf<T>::Int Int;
  Int positive = 0, negative = 0;
  for (size_t i = 0; i < count; ++i) {
    const Int bits = Load<Int>(in, i);
    positive |= bits == 0 ? 1 : 0;
    negative |= Load<T>(in, i) == 0 && bits != 0 ? 1 : 0;
  }
  if (*max == 0) *max = positive != 0 ? 0.0 : -0.0;
  if (*min == 0) *min = negative != 0 ? -0.0 : 0.0;
}

// True when `candidate` replaces `max`, with +0 above -0.
static inline bool Above(double candidate, double max) {
  return candidate > max || (candidate == 0 && max == 0 && __builtin_signbit(max));
}

// Extremes, NaN left out, and the number of zeros of a slice.
template <class T>
struct SliceExtremes {
  T hi, lo;
  uint64_t zeros;
};

template <class T>
static void MergeSlice(const void* in, size_t count, const SliceExtremes<T>& slice,
                       MomentsState* state) {
  Moments* total = &state->total;
  double max = static_cast<double>(slice.hi);
  double min = static_cast<double>(slice.lo);
  if (slice.zeros != 0 && (max == 0 || min == 0)) SettleZeroSigns<T>(in, count, &max, &min);
  total->count += count;
  total->zero_count += slice.zeros;
  if (Above(max, total->max)) total->max = max;
  if (Above(-min, -total->min)) total->min = min;
  // Infinite or NaN sums stay so until the end of the block: the slices that follow are visited
  // twice as well. float64 sums can also overflow on finite elements.
  if (__builtin_isfinite(SumLanes(state->squares))) {
    if (Above(max, total->finite_max)) total->finite_max = max;
    if (Above(-min, -total->finite_min)) total->finite_min = min;
  } else {
    CountNonFinite<T>(in, count, total);
  }
}

// Accumulators of one slice.
template <class T>
struct MomentsVectors {
  typedef typename VectorOf<T>::Type Vector;
  typedef typename VectorOf<T>::Counter Counter;
  static constexpr size_t kVectors = VectorOf<T>::kVectors;
  VD sum[kWide], squares[kWide];
  Vector hi[kVectors], lo[kVectors];
  Counter zeros[kVectors];
};

// The whole groups of kLanes elements; `count` is a multiple of kLanes.
template <class T>
static inline void ReduceGroups(const char* in, size_t count, MomentsVectors<T>* out) {
  typedef MomentsVectors<T> M;
  constexpr size_t kPerVector = PL_WIDTH / sizeof(T);
  M m = *out;
  const typename M::Vector zero = {};
  for (size_t i = 0; i < count; i += kLanes, in += kLanes * sizeof(T)) {
    Prefetch(in);
    if constexpr (sizeof(T) == 8) Prefetch(in + 64);
    PL_UNROLL
    for (size_t v = 0; v < kWide; ++v) {
      const VD wide = LoadWide(reinterpret_cast<const T*>(in) + v * kDoublesPerVector);
      m.sum[v] += wide;
      m.squares[v] = AddProduct<sizeof(T) == 4>(m.squares[v], wide, wide);
    }
    PL_UNROLL
    for (size_t v = 0; v < M::kVectors; ++v) {
      const typename M::Vector x = LoadVector<T>(in + v * kPerVector * sizeof(T));
      m.hi[v] = Max(x, m.hi[v]);
      m.lo[v] = Min(x, m.lo[v]);
      m.zeros[v] = Count(m.zeros[v], Equal(x, zero));
    }
  }
  *out = m;
}

template <class T>
static SliceExtremes<T> ReduceWholeGroups(const char* in, size_t count, MomentsState* state) {
  typedef MomentsVectors<T> M;
  constexpr T kInf = static_cast<T>(__builtin_inf());
  M m = {};
  for (size_t v = 0; v < M::kVectors; ++v) {
    m.hi[v] -= kInf;
    m.lo[v] += kInf;
  }
  __builtin_memcpy(m.sum, state->sum, sizeof(m.sum));
  __builtin_memcpy(m.squares, state->squares, sizeof(m.squares));
  ReduceGroups<T>(in, count, &m);
  __builtin_memcpy(state->sum, m.sum, sizeof(m.sum));
  __builtin_memcpy(state->squares, m.squares, sizeof(m.squares));
  T hi[kLanes], lo[kLanes];
  typename VectorOf<T>::Int zeros[kLanes];
  __builtin_memcpy(hi, m.hi, sizeof(hi));
  __builtin_memcpy(lo, m.lo, sizeof(lo));
  __builtin_memcpy(zeros, m.zeros, sizeof(zeros));
  for (size_t width = kLanes / 2; width != 0; width /= 2) {
    for (size_t l = 0; l < width; ++l) {
      hi[l] = Larger(hi[l + width], hi[l]);
      lo[l] = Smaller(lo[l + width], lo[l]);
      zeros[l] += zeros[l + width];
    }
  }
  return {hi[0], lo[0], static_cast<uint64_t>(zeros[0])};
}

template <class T>
static void ReduceFloats(const void* data, size_t count, MomentsState* state) {
  constexpr T kInf = static_cast<T>(__builtin_inf());
  const char* in = static_cast<const char*>(data);
  const size_t whole = count / kLanes * kLanes;
  SliceExtremes<T> all = {-kInf, kInf, 0};
  if (whole != 0) all = ReduceWholeGroups<T>(in, whole, state);
  for (size_t i = whole; i < count; ++i) {
    const T x = Load<T>(in, i);
    const double wide = static_cast<double>(x);
    state->sum[i - whole] += wide;
    state->squares[i - whole] += wide * wide;
    all.hi = Larger(x, all.hi);
    all.lo = Smaller(x, all.lo);
    all.zeros += x == 0 ? 1 : 0;
  }
  MergeSlice<T>(in, count, all, state);
}

// float32 and float64, in place.
template <class T>
static void MomentsOfFloats(const void* data, size_t count, MomentsState* state) {
  const char* in = static_cast<const char*>(data);
  for (size_t i = 0; i < count; i += kSlice) {
    ReduceFloats<T>(in + i * sizeof(T), count - i < kSlice ? count - i : kSlice, state);
  }
}

// Types that are exact in float32, through a buffer.
static void MomentsOfNarrow(DType dtype, size_t element_bytes, const void* data, size_t count,
                            MomentsState* state) {
  alignas(64) float buffer[kSlice];
  const char* in = static_cast<const char*>(data);
  for (size_t i = 0; i < count; i += kSlice) {
    const size_t n = count - i < kSlice ? count - i : kSlice;
    WidenToFloat(dtype, in + i * element_bytes, n, buffer);
    ReduceFloats<float>(buffer, n, state);
  }
}

#if PL_WIDTH == 64
#include "kernels/short_float_moments.inl"
#endif
#include "kernels/integer_moments.inl"

// Complex types, by modulus.
template <class Part>
static void MomentsOfComplex(const void* data, size_t count, MomentsState* state) {
  constexpr size_t kPart = kSlice / 2;
  alignas(64) double buffer[kPart];
  const char* in = static_cast<const char*>(data);
  for (size_t i = 0; i < count; i += kPart) {
    const size_t n = count - i < kPart ? count - i : kPart;
    WidenComplex<Part>(in + i * 2 * sizeof(Part), n, buffer);
    ReduceFloats<double>(buffer, n, state);
  }
}

static void MomentsPart(DType dtype, const void* data, size_t count, MomentsState* state) {
  if (count == 0) return;
  switch (dtype) {
    case DType::kBool:
      return MomentsOfBool(data, count, state);
    case DType::kUInt8:
      return MomentsOfSmallIntegers<uint8_t>(data, count, state);
    case DType::kUInt16:
      return MomentsOfSmallIntegers<uint16_t>(data, count, state);
    case DType::kInt8:
      return MomentsOfSmallIntegers<int8_t>(data, count, state);
    case DType::kInt16:
      return MomentsOfSmallIntegers<int16_t>(data, count, state);
    case DType::kUInt32:
      return MomentsOfInts<uint32_t>(data, count, state);
    case DType::kInt32:
      return MomentsOfInts<int32_t>(data, count, state);
    case DType::kUInt64:
      return MomentsOfLongs<uint64_t>(data, count, state);
    case DType::kInt64:
      return MomentsOfLongs<int64_t>(data, count, state);
    case DType::kFloat32:
      return MomentsOfFloats<float>(data, count, state);
    case DType::kFloat64:
      return MomentsOfFloats<double>(data, count, state);
    case DType::kComplex64:
      return MomentsOfComplex<float>(data, count, state);
    case DType::kComplex128:
      return MomentsOfComplex<double>(data, count, state);
#if PL_WIDTH == 64
    case DType::kFloat16:
      return MomentsOfShortFloats<DecodeFloat16, 0x7C00>(dtype, data, count, state);
    case DType::kBFloat16:
      return MomentsOfShortFloats<DecodeBFloat16, 0x7F80>(dtype, data, count, state);
#else
    case DType::kFloat16:
    case DType::kBFloat16:
      return MomentsOfNarrow(dtype, 2, data, count, state);
#endif
    case DType::kFloat8E4M3FN:
    case DType::kFloat8E5M2:
    case DType::kFloat8E4M3FNUZ:
    case DType::kFloat8E5M2FNUZ:
      return MomentsOfNarrow(dtype, 1, data, count, state);
  }
}

// ---- Elements whose magnitude is below a bound, for a recorder's count of "zeros"

template <class T>
static uint64_t FloatsBelow(const void* data, size_t count, T bound) {
  typedef typename VectorOf<T>::Type Vector;
  constexpr size_t kStep = PL_WIDTH / sizeof(T);
  const char* in = static_cast<const char*>(data);
  const Vector limit = Vector{} + bound;
  uint64_t below = 0;
  size_t done = 0;
  while (count - done >= kStep) {  // in parts that the counters hold
    typename VectorOf<T>::Counter found = {};
    const size_t rest = (count - done) / kStep;
    const size_t steps = rest < kSlice ? rest : kSlice;
    for (size_t i = 0; i < steps; ++i) {
      found = Count(found, Less(Abs(LoadVector<T>(in + (done + i * kStep) * sizeof(T))), limit));
    }
    done += steps * kStep;
    for (size_t l = 0; l < kStep; ++l) below += static_cast<uint64_t>(found[l]);
  }
  for (; done < count; ++done) {
    const T x = Load<T>(data, done);
    below += x < bound && x > -bound ? 1 : 0;
  }
  return below;
}

template <class T>
static uint64_t IntegersBelow(const void* data, size_t count, double bound) {
  uint64_t below = 0;
  for (size_t i = 0; i < count; ++i) {
    const double x = static_cast<double>(Load<T>(data, i));
    below += x < bound && x > -bound ? 1 : 0;
  }
  return below;
}

template <class Part>
static uint64_t ComplexBelow(const void* data, size_t count, double bound) {
  constexpr size_t kPart = kSlice / 2;
  alignas(64) double buffer[kPart];
  const char* in = static_cast<const char*>(data);
  uint64_t below = 0;
  for (size_t i = 0; i < count; i += kPart) {
    const size_t n = count - i < kPart ? count - i : kPart;
    WidenComplex<Part>(in + i * 2 * sizeof(Part), n, buffer);
    below += FloatsBelow<double>(buffer, n, bound);
  }
  return below;
}

static uint64_t NarrowBelow(DType dtype, size_t element_bytes, const void* data, size_t count,
                            float bound) {
  alignas(64) float buffer[kSlice];
  const char* in = static_cast<const char*>(data);
  uint64_t below = 0;
  for (size_t i = 0; i < count; i += kSlice) {
    const size_t n = count - i < kSlice ? count - i : kSlice;
    WidenToFloat(dtype, in + i * element_bytes, n, buffer);
    below += FloatsBelow<float>(buffer, n, bound);
  }
  return below;
}

static uint64_t CountBelow(DType dtype, const void* data, size_t count, double bound) {
  const float single = static_cast<float>(bound);
  switch (dtype) {
    case DType::kBool: {  // 0 or 1, whatever the byte
      const uint64_t zeros = IntegersBelow<uint8_t>(data, count, 0.5);
      return bound > 1 ? count : bound > 0 ? zeros : 0;
    }
    case DType::kUInt8:
      return IntegersBelow<uint8_t>(data, count, bound);
    case DType::kUInt16:
      return IntegersBelow<uint16_t>(data, count, bound);
    case DType::kUInt32:
      return IntegersBelow<uint32_t>(data, count, bound);
    case DType::kUInt64:
      return IntegersBelow<uint64_t>(data, count, bound);
    case DType::kInt8:
      return IntegersBelow<int8_t>(data, count, bound);
    case DType::kInt16:
      return IntegersBelow<int16_t>(data, count, bound);
    case DType::kInt32:
      return IntegersBelow<int32_t>(data, count, bound);
    case DType::kInt64:
      return IntegersBelow<int64_t>(data, count, bound);
    case DType::kFloat32:
      return FloatsBelow<float>(data, count, single);
    case DType::kFloat64:
      return FloatsBelow<double>(data, count, bound);
    case DType::kComplex64:
      return ComplexBelow<float>(data, count, bound);
    case DType::kComplex128:
      return ComplexBelow<double>(data, count, bound);
    case DType::kFloat16:
    case DType::kBFloat16:
      return NarrowBelow(dtype, 2, data, count, single);
    case DType::kFloat8E4M3FN:
    case DType::kFloat8E5M2:
    case DType::kFloat8E4M3FNUZ:
    case DType::kFloat8E5M2FNUZ:
      return NarrowBelow(dtype, 1, data, count, single);
  }
  return 0;
}

// What the elements of a gradient are compared with: bounds, and zero for their signs.

template <class T>
static uint64_t CountAbove(const char* in, size_t count, T bound) {
  typedef typename VectorOf<T>::Type Vector;
  constexpr size_t kStep = PL_WIDTH / sizeof(T);
  const Vector limit = Vector{} + bound;
  typename VectorOf<T>::Counter above = {};
  size_t i = 0;
  for (; i + kStep <= count; i += kStep) {
    above = Count(above, Less(limit, LoadVector<T>(in + i * sizeof(T))));
  }
  uint64_t sum = 0;
  for (size_t l = 0; l < kStep; ++l) sum += static_cast<uint64_t>(above[l]);
  for (; i < count; ++i) sum += Load<T>(in, i) > bound ? 1 : 0;
  return sum;
}

// One bit per element, the first one lowest: whether it is greater than 0.
template <class T>
static void PackSigns(const char* in, size_t count, uint8_t* signs) {
  constexpr size_t kStep = PL_WIDTH / sizeof(T);
  const typename VectorOf<T>::Type zero = {};
  size_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    uint32_t bits = 0;
    for (size_t v = 0; v < VectorOf<T>::kVectors; ++v) {
      const auto x = LoadVector<T>(in + (i + v * kStep) * sizeof(T));
      bits |= BitsOf(Less(zero, x)) << (v * kStep);
    }
    *signs++ = static_cast<uint8_t>(bits);
    *signs++ = static_cast<uint8_t>(bits >> 8);
  }
  uint32_t rest = 0;
  for (size_t k = i; k < count; ++k) rest |= (Load<T>(in, k) > 0 ? 1u : 0u) << (k - i);
  for (; i < count; i += 8, rest >>= 8) *signs++ = static_cast<uint8_t>(rest);
}

template <class T>
static void GradientSlice(const char* in, size_t count, const GradientRule& rule, uint64_t* above,
                          uint8_t* signs) {
  for (size_t b = 0; b < rule.bound_count; ++b) {
    above[b] += CountAbove<T>(in, count, static_cast<T>(rule.bounds[b]));
  }
  if (signs != nullptr) PackSigns<T>(in, count, signs);
}

template <class T, void (*kWiden)(DType, const void*, size_t, T*)>
static void GradientOf(const GradientRun& run, const GradientRule& rule, uint64_t* above,
                       uint8_t* signs) {
  alignas(64) T buffer[kSlice];
  const bool in_place = run.dtype == DType::kFloat32 || run.dtype == DType::kFloat64;
  const size_t element_bytes = ElementBytes(run.dtype);
  for (size_t i = 0; i < run.count; i += kSlice) {
    const size_t n = run.count - i < kSlice ? run.count - i : kSlice;
    const char* in = static_cast<const char*>(run.data) + i * element_bytes;
    if (!in_place) {
      kWiden(run.dtype, in, n, buffer);
      in = reinterpret_cast<const char*>(buffer);
    }
    GradientSlice<T>(in, n, rule, above, signs == nullptr ? nullptr : signs + i / 8);
  }
}

static void GradientPart(const GradientRun& run, const GradientRule& rule, uint64_t* above,
                         uint8_t* signs) {
  if (FitsFloat(run.dtype)) return GradientOf<float, WidenToFloat>(run, rule, above, signs);
  GradientOf<double, WidenToWide<double>>(run, rule, above, signs);
}
