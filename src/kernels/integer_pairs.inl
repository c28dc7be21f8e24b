// 64-bit integers against floats, or against integers of the other signedness, compiled once per
// CPU target. Included from pairwise.inl. Both are compared as doubles, which may be equal for
// unequal numbers beyond 2^53: the difference of such is then taken from the bits.

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
