// Pairs of complex numbers, compiled once per CPU target. Included from pairwise.inl.

// The largest double in place of a modulus that is none.
static inline double FiniteModulus(double re, double im) {
  return Smaller(Modulus(re, im), __DBL_MAX__);
}

// Complex numbers, or a complex and a real side: parts widened to double, one pair at a time.
static void PairOfComplex(const RawPair& raw, size_t count, PairLanes* lanes, Pairwise* total) {
  for (size_t i = 0; i < count; ++i) {
    double t[2], g[2];
    LoadComplex(raw.target_dtype, raw.target, i, t);
    LoadComplex(raw.golden_dtype, raw.golden, i, g);
    // The class of a complex number is that of its parts.
    const int re_class[2] = {ClassOf(t[0]), ClassOf(g[0])};
    const int im_class[2] = {ClassOf(t[1]), ClassOf(g[1])};
    if ((re_class[0] | re_class[1] | im_class[0] | im_class[1]) != 0) {
      const bool differs = re_class[0] != re_class[1] || im_class[0] != im_class[1];
      ++total->nonfinite_count;
      total->nonfinite_mismatch += differs ? 1u : 0u;
      CountPair(differs, total);
      continue;
    }
    const double target_modulus = FiniteModulus(t[0], t[1]);
    const double golden_modulus = FiniteModulus(g[0], g[1]);
    const double distance = FiniteModulus(t[0] - g[0], t[1] - g[1]);
    const bool differs = t[0] != g[0] || t[1] != g[1];
    const size_t l = i % kLanes;
    lanes->dot[l] += t[0] * g[0] + t[1] * g[1];
    lanes->target[l] += target_modulus * target_modulus;
    lanes->golden[l] += golden_modulus * golden_modulus;
    lanes->difference[l] += distance * distance;
    AddFinitePair(distance, target_modulus, golden_modulus, differs, total);
    CountPair(differs, total);
  }
}

// Everything the sums and counts of a slice need, one number per pair.
struct ComplexSlice {
  static constexpr size_t kPairs = 256;
  alignas(64) double target[kPairs], golden[kPairs];  // moduli
  alignas(64) double distance[kPairs], dot[kPairs];
  alignas(64) uint64_t differs[kPairs];
};

template <class Part>
static void FillComplexSlice(const RawPair& raw, size_t count, ComplexSlice* slice) {
  for (size_t i = 0; i < count; ++i) {
    const double t_re = static_cast<double>(Load<Part>(raw.target, 2 * i));
    const double t_im = static_cast<double>(Load<Part>(raw.target, 2 * i + 1));
    const double g_re = static_cast<double>(Load<Part>(raw.golden, 2 * i));
    const double g_im = static_cast<double>(Load<Part>(raw.golden, 2 * i + 1));
    slice->dot[i] = t_re * g_re + t_im * g_im;
    const double re = t_re - g_re;
    const double im = t_im - g_im;
    // Squares of differences of floats are in range, so they need no scaling. What Inf and NaN
    // give is not used.
    slice->distance[i] = sizeof(Part) == 4 ? __builtin_sqrt(re * re + im * im) : Modulus(re, im);
    slice->differs[i] = (t_re != g_re ? 1u : 0u) | (t_im != g_im ? 1u : 0u);
  }
  WidenComplex<Part>(raw.target, count, slice->target);
  WidenComplex<Part>(raw.golden, count, slice->golden);
}

static void SumComplexSlice(const ComplexSlice& slice, size_t count, PairLanes* out) {
  PairLanes lanes = *out;
  for (size_t i = 0; i < count; i += kLanes) {
    for (size_t l = 0; l < kLanes; ++l) {
      lanes.dot[l] += slice.dot[i + l];
      lanes.target[l] += slice.target[i + l] * slice.target[i + l];
      lanes.golden[l] += slice.golden[i + l] * slice.golden[i + l];
      lanes.difference[l] += slice.distance[i + l] * slice.distance[i + l];
    }
  }
  *out = lanes;
}

