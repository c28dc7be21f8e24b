// One pass over pairs of floats for AVX-512. Included from pairwise.inl.
//
// Truth values go to memory, one bit per pair: a mask is stored without an instruction of the two
// vector ports, which is what the loop is short of. Relative errors are compared in T, with limits
// so much apart from those of the rule that rounding does not matter; groups of 16 pairs between
// them, or that may raise max_rel, are looked at again in double.

struct PairMasks {
  uint64_t differ[kPairSlice / 64], zero[kPairSlice / 64];
  uint64_t beyond[kPairSlice / 64];  // to be looked at again
  // Surely at or above a limit, and not surely below it; left 0 by the quiet loop.
  uint64_t above_1e3[kPairSlice / 64], above_5e3[kPairSlice / 64];
  uint64_t near_1e3[kPairSlice / 64], near_5e3[kPairSlice / 64];
};

// What the loop leaves out: distances of bits where no ULP distance is wanted or the format is
// another one; exact places of relative errors while nearly all are small.
enum class PairWork { kQuiet, kQuietUlp, kBusy, kBusyUlp };
static constexpr bool IsBusy(PairWork work) { return work >= PairWork::kBusy; }
static constexpr bool WithUlp(PairWork work) {
  return work == PairWork::kQuietUlp || work == PairWork::kBusyUlp;
}

template <class T>
struct OnePassVectors {  // starts with the lanes of PairLanes
  typedef typename VectorOf<T>::Type Vector;
  typedef typename VectorOf<T>::Counter Counter;
  static constexpr size_t kVectors = VectorOf<T>::kVectors;
  VD dot[kWide], target[kWide], golden[kWide], difference[kWide];
  VD largest[kWide];
  Vector target_max[kVectors], golden_max[kVectors];
  Counter ulp[kVectors], signs[kVectors];
};

// The larger magnitude of the two.
static inline VF LargerMagnitude(VF x, VF y) {
  return (VF)_mm512_range_ps((__m512)x, (__m512)y, 0x0B);
}
static inline VD LargerMagnitude(VD x, VD y) {
  return (VD)_mm512_range_pd((__m512d)x, (__m512d)y, 0x0B);
}
// Products rounded towards zero: never above the exact one, not even among the denormals.
static inline VF ProductBelow(VF x, VF y) {
  return (VF)_mm512_mul_round_ps((__m512)x, (__m512)y, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC);
}
static inline VD ProductBelow(VD x, VD y) {
  return (VD)_mm512_mul_round_pd((__m512d)x, (__m512d)y, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC);
}
static inline VF ProductAbove(VF x, VF y) {
  return (VF)_mm512_mul_round_ps((__m512)x, (__m512)y, _MM_FROUND_TO_POS_INF | _MM_FROUND_NO_EXC);
}
static inline TruthF NotLess(VF x, VF y) {
  return _mm512_cmp_ps_mask((__m512)x, (__m512)y, _CMP_NLT_UQ);
}
static inline TruthD NotLess(VD x, VD y) {
  return _mm512_cmp_pd_mask((__m512d)x, (__m512d)y, _CMP_NLT_UQ);
}
// |x - y| of bits of equal sign, and the larger of two such distances.
static inline VI BitDistance(VI x, VI y) {
  return (VI)_mm512_abs_epi32(_mm512_sub_epi32((__m512i)x, (__m512i)y));
}
static inline VL BitDistance(VL x, VL y) {
  return (VL)_mm512_abs_epi64(_mm512_sub_epi64((__m512i)x, (__m512i)y));
}
static inline VI LargerInteger(VI x, VI y) { return (VI)_mm512_max_epi32((__m512i)x, (__m512i)y); }
static inline VL LargerInteger(VL x, VL y) { return (VL)_mm512_max_epi64((__m512i)x, (__m512i)y); }

// A relative error below this one does not raise `max_rel`, also when both are computed from a
// difference rounded to T; a quiet one is below 0.001, too.
template <class T, bool busy>
static inline T LimitFor(double max_rel) {
  const double limit = max_rel * (1 - 0x1p-20);
  // Below 2^-100 the conversion to float could round up by much.
  return static_cast<T>(limit < 0x1p-100 ? 0.0 : Smaller(limit, busy ? 0x1p+127 : 0.00099));
}

static inline uint64_t CountOf(uint64_t mask) {
  return static_cast<uint64_t>(__builtin_popcountll(mask));
}

