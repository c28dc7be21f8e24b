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

// What the groups and the rest of a slice share: the extremes and the number of zeros.
template <class T>
struct SliceExtremes {
  T hi, lo;
  uint64_t zeros;
};

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
  MergeSlice<T>(in, count, all.hi, all.lo, all.zeros, state);
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
// Both sums come from 16-bit multiply-and-add; unsigned 16-bit values are shifted down by 2^15 for
// it, which the caller undoes.
static inline void AddShorts(VShort x, VI* sum, VL* squares) {
  *sum += PairProducts(x, x * 0 + 1);
  const VI products = PairProducts(x, x);  // up to 2^31: to be read as unsigned
  *squares += (VL)products & 0xFFFFFFFF;
  *squares += (VL)((VUnsignedLong)products >> 32);
}

// The same for 8-bit values: even and odd bytes as 16-bit values.
template <class T>
static inline void AddBytes(VShort bytes, VI* sum, VI* squares) {
  VShort even, odd;
  if constexpr (static_cast<T>(-1) < 0) {
    even = (bytes << 8) >> 8;
    odd = bytes >> 8;
  } else {
    even = bytes & 0xFF;
    odd = (bytes >> 8) & 0xFF;
  }
  *sum += PairProducts(even + odd, bytes * 0 + 1);
  // At most 4 * 255^2 each: 32-bit sums hold until the caller's flush.
  *squares += PairProducts(even, even) + PairProducts(odd, odd);
}

template <class T>
static void MomentsOfSmallIntegers(const void* data, size_t count, MomentsState* state) {
  typedef T Vector __attribute__((vector_size(PL_WIDTH)));
  constexpr size_t kStep = PL_WIDTH / sizeof(T);
  constexpr bool kShift = sizeof(T) == 2 && static_cast<T>(-1) > 0;
  // Counters of the width of an element: flushed before they can wrap.
  constexpr size_t kPart = 127 * kStep;
  const char* in = static_cast<const char*>(data);
  const size_t whole = count / kStep * kStep;
  T hi = Load<T>(in, 0), lo = hi;
  int64_t sum = 0;
  uint64_t squares = 0, zeros = 0;
  for (size_t i = 0; i < whole; i += kPart) {
    const size_t end = whole - i < kPart ? whole : i + kPart;
    Vector highest = LoadVectorOf<Vector>(in + i * sizeof(T)), lowest = highest, zero = {};
    VI sums = {}, byte_squares = {};
    VL square_sums = {};
    for (size_t k = i; k < end; k += kStep) {
      const char* at = in + k * sizeof(T);
      const Vector x = LoadVectorOf<Vector>(at);
      Prefetch(at);
      highest = x > highest ? x : highest;
      lowest = x < lowest ? x : lowest;
      zero -= (Vector)(x == 0);
      if constexpr (sizeof(T) == 2) {
        AddShorts(kShift ? (VShort)(x ^ static_cast<T>(0x8000)) : (VShort)x, &sums, &square_sums);
      } else {
        AddBytes<T>((VShort)x, &sums, &byte_squares);
      }
    }
    for (size_t l = 0; l < kStep; ++l) {
      hi = Larger(static_cast<T>(highest[l]), hi);
      lo = Smaller(static_cast<T>(lowest[l]), lo);
      zeros += static_cast<uint64_t>(zero[l]);
    }
    for (size_t l = 0; l < PL_WIDTH / sizeof(int32_t); ++l) {
      sum += sums[l];
      squares += static_cast<uint64_t>(byte_squares[l]);
    }
    for (size_t l = 0; l < PL_WIDTH / sizeof(int64_t); ++l) {
      squares += static_cast<uint64_t>(square_sums[l]);
    }
  }
  if constexpr (kShift) {
    // From y = x - 2^15: x^2 = y^2 + 2^16 y + 2^30.
    squares += static_cast<uint64_t>((sum << 16) + (static_cast<int64_t>(whole) << 30));
    sum += static_cast<int64_t>(whole) << 15;
  }
  for (size_t i = whole; i < count; ++i) {
    const T x = Load<T>(in, i);
    const int64_t wide = x;
    sum += wide;
    squares += static_cast<uint64_t>(wide * wide);
    zeros += x == 0 ? 1u : 0u;
    hi = Larger(x, hi);
    lo = Smaller(x, lo);
  }
  state->exact_sum += sum;
  state->exact_squares += squares;
  MergeIntegers(count, zeros, hi, lo, &state->total);
}

