// The vector loops over pairs of floats, compiled once per CPU target. Included from pairwise.inl.

// What one slice of floats adds, in vectors. Sums are those of the block.
template <class T>
struct PairVectors {  // starts with the lanes of PairLanes
  typedef typename VectorOf<T>::Type Vector;
  typedef typename VectorOf<T>::Counter Counter;
  static constexpr size_t kVectors = VectorOf<T>::kVectors;
  VD dot[kWide], target[kWide], golden[kWide], difference[kWide];
  VD largest[kWide];
  VL below_1e3[kWide], below_5e3[kWide];
  TruthD above[kWide];
  Vector target_max[kVectors], golden_max[kVectors];
  Counter mismatch[kVectors], zero[kVectors], zero_mismatch[kVectors];
};

// Two equal slices: everything that is not known already. With `one_sum` only the sum `target`.
template <class T, bool one_sum>
static inline void ReduceEqual(const T* x, size_t count, PairVectors<T>* out) {
  typedef PairVectors<T> M;
  constexpr size_t kPerVector = PL_WIDTH / sizeof(T);
  M m = *out;
  const typename M::Vector zero = {};
  for (size_t i = 0; i < count; i += kLanes) {
    PL_UNROLL
    for (size_t v = 0; v < kWide; ++v) {
      const VD wide = LoadWide(x + i + v * kDoublesPerVector);
      m.target[v] = AddProduct<sizeof(T) == 4>(m.target[v], wide, wide);
      if constexpr (!one_sum) {
        m.dot[v] = AddProduct<sizeof(T) == 4>(m.dot[v], wide, wide);
        m.golden[v] = AddProduct<sizeof(T) == 4>(m.golden[v], wide, wide);
      }
    }
    PL_UNROLL
    for (size_t v = 0; v < M::kVectors; ++v) {
      const typename M::Vector part = LoadVector<T>(x + i + v * kPerVector);
      m.target_max[v] = Max(Abs(part), m.target_max[v]);
      m.zero[v] = Count(m.zero[v], Equal(part, zero));
    }
  }
  *out = m;
}

// A test for quotients that, rounded, exceed `max_rel`. It may say yes too often, never too seldom.
struct QuotientLimit {
  double max_rel;
  double slack;  // a little less than half the spacing above max_rel
  double bound;  // a little less than max_rel
};

static inline QuotientLimit LimitOf(double max_rel) {
  const int64_t next = __builtin_bit_cast(int64_t, max_rel) + 1;
  const double spacing = __builtin_bit_cast(double, next) - max_rel;
  const double slack = max_rel == 0 ? 0 : 0.5 * spacing * (1 - 0x1p-40);
  return {max_rel, slack, max_rel * (1 - 0x1p-50)};
}

// In types of few digits the largest quotient comes again and again. Fused multiply-add tells equal
// from larger; without it equal ones pass.
static inline TruthD MayExceed(VD distance, VD reference, const QuotientLimit& limit) {
#if PL_WIDTH == 16
  return Less(limit.bound * reference, distance);
#else
  const VD rest = AddProduct<true>(distance, VD{} - limit.max_rel, reference);
  // Near the denormals the rest may be rounded away.
  return Either(Less(limit.slack * reference, rest), Less(reference, VD{} + 0x1p-900));
#endif
}

// The sums, the largest distance, and where relative errors lie.
template <class T>
static inline void ReduceDistances(const T* t, const T* g, size_t count,
                                   const QuotientLimit& limit, PairVectors<T>* out) {
  PairVectors<T> m = *out;
  const VD zero = {};
  const VD zero_reference = zero + kZeroReference;
  for (size_t i = 0; i < count; i += kLanes) {
    PL_UNROLL
    for (size_t v = 0; v < kWide; ++v) {
      const VD x = LoadWide(t + i + v * kDoublesPerVector);
      const VD y = LoadWide(g + i + v * kDoublesPerVector);
      const VD distance = Abs(x - y);
      m.dot[v] = AddProduct<sizeof(T) == 4>(m.dot[v], x, y);
      m.target[v] = AddProduct<sizeof(T) == 4>(m.target[v], x, x);
      m.golden[v] = AddProduct<sizeof(T) == 4>(m.golden[v], y, y);
      m.difference[v] = AddProduct<false>(m.difference[v], distance, distance);
      m.largest[v] = Max(distance, m.largest[v]);
      const VD reference = Select(Equal(y, zero), zero_reference, Abs(y));
      m.below_1e3[v] = Count(m.below_1e3[v], Less(distance, 0.001 * reference));
      m.below_5e3[v] = Count(m.below_5e3[v], Less(distance, 0.005 * reference));
      m.above[v] = Either(m.above[v], MayExceed(distance, reference, limit));
    }
  }
  *out = m;
}

// Magnitudes, mismatches and zeros.
template <class T>
static inline void ReduceClasses(const T* t, const T* g, size_t count, PairVectors<T>* out) {
  typedef PairVectors<T> M;
  constexpr size_t kPerVector = PL_WIDTH / sizeof(T);
  M m = *out;
  const typename M::Vector zero = {};
  for (size_t i = 0; i < count; i += kLanes) {
    Prefetch(t + i);
    Prefetch(g + i);
    PL_UNROLL
    for (size_t v = 0; v < M::kVectors; ++v) {
      const typename M::Vector x = LoadVector<T>(t + i + v * kPerVector);
      const typename M::Vector y = LoadVector<T>(g + i + v * kPerVector);
      const auto differ = Differ(x, y);
      const auto is_zero = Equal(y, zero);
      m.target_max[v] = Max(Abs(x), m.target_max[v]);
      m.golden_max[v] = Max(Abs(y), m.golden_max[v]);
      m.mismatch[v] = Count(m.mismatch[v], differ);
      m.zero[v] = Count(m.zero[v], is_zero);
      m.zero_mismatch[v] = Count(m.zero_mismatch[v], Both(differ, is_zero));
    }
  }
  *out = m;
}
