// Moments of bool and integers, compiled once per CPU target. Included from moments.inl.

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

template <class Vector>
static inline int64_t SumVector(Vector v) {
  int64_t sum = 0;
  for (size_t l = 0; l < sizeof(v) / sizeof(v[0]); ++l) sum += v[l];
  return sum;
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
    sum += SumVector(sums);
    squares += static_cast<uint64_t>(SumVector(byte_squares) + SumVector(square_sums));
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