template <class Truth>
static inline void StoreTruth(Truth truth, size_t i, uint64_t* masks) {
  __builtin_memcpy(reinterpret_cast<char*>(masks) + i / 8, &truth, sizeof(truth));
}

// Where relative errors lie, of pairs that are not nearly all alike.
static inline void StorePlaces(VF distance, VF reference, size_t at, PairMasks* masks) {
  const VF zero = {};
  StoreTruth(NotLess(distance, ProductBelow(reference, zero + 0.00099999f)), at, masks->near_1e3);
  StoreTruth(NotLess(distance, ProductAbove(reference, zero + 0.00100001f)), at, masks->above_1e3);
  StoreTruth(NotLess(distance, ProductBelow(reference, zero + 0.0049999f)), at, masks->near_5e3);
  StoreTruth(NotLess(distance, ProductAbove(reference, zero + 0.0050001f)), at, masks->above_5e3);
}
// This is the rule itself.
static inline void StorePlaces(VD distance, VD reference, size_t at, PairMasks* masks) {
  StoreTruth(NotLess(distance, 0.001 * reference), at, masks->above_1e3);
  StoreTruth(NotLess(distance, 0.005 * reference), at, masks->above_5e3);
}

// The count of the slice is a multiple of kLanes. Distances of bits hold if no sign differs.
template <class T, PairWork work>
static void ReducePairs(const PairSlice<T>& slice, T limit, OnePassVectors<T>* out,
                        PairMasks* masks) {
  typedef OnePassVectors<T> M;
  typedef typename M::Counter Counter;
  constexpr size_t kPerVector = PL_WIDTH / sizeof(T);
  const T* t = slice.t;
  const T* g = slice.g;
  M m = *out;
  const typename M::Vector zero = {};
  const typename M::Vector limits = zero + limit;
  for (size_t i = 0; i < slice.count; i += kLanes) {
    PL_UNROLL
    for (size_t v = 0; v < kWide; ++v) {
      const VD x = LoadWide(t + i + v * kDoublesPerVector);
      const VD y = LoadWide(g + i + v * kDoublesPerVector);
      const VD difference = x - y;
      m.dot[v] = AddProduct<sizeof(T) == 4>(m.dot[v], x, y);
      m.target[v] = AddProduct<sizeof(T) == 4>(m.target[v], x, x);
      m.golden[v] = AddProduct<sizeof(T) == 4>(m.golden[v], y, y);
      m.difference[v] = AddProduct<false>(m.difference[v], difference, difference);
      m.largest[v] = LargerMagnitude(difference, m.largest[v]);
    }
    PL_UNROLL
    for (size_t v = 0; v < M::kVectors; ++v) {
      const size_t at = i + v * kPerVector;
      Prefetch(t + at);
      Prefetch(g + at);
      const typename M::Vector x = LoadVector<T>(t + at);
      const typename M::Vector y = LoadVector<T>(g + at);
      m.target_max[v] = LargerMagnitude(x, m.target_max[v]);
      m.golden_max[v] = LargerMagnitude(y, m.golden_max[v]);
      StoreTruth(Differ(x, y), at, masks->differ);
      const auto is_zero = Equal(y, zero);
      StoreTruth(is_zero, at, masks->zero);
      typename M::Vector reference = Abs(y);
      if constexpr (IsBusy(work)) {
        reference = Select(is_zero, zero + static_cast<T>(kZeroReference), reference);
        StorePlaces(Abs(x - y), reference, at, masks);
      }
      StoreTruth(NotLess(Abs(x - y), ProductBelow(reference, limits)), at, masks->beyond);
      if constexpr (WithUlp(work)) {
        const Counter a = (Counter)x;
        const Counter b = (Counter)y;
        m.ulp[v] = LargerInteger(BitDistance(a, b), m.ulp[v]);
        m.signs[v] |= a ^ b;
      }
    }
  }
  *out = m;
}

