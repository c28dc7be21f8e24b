// Natural logarithms by additions, multiplications and one division: the same bits on every CPU.
// Included inside a target region and namespace.

template <class V>
struct WordsOf;
template <>
struct WordsOf<VD> {
  typedef VUnsignedLong Type;
};
template <>
struct WordsOf<double> {
  typedef uint64_t Type;
};

template <class To, class From>
static inline To BitsAs(From from) {
  To to;
  __builtin_memcpy(&to, &from, sizeof(to));
  return to;
}

// ln(a / b) of positive normal numbers, right to 3 units of the last place; 0 where they are equal.
//
// With 2^e the power of two that brings b nearest to a, by the bits of both (which are a logarithm
// with an error below 0.09): ln(a / b) = e ln(2) + 2 artanh(s), s = (a - 2^e b) / (a + 2^e b). The
// difference is exact and |s| < 0.2008; artanh by a polynomial whose error is below 2^-55 of it.
template <class V>
static inline V LogRatio(V a, V b) {
  typedef typename WordsOf<V>::Type Words;
  constexpr uint64_t kBias = uint64_t{1} << 63;  // keeps the shifted exponent e + 2048 positive
  constexpr uint64_t kRound = uint64_t{1} << 51;
  constexpr uint64_t kExponent = ~((uint64_t{1} << 52) - 1);
  constexpr uint64_t kTwo52 = 0x4330000000000000;
  const Words bits_of_b = BitsAs<Words>(b);
  const Words quotient = BitsAs<Words>(a) - bits_of_b + (kRound + kBias);
  const V scaled = BitsAs<V>(Words(bits_of_b + (quotient & kExponent) - kBias));
  const V e = BitsAs<V>(Words((quotient >> 52) | kTwo52)) - (4503599627370496.0 + 2048.0);
  const V s = (a - scaled) / (a + scaled);
  const V z = s * s;
  const V w = z * z;
  const V low = z * 0.3999999999598098 + 0.6666666666667305;
  const V middle = z * 0.22222135868736514 + 0.2857142942761641;
  const V high = z * 0.1524804286167398 + 0.18186463601149186;
  const V series = low + w * (middle + w * (high + w * 0.15384834948597892));
  const V of_s = (s + s) + s * z * series;
  return e * 6.93147180369123816490e-01 + (of_s + e * 1.90821492927058770002e-10);
}

// Whether ln(a / b) needs LogRatio(): |a - b| / (a + b) is above 2^-6.
static inline TruthD IsFarApart(VD a, VD b) { return Less((a + b) * 0x1p-6, Abs(a - b)); }

// LogRatio() of numbers that are not far apart, to the same 3 units: no power of two is between
// them, and of the series three terms are enough. Those are 1/3, 1/5 and 1/7, twice, changed so
// that the next one, z^3 / 9, is made up for up to z = 2^-12; what is left is below 2^-55.
static inline VD LogRatioOfNear(VD a, VD b) {
  const VD s = (a - b) / (a + b);
  const VD z = s * s;
  const VD series = z * (z * 0.28579566592261907 + 0.3999999925494194) + 0.6666666666667678;
  return (s + s) + s * z * series;
}