static void CountComplexSlice(const ComplexSlice& slice, size_t count, double max_rel,
                              SliceCounts* out) {
  const double bound = max_rel * (1 - 0x1p-50);
  SliceCounts c = {};
  uint64_t above = 0;
  double largest[3][kLanes] = {};
  for (size_t i = 0; i < count; i += kLanes) {
    for (size_t l = 0; l < kLanes; ++l) {
      const double distance = slice.distance[i + l];
      const double golden = slice.golden[i + l];
      const double reference = Reference(golden);
      c.mismatch += slice.differs[i + l];
      c.golden_zero += golden == 0 ? 1u : 0u;
      c.golden_zero_mismatch += golden == 0 ? slice.differs[i + l] : 0u;
      c.below_1e3 += distance < 0.001 * reference ? 1u : 0u;
      c.below_5e3 += distance < 0.005 * reference ? 1u : 0u;
      above |= distance > bound * reference ? 1u : 0u;
      largest[0][l] = Larger(distance, largest[0][l]);
      largest[1][l] = Larger(slice.target[i + l], largest[1][l]);
      largest[2][l] = Larger(golden, largest[2][l]);
    }
  }
  for (size_t l = 0; l < kLanes; ++l) {
    c.max_abs = Larger(largest[0][l], c.max_abs);
    c.target_max = Larger(largest[1][l], c.target_max);
    c.golden_max = Larger(largest[2][l], c.golden_max);
  }
  c.may_raise_rel = above != 0;
  *out = c;
}

static void AddComplexSlice(const ComplexSlice& slice, const SliceCounts& counts, size_t count,
                            Pairwise* total) {
  if (counts.mismatch != 0 && total->mismatch_count == 0) {
    size_t i = 0;
    while (slice.differs[i] == 0) ++i;
    total->first_mismatch = total->count + i;
  }
  if (counts.max_abs > total->max_abs) {
    size_t i = 0;
    while (slice.distance[i] != counts.max_abs) ++i;
    total->max_abs = counts.max_abs;
    total->max_abs_index = total->count + i;
  }
  if (counts.may_raise_rel) {
    for (size_t i = 0; i < count; ++i) {
      total->max_rel = Larger(slice.distance[i] / Reference(slice.golden[i]), total->max_rel);
    }
  }
  total->mismatch_count += counts.mismatch;
  total->golden_zero_count += counts.golden_zero;
  total->golden_zero_mismatch += counts.golden_zero_mismatch;
  total->below_1e3 += counts.below_1e3;
  total->below_5e3 += counts.below_5e3;
  total->target_max = Larger(counts.target_max, total->target_max);
  total->golden_max = Larger(counts.golden_max, total->golden_max);
  total->count += count;
}

template <class Part>
static void PairsOfOneComplexType(RawPair raw, size_t count, PairLanes* lanes, Pairwise* total) {
  ComplexSlice slice;
  while (count >= kLanes) {
    size_t n = count < ComplexSlice::kPairs ? count : ComplexSlice::kPairs;
    n -= n % kLanes;
    FillComplexSlice<Part>(raw, n, &slice);
    PairLanes sums = *lanes;
    SumComplexSlice(slice, n, &sums);
    // NaN and Inf make these sums so; what overflows goes one by one with them.
    if (__builtin_isfinite(SumLanes(sums.target)) && __builtin_isfinite(SumLanes(sums.golden))) {
      *lanes = sums;
      SliceCounts counts;
      CountComplexSlice(slice, n, total->max_rel, &counts);
      AddComplexSlice(slice, counts, n, total);
    } else {
      PairOfComplex(raw, n, lanes, total);
    }
    raw.target += n * 2 * sizeof(Part);
    raw.golden += n * 2 * sizeof(Part);
    count -= n;
  }
  PairOfComplex(raw, count, lanes, total);
}

static void PairRunsOfComplex(const RawPair& raw, size_t count, PairLanes* lanes, Pairwise* total) {
  if (raw.target_dtype != raw.golden_dtype) return PairOfComplex(raw, count, lanes, total);
  if (raw.golden_dtype == DType::kComplex64) {
    return PairsOfOneComplexType<float>(raw, count, lanes, total);
  }
  PairsOfOneComplexType<double>(raw, count, lanes, total);
}
