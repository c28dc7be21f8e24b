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
static void CountNonFinite(const void* in, size_t count, Moments* total) {
  typedef typename VectorOf<T>::Int Int;
  constexpr T kInf = static_cast<T>(__builtin_inf());
  Int nans = 0, infs = 0;
  T finite_max = -kInf, finite_min = kInf;
  for (size_t i = 0; i < count; ++i) {
    const T x = Load<T>(in, i);
    const T magnitude = x < 0 ? -x : x;
    nans += x != x ? 1 : 0;
    infs += magnitude == kInf ? 1 : 0;
    const bool finite = magnitude < kInf;
    finite_max = finite && x > finite_max ? x : finite_max;
    finite_min = finite && x < finite_min ? x : finite_min;
  }
  total->nan_count += static_cast<uint64_t>(nans);
  total->inf_count += static_cast<uint64_t>(infs);
  total->finite_max = Larger(static_cast<double>(finite_max), total->finite_max);
  total->finite_min = Smaller(static_cast<double>(finite_min), total->finite_min);
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

template <class T>
static void MergeSlice(const void* in, size_t count, T hi, T lo,
                       uint64_t zeros, MomentsState* state) {
  Moments* total = &state->total;
  double max = static_cast<double>(hi);
  double min = static_cast<double>(lo);
  if (zeros != 0 && (max == 0 || min == 0)) SettleZeroSigns<T>(in, count, &max, &min);
  total->count += count;
  total->zero_count += zeros;
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
static void ReduceFloats(const void* data, size_t count, MomentsState* state) {
  typedef MomentsVectors<T> M;
  typedef typename VectorOf<T>::Int Int;
  constexpr T kInf = static_cast<T>(__builtin_inf());
  const char* in = static_cast<const char*>(data);
  M m = {};
  for (size_t v = 0; v < M::kVectors; ++v) {
    m.hi[v] -= kInf;
    m.lo[v] += kInf;
  }
  __builtin_memcpy(m.sum, state->sum, sizeof(m.sum));
  __builtin_memcpy(m.squares, state->squares, sizeof(m.squares));
  const size_t whole = count / kLanes * kLanes;
  ReduceGroups<T>(in, whole, &m);
  __builtin_memcpy(state->sum, m.sum, sizeof(m.sum));
  __builtin_memcpy(state->squares, m.squares, sizeof(m.squares));
  T hi[kLanes], lo[kLanes];
  Int zeros[kLanes];
  __builtin_memcpy(hi, m.hi, sizeof(hi));
  __builtin_memcpy(lo, m.lo, sizeof(lo));
  __builtin_memcpy(zeros, m.zeros, sizeof(zeros));
  for (size_t l = 1; l < kLanes; ++l) {
    hi[0] = Larger(hi[l], hi[0]);
    lo[0] = Smaller(lo[l], lo[0]);
    zeros[0] += zeros[l];
  }
  for (size_t i = whole; i < count; ++i) {
    const T x = Load<T>(in, i);
    const double wide = static_cast<double>(x);
    state->sum[i - whole] += wide;
    state->squares[i - whole] += wide * wide;
    hi[0] = Larger(x, hi[0]);
    lo[0] = Smaller(x, lo[0]);
    zeros[0] += x == 0 ? 1 : 0;
  }
  MergeSlice<T>(in, count, hi[0], lo[0], static_cast<uint64_t>(zeros[0]), state);
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

template <class Wide>
static void MergeIntegers(uint64_t count, uint64_t zeros, Wide hi, Wide lo, Moments* total) {
  total->count += count;
  total->zero_count += zeros;
  if constexpr (static_cast<Wide>(-1) < 0) {
    total->int_max = Larger(static_cast<int64_t>(hi), total->int_max);
    total->int_min = Smaller(static_cast<int64_t>(lo), total->int_min);
  } else {
    total->uint_max = Larger(static_cast<uint64_t>(hi), total->uint_max);
    total->uint_min = Smaller(static_cast<uint64_t>(lo), total->uint_min);
  }
  total->max = total->finite_max = Larger(static_cast<double>(hi), total->max);
  total->min = total->finite_min = Smaller(static_cast<double>(lo), total->min);
}

// Integers of 8 and 16 bits: sums of a block are exact integers, so their order does not matter.
template <class T, class Acc>
static void MomentsOfSmallIntegers(const void* data, size_t count, MomentsState* state) {
  const char* in = static_cast<const char*>(data);
  for (size_t i = 0; i < count; i += kSlice) {
    const size_t n = count - i < kSlice ? count - i : kSlice;
    const char* part = in + i * sizeof(T);
    Acc sum = 0;
    uint64_t squares = 0;
    uint32_t zeros = 0;
    T hi = Load<T>(part, 0), lo = hi;
    for (size_t k = 0; k < n; ++k) {
      const T x = Load<T>(part, k);
      const Acc wide = static_cast<Acc>(x);
      sum = static_cast<Acc>(sum + wide);
      squares += static_cast<uint32_t>(wide * wide);
      zeros += x == 0 ? 1u : 0u;
      hi = Larger(x, hi);
      lo = Smaller(x, lo);
    }
    state->exact_sum += sum;
    state->exact_squares += squares;
    MergeIntegers(n, zeros, hi, lo, &state->total);
  }
}

static void MomentsOfBool(const void* data, size_t count, MomentsState* state) {
  const uint8_t* in = static_cast<const uint8_t*>(data);
  for (size_t i = 0; i < count; i += kSlice) {
    const size_t n = count - i < kSlice ? count - i : kSlice;
    uint32_t zeros = 0;
    for (size_t k = 0; k < n; ++k) zeros += in[i + k] == 0 ? 1u : 0u;
    const uint64_t ones = n - zeros;
    state->exact_sum += static_cast<int64_t>(ones);
    state->exact_squares += ones;
    MergeIntegers<uint64_t>(n, zeros, ones != 0 ? 1 : 0, zeros != 0 ? 0 : 1, &state->total);
  }
}

// Integers of 32 and 64 bits: squares, and for 64 bits the sum too, in double lanes.
template <class T>
static void MomentsOfLargeIntegers(const void* data, size_t count, MomentsState* state) {
  const char* in = static_cast<const char*>(data);
  double sum[kLanes], squares[kLanes];
  T hi[kLanes], lo[kLanes];
  uint64_t exact = 0, all_zeros = 0;
  for (size_t l = 0; l < kLanes; ++l) {
    sum[l] = state->sum[l];
    squares[l] = state->squares[l];
    hi[l] = Load<T>(in, 0);
    lo[l] = hi[l];
  }
  for (size_t i = 0; i < count; i += kLanes) {
    const size_t n = count - i < kLanes ? count - i : kLanes;
    if (n == kLanes) {
      for (size_t l = 0; l < kLanes; ++l) {
        const T x = Load<T>(in, i + l);
        const double wide = static_cast<double>(x);
        if constexpr (sizeof(T) == 4) exact += static_cast<uint64_t>(static_cast<int64_t>(x));
        if constexpr (sizeof(T) == 8) sum[l] += wide;
        squares[l] += wide * wide;
        hi[l] = Larger(x, hi[l]);
        lo[l] = Smaller(x, lo[l]);
        all_zeros += x == 0 ? 1u : 0u;
      }
      continue;
    }
    for (size_t l = 0; l < n; ++l) {
      const T x = Load<T>(in, i + l);
      const double wide = static_cast<double>(x);
      if constexpr (sizeof(T) == 4) exact += static_cast<uint64_t>(static_cast<int64_t>(x));
      if constexpr (sizeof(T) == 8) sum[l] += wide;
      squares[l] += wide * wide;
      hi[l] = Larger(x, hi[l]);
      lo[l] = Smaller(x, lo[l]);
      all_zeros += x == 0 ? 1u : 0u;
    }
  }
  for (size_t l = 0; l < kLanes; ++l) {
    state->sum[l] = sum[l];
    state->squares[l] = squares[l];
    hi[0] = Larger(hi[l], hi[0]);
    lo[0] = Smaller(lo[l], lo[0]);
  }
  state->exact_sum += static_cast<int64_t>(exact);
  MergeIntegers(count, all_zeros, hi[0], lo[0], &state->total);
}

static void MomentsPart(DType dtype, const void* data, size_t count, MomentsState* state) {
  if (count == 0) return;
  switch (dtype) {
    case DType::kBool:
      return MomentsOfBool(data, count, state);
    case DType::kUInt8:
      return MomentsOfSmallIntegers<uint8_t, uint32_t>(data, count, state);
    case DType::kUInt16:
      return MomentsOfSmallIntegers<uint16_t, uint32_t>(data, count, state);
    case DType::kInt8:
      return MomentsOfSmallIntegers<int8_t, int32_t>(data, count, state);
    case DType::kInt16:
      return MomentsOfSmallIntegers<int16_t, int32_t>(data, count, state);
    case DType::kUInt32:
      return MomentsOfLargeIntegers<uint32_t>(data, count, state);
    case DType::kInt32:
      return MomentsOfLargeIntegers<int32_t>(data, count, state);
    case DType::kUInt64:
      return MomentsOfLargeIntegers<uint64_t>(data, count, state);
    case DType::kInt64:
      return MomentsOfLargeIntegers<int64_t>(data, count, state);
    case DType::kFloat32:
      return MomentsOfFloats<float>(data, count, state);
    case DType::kFloat64:
      return MomentsOfFloats<double>(data, count, state);
    case DType::kComplex64:
      return MomentsOfComplex<float>(data, count, state);
    case DType::kComplex128:
      return MomentsOfComplex<double>(data, count, state);
    case DType::kFloat16:
    case DType::kBFloat16:
      return MomentsOfNarrow(dtype, 2, data, count, state);
    case DType::kFloat8E4M3FN:
    case DType::kFloat8E5M2:
    case DType::kFloat8E4M3FNUZ:
    case DType::kFloat8E5M2FNUZ:
      return MomentsOfNarrow(dtype, 1, data, count, state);
  }
}