// Small relative errors and the largest one, by the double arithmetic of the rule, in the groups
// that have a pair beyond the limit.
template <class T>
static void SettleRelative(const PairSlice<T>& slice, const PairMasks& masks, double* max_rel,
                           SliceCounts* counts) {
  const VD zero = {};
  uint64_t below_1e3 = slice.count, below_5e3 = slice.count;
  QuotientLimit limit = LimitOf(*max_rel);
  for (size_t word = 0; word * 64 < slice.count; ++word) {
    uint64_t open = masks.beyond[word];
    if constexpr (sizeof(T) == 4) {
      open |= masks.near_1e3[word] & ~masks.above_1e3[word];
      open |= masks.near_5e3[word] & ~masks.above_5e3[word];
    }
    // Two zeros are always below.
    open &= ~(masks.zero[word] & ~masks.differ[word]);
    uint64_t settled = ~uint64_t{0};
    while (open != 0) {
      const size_t shift = static_cast<size_t>(__builtin_ctzll(open)) / kLanes * kLanes;
      settled &= ~(uint64_t{0xFFFF} << shift);
      open &= settled;
      for (size_t v = 0; v < kWide; ++v) {
        const size_t at = word * 64 + shift + v * kDoublesPerVector;
        const VD x = LoadWide(slice.t + at);
        const VD y = LoadWide(slice.g + at);
        const VD distance = Abs(x - y);
        const VD reference = Select(Equal(y, zero), zero + kZeroReference, Abs(y));
        below_1e3 -= CountOf(NotLess(distance, 0.001 * reference));
        below_5e3 -= CountOf(NotLess(distance, 0.005 * reference));
        if (!Any(MayExceed(distance, reference, limit))) continue;
        const VD quotients = distance / reference;
        for (size_t l = 0; l < kDoublesPerVector; ++l) *max_rel = Larger(quotients[l], *max_rel);
        limit = LimitOf(*max_rel);
      }
    }
    below_1e3 -= CountOf(masks.above_1e3[word] & settled);
    below_5e3 -= CountOf(masks.above_5e3[word] & settled);
  }
  counts->below_1e3 = below_1e3;
  counts->below_5e3 = below_5e3;
}

static inline void CountMasks(const PairMasks& masks, size_t count, SliceCounts* counts) {
  for (size_t word = 0; word * 64 < count; ++word) {
    counts->mismatch += CountOf(masks.differ[word]);
    counts->golden_zero += CountOf(masks.zero[word]);
    counts->golden_zero_mismatch += CountOf(masks.zero[word] & masks.differ[word]);
  }
}

// The largest of the distances of bits; those of pairs of unlike sign are counted anew.
template <class T>
static uint64_t OnePassUlp(const PairSlice<T>& slice, const OnePassVectors<T>& m) {
  typedef typename VectorOf<T>::Int Int;
  Int largest = 0, signs = 0;
  for (size_t v = 0; v < OnePassVectors<T>::kVectors; ++v) {
    for (size_t l = 0; l < PL_WIDTH / sizeof(T); ++l) {
      largest = Larger(static_cast<Int>(m.ulp[v][l]), largest);
      signs |= static_cast<Int>(m.signs[v][l]);
    }
  }
  if (signs < 0) return SliceUlp(slice.raw, slice.t, slice.g, slice.count);
  return static_cast<uint64_t>(largest);
}

template <class T>
static void UnequalSlices(const PairSlice<T>& slice, PairLanes* lanes, Pairwise* total) {
  const auto& [raw, t, g, count] = slice;
  OnePassVectors<T> m = {};
  PairMasks masks = {};
  __builtin_memcpy(static_cast<void*>(&m), lanes, sizeof(PairLanes));
  const bool ulp_of_bits =
      !IsInteger(raw.golden_dtype) && ElementBytes(raw.golden_dtype) == sizeof(T);
  // Both loops give the same result; which is quicker shows in the slices before.
  const bool busy = (total->count - total->below_1e3) * 64 > total->count;
  const double max_rel = total->max_rel;
  if (busy) {
    const T limit = LimitFor<T, true>(max_rel);
    ulp_of_bits ? ReducePairs<T, PairWork::kBusyUlp>(slice, limit, &m, &masks)
                : ReducePairs<T, PairWork::kBusy>(slice, limit, &m, &masks);
  } else {
    const T limit = LimitFor<T, false>(max_rel);
    ulp_of_bits ? ReducePairs<T, PairWork::kQuietUlp>(slice, limit, &m, &masks)
                : ReducePairs<T, PairWork::kQuiet>(slice, limit, &m, &masks);
  }
  if (!KeepFiniteSums(m, lanes)) return SlowSlice(slice, lanes, total);
  SliceCounts counts = {};
  CountMasks(masks, count, &counts);
  SettleRelative(slice, masks, &total->max_rel, &counts);
  counts.max_abs = LargestOf(m.largest);
  counts.target_max = LargestOf(m.target_max);
  counts.golden_max = LargestOf(m.golden_max);
  if (counts.mismatch != 0) {
    counts.max_ulp = ulp_of_bits ? OnePassUlp(slice, m) : SliceUlp(raw, t, g, count);
  }
  FastSlice(slice, counts, total);
}
