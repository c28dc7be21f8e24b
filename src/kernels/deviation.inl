// Sums of kernels/deviation_sums.h. Each loop runs over one vector of lanes, so that all of its
// sums stay in registers; the runs are short enough to stay in L1 for the next vector.

// The same operations on one element, for the end of a run.
static inline double Abs(double x) { return __builtin_fabs(x); }
static inline double Max(double x, double best) { return x > best ? x : best; }
static inline double Min(double x, double best) { return x < best ? x : best; }
static inline bool Less(double x, double y) { return x < y; }
static inline bool Equal(double x, double y) { return x == y; }
static inline bool Either(bool a, bool b) { return a || b; }
static inline double Select(bool where, double yes, double no) { return where ? yes : no; }

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

template <class V>
static inline V LoadLanes(const double* from) {
  V v;
  __builtin_memcpy(&v, from, sizeof(v));
  return v;
}
template <class V>
static inline void StoreLanes(V v, double* to) {
  __builtin_memcpy(to, &v, sizeof(v));
}

// ln(r) of a normal number between 2^-60 and 2^60: r = 2^e m with m in [sqrt(1/2), sqrt(2)), and
// ln(m) = 2 artanh((m - 1) / (m + 1)) by its series.
template <class V>
static inline V Logarithm(V r) {
  typedef typename WordsOf<V>::Type Words;
  constexpr uint64_t kRootOfHalf = 0x3FE6A09E667F3BCD;
  constexpr uint64_t kBias = 64;  // keeps the shifted exponent positive
  constexpr uint64_t kTwo52 = 0x4330000000000000;
  const Words bits = BitsAs<Words>(r);
  const Words exponent = (bits - kRootOfHalf + (kBias << 52)) >> 52;
  const V m = BitsAs<V>(Words(bits - ((exponent - kBias) << 52)));
  const V e = BitsAs<V>(Words(exponent | kTwo52)) - (4503599627370496.0 + 64.0);
  const V f = m - 1.0;
  const V s = f / (f + 2.0);
  const V z = s * s;
  V series = z * (2.0 / 21) + 2.0 / 19;
  series = series * z + 2.0 / 17;
  series = series * z + 2.0 / 15;
  series = series * z + 2.0 / 13;
  series = series * z + 2.0 / 11;
  series = series * z + 2.0 / 9;
  series = series * z + 2.0 / 7;
  series = series * z + 2.0 / 5;
  series = series * z + 2.0 / 3;
  const V of_m = s * 2.0 + s * z * series;
  return e * 6.93147180369123816490e-01 + (of_m + e * 1.90821492927058770002e-10);
}

// Lanes of a DeviationSums that one loop works on.
template <class V>
struct DeviationLanes {
  V x, y, xx, yy, xy, absolute, squares, relative, max_absolute, max_relative;
  V min_x, max_x, min_y, max_y;

  DeviationLanes(const DeviationSums& sums, size_t lane)
      : x(LoadLanes<V>(sums.x + lane)),
        y(LoadLanes<V>(sums.y + lane)),
        xx(LoadLanes<V>(sums.xx + lane)),
        yy(LoadLanes<V>(sums.yy + lane)),
        xy(LoadLanes<V>(sums.xy + lane)),
        absolute(LoadLanes<V>(sums.absolute + lane)),
        squares(LoadLanes<V>(sums.squares + lane)),
        relative(LoadLanes<V>(sums.relative + lane)),
        max_absolute(LoadLanes<V>(sums.max_absolute + lane)),
        max_relative(LoadLanes<V>(sums.max_relative + lane)),
        min_x(LoadLanes<V>(sums.min_x + lane)),
        max_x(LoadLanes<V>(sums.max_x + lane)),
        min_y(LoadLanes<V>(sums.min_y + lane)),
        max_y(LoadLanes<V>(sums.max_y + lane)) {}