static void MomentsOfBool(const void* data, size_t count, MomentsState* state) {
  typedef uint8_t Vector __attribute__((vector_size(PL_WIDTH)));
  constexpr size_t kPart = 255 * PL_WIDTH;  // 8-bit counters hold that long
  const char* in = static_cast<const char*>(data);
  const size_t whole = count / PL_WIDTH * PL_WIDTH;
  uint64_t zeros = 0;
  for (size_t i = 0; i < whole; i += kPart) {
    const size_t end = whole - i < kPart ? whole : i + kPart;
    Vector zero = {};
    for (size_t k = i; k < end; k += PL_WIDTH) {
      Prefetch(in + k);
      zero -= (Vector)(LoadVectorOf<Vector>(in + k) == 0);
    }
    for (size_t l = 0; l < PL_WIDTH; ++l) zeros += zero[l];
  }
  for (size_t i = whole; i < count; ++i) zeros += in[i] == 0 ? 1u : 0u;
  const uint64_t ones = count - zeros;
  state->exact_sum += static_cast<int64_t>(ones);
  state->exact_squares += ones;
  MergeIntegers<uint64_t>(count, zeros, ones != 0 ? 1 : 0, zeros != 0 ? 0 : 1, &state->total);
}

// Integers of 32 bits: the sum of a block is exact in double lanes, squares are rounded there.
template <class T>
static void MomentsOfInts(const void* data, size_t count, MomentsState* state) {
  typedef T Vector __attribute__((vector_size(PL_WIDTH)));
  constexpr size_t kPerVector = PL_WIDTH / sizeof(T);
  const char* in = static_cast<const char*>(data);
  VD sum[kWide] = {}, squares[kWide];
  Vector highest[kSingle], lowest[kSingle], zero[kSingle];
  for (size_t v = 0; v < kSingle; ++v) {
    zero[v] = Vector{};
    highest[v] = lowest[v] = Vector{} + Load<T>(in, 0);
  }
  __builtin_memcpy(squares, state->squares, sizeof(squares));
  const size_t whole = count / kLanes * kLanes;
  for (size_t i = 0; i < whole; i += kLanes) {
    const char* at = in + i * sizeof(T);
    Prefetch(at);
    PL_UNROLL
    for (size_t v = 0; v < kWide; ++v) {
      const VD wide = LoadWide(reinterpret_cast<const T*>(at) + v * kDoublesPerVector);
      sum[v] += wide;
      squares[v] += wide * wide;
    }
    PL_UNROLL
    for (size_t v = 0; v < kSingle; ++v) {
      const Vector x = LoadVectorOf<Vector>(at + v * kPerVector * sizeof(T));
      highest[v] = x > highest[v] ? x : highest[v];
      lowest[v] = x < lowest[v] ? x : lowest[v];
      zero[v] -= (Vector)(x == 0);
    }
  }
  __builtin_memcpy(state->squares, squares, sizeof(squares));
  T hi = Load<T>(in, 0), lo = hi;
  uint64_t zeros = 0;
  for (size_t v = 0; v < kSingle; ++v) {
    for (size_t l = 0; l < kPerVector; ++l) {
      hi = Larger(static_cast<T>(highest[v][l]), hi);
      lo = Smaller(static_cast<T>(lowest[v][l]), lo);
      zeros += static_cast<uint32_t>(zero[v][l]);
    }
  }
  double lanes[kLanes];
  __builtin_memcpy(lanes, sum, sizeof(lanes));
  int64_t exact = static_cast<int64_t>(SumLanes(lanes));
  for (size_t i = whole; i < count; ++i) {
    const T x = Load<T>(in, i);
    const double wide = static_cast<double>(x);
    exact += x;
    state->squares[i - whole] += wide * wide;
    hi = Larger(x, hi);
    lo = Smaller(x, lo);
    zeros += x == 0 ? 1u : 0u;
  }
  state->exact_sum += exact;
  MergeIntegers(count, zeros, hi, lo, &state->total);
}

// Integers of 64 bits: both sums in double lanes.
template <class T>
static void MomentsOfLongs(const void* data, size_t count, MomentsState* state) {
  const char* in = static_cast<const char*>(data);
  double sum[kLanes], squares[kLanes];
  T hi[kLanes], lo[kLanes];
  uint64_t zeros[kLanes] = {};
  for (size_t l = 0; l < kLanes; ++l) {
    sum[l] = state->sum[l];
    squares[l] = state->squares[l];
    hi[l] = lo[l] = Load<T>(in, 0);
  }
  const auto add = [&](size_t i, size_t l) __attribute__((always_inline)) {
    const T x = Load<T>(in, i);
    const double wide = static_cast<double>(x);
    sum[l] += wide;
    squares[l] += wide * wide;
    hi[l] = Larger(x, hi[l]);
    lo[l] = Smaller(x, lo[l]);
    zeros[l] += x == 0 ? 1u : 0u;
  };
  size_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    Prefetch(in + i * sizeof(T));
    Prefetch(in + i * sizeof(T) + 64);
    for (size_t l = 0; l < kLanes; ++l) add(i + l, l);
  }
  for (size_t l = 0; i < count; ++i, ++l) add(i, l);
  for (size_t l = 0; l < kLanes; ++l) {
    state->sum[l] = sum[l];
    state->squares[l] = squares[l];
    hi[0] = Larger(hi[l], hi[0]);
    lo[0] = Smaller(lo[l], lo[0]);
    zeros[0] += l == 0 ? 0 : zeros[l];
  }
  MergeIntegers(count, zeros[0], hi[0], lo[0], &state->total);
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
