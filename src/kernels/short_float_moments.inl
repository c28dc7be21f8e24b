// Moments of float16 and bfloat16 from their 16-bit patterns, for AVX-512. Included from moments.inl.


// Extremes of patterns, element by element of the vectors.
struct PatternExtremes {
  __m512i high;  // largest as signed: the maximum if not negative
  __m512i far;   // largest as unsigned: the minimum if it has the sign
  __m512i near;  // smallest as unsigned
  __m512i zeros;
};

// Twice as many patterns as floats go through one instruction. `infinity` is the pattern of +Inf.
template <class Format, int infinity>
struct ShortFloats {
  // The lanes of 32 elements as two vectors of floats, stored for conversion to double by halves.
  // bfloat16 splits into even and odd elements, which go to even and odd lanes.
  static constexpr bool kEvenOdd = infinity == 0x7F80;

  static inline void Split(__m512i raw, float* parts) {
    if constexpr (kEvenOdd) {
      _mm512_store_si512(parts, _mm512_slli_epi32(raw, 16));
      _mm512_store_si512(parts + 16, _mm512_and_si512(raw, _mm512_set1_epi32(kHighHalf)));
    } else {
      _mm512_store_ps(parts, _mm512_cvtph_ps(_mm512_castsi512_si256(raw)));
      _mm512_store_ps(parts + 16, _mm512_cvtph_ps(_mm512_extracti64x4_epi64(raw, 1)));
    }
  }

  // Lane that place `k` of the accumulators stands for.
  static constexpr size_t LaneOf(size_t k) {
    if (!kEvenOdd) return k;
    return k < 8 ? 2 * k : 2 * (k - 8) + 1;
  }

  // Adds `count` elements, a multiple of 32, or does nothing and returns false when NaN or Inf is
  // among them.
  static bool Reduce(const char* in, size_t count, MomentsState* state) {
    alignas(64) double sum[kLanes], squares[kLanes];
    alignas(64) float parts[32];
    for (size_t k = 0; k < kLanes; ++k) {
      sum[k] = state->sum[LaneOf(k)];
      squares[k] = state->squares[LaneOf(k)];
    }
    __m512d s0 = _mm512_load_pd(sum), s1 = _mm512_load_pd(sum + 8);
    __m512d q0 = _mm512_load_pd(squares), q1 = _mm512_load_pd(squares + 8);
    PatternExtremes p = {_mm512_set1_epi16(INT16_MIN), _mm512_setzero_si512(),
                         _mm512_set1_epi16(-1), _mm512_setzero_si512()};
    const __m512i magnitude = _mm512_set1_epi16(INT16_MAX);
    const __m512i minus_one = _mm512_set1_epi16(-1);
    for (size_t i = 0; i < count; i += 32) {
      const __m512i raw = _mm512_loadu_si512(in + 2 * i);
      Prefetch(in + 2 * i);
      p.high = _mm512_max_epi16(p.high, raw);
      p.far = _mm512_max_epu16(p.far, raw);
      p.near = _mm512_min_epu16(p.near, raw);
      p.zeros = _mm512_mask_sub_epi16(p.zeros, _mm512_testn_epi16_mask(raw, magnitude), p.zeros,
                                      minus_one);
      Split(raw, parts);
      // Elements 0 to 15 of natural order are parts 0 to 15; of even-odd order they are the first
      // halves of both parts. Either way a lane gets its elements in order.
      const __m512d a = _mm512_cvtps_pd(_mm256_load_ps(parts));
      const __m512d b = _mm512_cvtps_pd(_mm256_load_ps(parts + (kEvenOdd ? 16 : 8)));
      const __m512d c = _mm512_cvtps_pd(_mm256_load_ps(parts + (kEvenOdd ? 8 : 16)));
      const __m512d d = _mm512_cvtps_pd(_mm256_load_ps(parts + 24));
      s0 = _mm512_add_pd(_mm512_add_pd(s0, a), c);
      s1 = _mm512_add_pd(_mm512_add_pd(s1, b), d);
      q0 = _mm512_fmadd_pd(c, c, _mm512_fmadd_pd(a, a, q0));
      q1 = _mm512_fmadd_pd(d, d, _mm512_fmadd_pd(b, b, q1));
    }
    if (!MergePatterns(p, count, &state->total)) return false;
    _mm512_store_pd(sum, s0);
    _mm512_store_pd(sum + 8, s1);
    _mm512_store_pd(squares, q0);
    _mm512_store_pd(squares + 8, q1);
    for (size_t k = 0; k < kLanes; ++k) {
      state->sum[LaneOf(k)] = sum[k];
      state->squares[LaneOf(k)] = squares[k];
    }
    return true;
  }

  static bool MergePatterns(const PatternExtremes& p, size_t count, Moments* total) {
    int16_t signed_max[32];
    uint16_t unsigned_max[32], unsigned_min[32], zero[32];
    __builtin_memcpy(signed_max, &p.high, sizeof(p.high));
    __builtin_memcpy(unsigned_max, &p.far, sizeof(p.far));
    __builtin_memcpy(unsigned_min, &p.near, sizeof(p.near));
    __builtin_memcpy(zero, &p.zeros, sizeof(p.zeros));
    int32_t top = signed_max[0];
    uint32_t largest = 0, smallest = 0xFFFF, zero_count = 0;
    for (size_t l = 0; l < 32; ++l) {
      top = Larger(static_cast<int32_t>(signed_max[l]), top);
      largest = Larger(static_cast<uint32_t>(unsigned_max[l]), largest);
      smallest = Smaller(static_cast<uint32_t>(unsigned_min[l]), smallest);
      zero_count += zero[l];
    }
    if (top >= infinity || largest >= 0x8000u + infinity) return false;
    // Without any value of one sign, the one of smallest magnitude of the other is the extreme.
    const uint32_t patterns[2] = {top >= 0 ? static_cast<uint32_t>(top) : smallest,
                                  largest >= 0x8000u ? largest : smallest};
    const uint16_t bits[2] = {static_cast<uint16_t>(patterns[0]),
                              static_cast<uint16_t>(patterns[1])};
    float extremes[2];
    WidenNarrow<Format>(bits, 2, extremes);
    const double max = static_cast<double>(extremes[0]);
    const double min = static_cast<double>(extremes[1]);
    total->count += count;
    total->zero_count += zero_count;
    if (Above(max, total->max)) total->max = max;
    if (Above(-min, -total->min)) total->min = min;
    if (Above(max, total->finite_max)) total->finite_max = max;
    if (Above(-min, -total->finite_min)) total->finite_min = min;
    return true;
  }

 private:
  static constexpr int32_t kHighHalf = static_cast<int32_t>(0xFFFF0000u);
};

template <class Format, int infinity>
static void MomentsOfShortFloats(DType dtype, const void* data, size_t count,
                                 MomentsState* state) {
  const char* in = static_cast<const char*>(data);
  const size_t whole = count / 32 * 32;
  for (size_t i = 0; i < whole; i += kSlice) {
    const size_t n = whole - i < kSlice ? whole - i : kSlice;
    if (!ShortFloats<Format, infinity>::Reduce(in + 2 * i, n, state)) {
      MomentsOfNarrow(dtype, 2, in + 2 * i, n, state);
    }
  }
  if (whole != count) MomentsOfNarrow(dtype, 2, in + 2 * whole, count - whole, state);
}
