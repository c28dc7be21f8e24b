// Distances in representable values, compiled once per CPU target. Included from pairwise.inl.

// Sign-magnitude bits of the width of Int as a number that counts representable values, both zeros
// as 0. Value is int64_t or a vector of Int.
template <class Int, class Value>
static inline Value Ordinal(Value bits) {
  constexpr int kShift = 8 * static_cast<int>(sizeof(Int)) - 1;
  constexpr Int kMagnitude =
      static_cast<Int>(~static_cast<uint64_t>(0) >> (65 - 8 * static_cast<int>(sizeof(Int))));
  const Value sign = bits >> kShift;
  return ((bits & kMagnitude) ^ sign) - sign;
}

// Largest distance in representable values between two runs of one format.
template <class Int, class Unsigned>
static uint64_t MaxUlp(const void* t, const void* g, size_t count) {
  typedef Int Vector __attribute__((vector_size(PL_WIDTH)));
  typedef Unsigned UnsignedVector __attribute__((vector_size(PL_WIDTH)));
  constexpr size_t kStep = PL_WIDTH / sizeof(Int);
  UnsignedVector best = {};
  size_t i = 0;
  for (; i + kStep <= count; i += kStep) {
    Vector a, b;
    __builtin_memcpy(&a, static_cast<const char*>(t) + i * sizeof(Int), sizeof(a));
    __builtin_memcpy(&b, static_cast<const char*>(g) + i * sizeof(Int), sizeof(b));
    a = Ordinal<Int, Vector>(a);
    b = Ordinal<Int, Vector>(b);
    const Vector high = a > b ? a : b;
    const Vector low = a > b ? b : a;
    const UnsignedVector distance = (UnsignedVector)high - (UnsignedVector)low;
    best = distance > best ? distance : best;
  }
  Unsigned largest = 0;
  for (size_t l = 0; l < kStep; ++l) largest = best[l] > largest ? best[l] : largest;
  for (; i < count; ++i) {
    const int64_t a = Ordinal<Int, int64_t>(Load<Int>(t, i));
    const int64_t b = Ordinal<Int, int64_t>(Load<Int>(g, i));
    const uint64_t distance = a > b ? static_cast<uint64_t>(a) - static_cast<uint64_t>(b)
                                    : static_cast<uint64_t>(b) - static_cast<uint64_t>(a);
    if (distance > largest) largest = static_cast<Unsigned>(distance);
  }
  return largest;
}

// Where the raw elements of the slice in work are, for ULP distances and messages.
struct RawPair {
  DType target_dtype;
  const char* target;
  DType golden_dtype;
  const char* golden;
};

// One slice: `t` and `g` hold `count` elements of both sides in the type they are compared in.
template <class T>
struct PairSlice {
  RawPair raw;
  const T* t;
  const T* g;
  size_t count;
};

// `t` and `g` are the widened slice; equal to the raw elements for float32 and float64.
template <class T>
static uint64_t SliceUlp(const RawPair& raw, const T* t, const T* g, size_t count) {
  if constexpr (kIsFloat<T>) {
    const bool same = raw.target_dtype == raw.golden_dtype;
    const size_t golden_bytes = ElementBytes(raw.golden_dtype);
    if (IsInteger(raw.golden_dtype)) return 0;
    if (golden_bytes == sizeof(T)) {
      typedef typename VectorOf<T>::Int Int;
      return MaxUlp<Int, typename VectorOf<T>::Unsigned>(t, g, count);
    }
    if (same && golden_bytes == 2) return MaxUlp<int16_t, uint16_t>(raw.target, raw.golden, count);
    if (same && golden_bytes == 1) return MaxUlp<int8_t, uint8_t>(raw.target, raw.golden, count);
    return MaxUlpRounded(raw.golden_dtype, t, raw.golden, count);
  }
  return 0;
}
