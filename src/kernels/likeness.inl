// Whether two runs hold the same bytes, and NaN or infinities, in one pass over both, compiled once
// per CPU target.

// `exponent`: the exponent bits of a Word, `one` its lowest. The sum reaches the sign bit only when
// all of them are set. Stops soon after the first difference.
template <class Word>
static Likeness LikenessOfWords(const char* a, const char* b, size_t bytes, Word exponent,
                                Word one) {
  typedef Word Vector __attribute__((vector_size(PL_WIDTH)));
  constexpr size_t kStep = 4096;
  const Vector exponents = exponent - Vector{}, ones = one - Vector{};
  Vector seen = {};
  size_t i = 0;
  for (; i + kStep <= bytes; i += kStep) {
    VL differences = {};
    for (size_t k = 0; k < kStep; k += PL_WIDTH) {
      if (k % 64 == 0) {
        Prefetch(a + i + k);
        Prefetch(b + i + k);
      }
      const Vector x = LoadVectorOf<Vector>(a + i + k);
      differences |= (VL)x ^ LoadVectorOf<VL>(b + i + k);
      seen |= (x & exponents) + ones;
    }
    int64_t any = 0;
    for (size_t l = 0; l < kDoublesPerVector; ++l) any |= differences[l];
    if (any != 0) return Likeness::kDiffers;
  }
  if (__builtin_memcmp(a + i, b + i, bytes - i) != 0) return Likeness::kDiffers;
  Word sums = 0;
  for (size_t l = 0; l < PL_WIDTH / sizeof(Word); ++l) sums = static_cast<Word>(sums | seen[l]);
  for (; i < bytes; i += sizeof(Word)) {
    const Word word = Load<Word>(a + i, 0);
    sums = static_cast<Word>(sums | static_cast<Word>((word & exponent) + one));
  }
  const bool is_set = (sums >> (8 * sizeof(Word) - 1)) != 0;
  return is_set ? Likeness::kNonFinite : Likeness::kFinite;
}

static Likeness LikenessOf(DType dtype, const void* first, const void* second, size_t bytes) {
  const auto* a = static_cast<const char*>(first);
  const auto* b = static_cast<const char*>(second);
  switch (dtype) {
    case DType::kFloat16:
      return LikenessOfWords<uint16_t>(a, b, bytes, 0x7C00, 0x0400);
    case DType::kBFloat16:
      return LikenessOfWords<uint16_t>(a, b, bytes, 0x7F80, 0x0080);
    case DType::kFloat32:
    case DType::kComplex64:
      return LikenessOfWords<uint32_t>(a, b, bytes, 0x7F800000, 0x00800000);
    case DType::kFloat64:
    case DType::kComplex128:
      return LikenessOfWords<uint64_t>(a, b, bytes, 0x7FF0000000000000, 0x0010000000000000);
    default:
      return __builtin_memcmp(a, b, bytes) == 0 ? Likeness::kFinite : Likeness::kDiffers;
  }
}