  void Add(V a, V b) {
    const V difference = Abs(a - b);
    const V size = Abs(b);
    const V least = V{} + kSmallestDivisor;
    // NaN is neither below nor equal, and goes through.
    const V ratio = Select(Either(Less(size, least), Equal(size, least)), V{}, Abs(a / b - 1.0));
    x += a;
    y += b;
    xx += a * a;
    yy += b * b;
    xy += a * b;
    absolute += difference;
    squares += difference * difference;
    relative += ratio;
    max_absolute = Max(difference, max_absolute);
    max_relative = Max(ratio, max_relative);
    min_x = Min(a, min_x);
    max_x = Max(a, max_x);
    min_y = Min(b, min_y);
    max_y = Max(b, max_y);
  }

  void Store(DeviationSums* sums, size_t lane) const {
    StoreLanes(x, sums->x + lane);
    StoreLanes(y, sums->y + lane);
    StoreLanes(xx, sums->xx + lane);
    StoreLanes(yy, sums->yy + lane);
    StoreLanes(xy, sums->xy + lane);
    StoreLanes(absolute, sums->absolute + lane);
    StoreLanes(squares, sums->squares + lane);
    StoreLanes(relative, sums->relative + lane);
    StoreLanes(max_absolute, sums->max_absolute + lane);
    StoreLanes(max_relative, sums->max_relative + lane);
    StoreLanes(min_x, sums->min_x + lane);
    StoreLanes(max_x, sums->max_x + lane);
    StoreLanes(min_y, sums->min_y + lane);
    StoreLanes(max_y, sums->max_y + lane);
  }
};

template <class V>
struct SpreadLanes {
  V squares_x, squares_y, p, q, divergence;

  SpreadLanes(const SpreadSums& sums, size_t lane)
      : squares_x(LoadLanes<V>(sums.squares_x + lane)),
        squares_y(LoadLanes<V>(sums.squares_y + lane)),
        p(LoadLanes<V>(sums.p + lane)),
        q(LoadLanes<V>(sums.q + lane)),
        divergence(LoadLanes<V>(sums.divergence + lane)) {}

  void Add(const SpreadCenter& center, V a, V b) {
    const V dx = a - center.mean_x, dy = b - center.mean_y;
    const V floor = V{} + center.floor;
    const V of_a = Max((a - center.offset_x) * center.scale_x, floor);
    const V of_b = Max((b - center.offset_y) * center.scale_y, floor);
    squares_x += dx * dx;
    squares_y += dy * dy;
    p += of_a;
    q += of_b;
    divergence += of_a * Logarithm<V>(of_a / of_b);
  }

  void Store(SpreadSums* sums, size_t lane) const {
    StoreLanes(squares_x, sums->squares_x + lane);
    StoreLanes(squares_y, sums->squares_y + lane);
    StoreLanes(p, sums->p + lane);
    StoreLanes(q, sums->q + lane);
    StoreLanes(divergence, sums->divergence + lane);
  }
};

static void Deviations(const double* x, const double* y, size_t count, DeviationSums* sums) {
  const size_t whole = count / kLanes * kLanes;
  for (size_t v = 0; v < kLanes; v += kDoublesPerVector) {
    DeviationLanes<VD> lanes(*sums, v);
    for (size_t i = v; i < whole; i += kLanes) {
      lanes.Add(LoadLanes<VD>(x + i), LoadLanes<VD>(y + i));
    }
    lanes.Store(sums, v);
  }
  for (size_t i = whole; i < count; ++i) {
    DeviationLanes<double> lane(*sums, i - whole);
    lane.Add(x[i], y[i]);
    lane.Store(sums, i - whole);
  }
}

static void Spreads(const SpreadCenter& center, const double* x, const double* y, size_t count,
                    SpreadSums* sums) {
  const size_t whole = count / kLanes * kLanes;
  for (size_t v = 0; v < kLanes; v += kDoublesPerVector) {
    SpreadLanes<VD> lanes(*sums, v);
    for (size_t i = v; i < whole; i += kLanes) {
      lanes.Add(center, LoadLanes<VD>(x + i), LoadLanes<VD>(y + i));
    }
    lanes.Store(sums, v);
  }
  for (size_t i = whole; i < count; ++i) {
    SpreadLanes<double> lane(*sums, i - whole);
    lane.Add(center, x[i], y[i]);
    lane.Store(sums, i - whole);
  }
}
