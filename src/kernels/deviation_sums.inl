// Sums of kernels/deviation_sums.h. The loops of the first pass run over one vector of lanes each,
// so that all of its sums stay in registers; the slices are short enough to stay in L1 for the next
// vector.
//
// Both sides are taken as T: float where that is exact for the types of both, else double. Pairs
// with a complex side have a loop of their own; their spreads are of the moduli, rounded to float.

// The same operations on one element, for the end of a run.
static inline double Abs(double x) { return __builtin_fabs(x); }
static inline double Max(double x, double best) { return x > best ? x : best; }
static inline double Min(double x, double best) { return x < best ? x : best; }
static inline bool Less(double x, double y) { return x < y; }
static inline double Select(bool where, double yes, double no) { return where ? yes : no; }
template <bool exact>
static inline double AddProduct(double sum, double x, double y) {
  return sum + x * y;
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

// Lanes of a DeviationSums that one loop works on, but for the extremes.
template <class V>
struct DeviationLanes {
  V x, y, xx, yy, xy, absolute, squares, relative, max_absolute, max_relative;

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
        max_relative(LoadLanes<V>(sums.max_relative + lane)) {}

  // `exact`: the product of any two values is a double.
  template <bool exact>
  void Add(V a, V b) {
    const V difference = Abs(a - b);
    const V above_least = V{} + kAboveSmallestDivisor;
    // NaN is not below, and goes through.
    const V ratio = Select(Less(Abs(b), above_least), V{}, Abs(a / b - 1.0));
    x += a;
    y += b;
    xx = AddProduct<exact>(xx, a, a);
    yy = AddProduct<exact>(yy, b, b);
    xy = AddProduct<exact>(xy, a, b);
    absolute += difference;
    squares += difference * difference;
    relative += ratio;
    max_absolute = Max(difference, max_absolute);
    max_relative = Max(ratio, max_relative);
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
  }

 private:
  // The next double: |y| below it is |y| not above the limit.
  static constexpr double kAboveSmallestDivisor =
      __builtin_bit_cast(double, __builtin_bit_cast(uint64_t, kSmallestDivisor) + 1);
};

template <class V>
struct SpreadLanes {
  V squares_x, squares_y, p, q, divergence;

  void Load(const SpreadSums& sums, size_t lane) {
    squares_x = LoadLanes<V>(sums.squares_x + lane);
    squares_y = LoadLanes<V>(sums.squares_y + lane);
    p = LoadLanes<V>(sums.p + lane);
    q = LoadLanes<V>(sums.q + lane);
    divergence = LoadLanes<V>(sums.divergence + lane);
  }

  // Everything but the divergence; gives the two probabilities that it is of.
  void Add(const SpreadCenter& center, V a, V b, V* of_a, V* of_b) {
    const V dx = a - center.mean_x, dy = b - center.mean_y;
    const V floor = V{} + center.floor;
    *of_a = Max((a - center.offset_x) * center.scale_x, floor);
    *of_b = Max((b - center.offset_y) * center.scale_y, floor);
    squares_x += dx * dx;
    squares_y += dy * dy;
    p += *of_a;
    q += *of_b;
  }

  void Store(SpreadSums* sums, size_t lane) const {
    StoreLanes(squares_x, sums->squares_x + lane);
    StoreLanes(squares_y, sums->squares_y + lane);
    StoreLanes(p, sums->p + lane);
    StoreLanes(q, sums->q + lane);
    StoreLanes(divergence, sums->divergence + lane);
  }
};

// Smallest and largest of whole groups of lanes. NaN is left out.
template <class T>
static void AddExtremes(const T* data, size_t whole, double* min, double* max) {
  typedef typename VectorOf<T>::Type Vector;
  constexpr size_t kPerVector = PL_WIDTH / sizeof(T);
  for (size_t v = 0; v < kLanes; v += kPerVector) {
    Vector least = Vector{} + static_cast<T>(__builtin_inf());
    Vector most = -least;
    for (size_t i = v; i < whole; i += kLanes) {
      const Vector value = LoadVector<T>(data + i);
      least = Min(value, least);
      most = Max(value, most);
    }
    for (size_t l = 0; l < kPerVector; ++l) {
      min[v + l] = Min(static_cast<double>(least[l]), min[v + l]);
      max[v + l] = Max(static_cast<double>(most[l]), max[v + l]);
    }
  }
}

template <class T>
static void AddDeviationSlice(const T* x, const T* y, size_t count, DeviationSums* sums) {
  const size_t whole = count / kLanes * kLanes;
  for (size_t v = 0; v < kLanes; v += kDoublesPerVector) {
    DeviationLanes<VD> lanes(*sums, v);
    for (size_t i = v; i < whole; i += kLanes) {
      lanes.template Add<sizeof(T) == 4>(LoadWide(x + i), LoadWide(y + i));
    }
    lanes.Store(sums, v);
  }
  AddExtremes(x, whole, sums->min_x, sums->max_x);
  AddExtremes(y, whole, sums->min_y, sums->max_y);
  for (size_t i = whole, l = 0; i < count; ++i, ++l) {
    const double a = static_cast<double>(x[i]), b = static_cast<double>(y[i]);
    DeviationLanes<double> lane(*sums, l);
    lane.Add<false>(a, b);
    lane.Store(sums, l);
    sums->min_x[l] = Min(a, sums->min_x[l]);
    sums->max_x[l] = Max(a, sums->max_x[l]);
    sums->min_y[l] = Min(b, sums->min_y[l]);
    sums->max_y[l] = Max(b, sums->max_y[l]);
  }
}

// All lanes at a time: whether the short series will do is decided for all of them together, so
// that the width of a vector does not count.
template <class T>
static void AddSpreadSlice(const SpreadCenter& center, const T* x, const T* y, size_t count,
                           SpreadSums* sums) {
  const size_t whole = count / kLanes * kLanes;
  SpreadLanes<VD> lanes[kWide];
  PL_UNROLL
  for (size_t v = 0; v < kWide; ++v) lanes[v].Load(*sums, v * kDoublesPerVector);
  for (size_t i = 0; i < whole; i += kLanes) {
    VD p[kWide], q[kWide];
    TruthD is_far = kNowhere;
    PL_UNROLL
    for (size_t v = 0; v < kWide; ++v) {
      const size_t at = i + v * kDoublesPerVector;
      lanes[v].Add(center, LoadWide(x + at), LoadWide(y + at), &p[v], &q[v]);
      is_far = Either(is_far, IsFarApart(p[v], q[v]));
    }
    if (Any(is_far)) {
      PL_UNROLL
      for (size_t v = 0; v < kWide; ++v) {
        lanes[v].divergence += p[v] * LogRatio<VD>(p[v], q[v]);
      }
    } else {
      PL_UNROLL
      for (size_t v = 0; v < kWide; ++v) {
        lanes[v].divergence += p[v] * LogRatioOfNear(p[v], q[v]);
      }
    }
  }
  PL_UNROLL
  for (size_t v = 0; v < kWide; ++v) lanes[v].Store(sums, v * kDoublesPerVector);
  for (size_t i = whole, l = 0; i < count; ++i, ++l) {
    SpreadLanes<double> lane;
    lane.Load(*sums, l);
    double p = 0, q = 0;
    lane.Add(center, static_cast<double>(x[i]), static_cast<double>(y[i]), &p, &q);
    lane.divergence += p * LogRatio<double>(p, q);
    lane.Store(sums, l);
  }
}

// Calls body(x, y, count) for slices of both sides as T.
template <class T, class F>
static inline void ForSlicesAs(const PairOfRuns& runs, F body) {
  constexpr DType kForm = sizeof(T) == 4 ? DType::kFloat32 : DType::kFloat64;
  constexpr size_t kDeviationSlice = 4096 / sizeof(T);
  alignas(64) T x[kDeviationSlice];
  alignas(64) T y[kDeviationSlice];
  const char* target = static_cast<const char*>(runs.target);
  const char* golden = static_cast<const char*>(runs.golden);
  const size_t target_bytes = ElementBytes(runs.target_dtype);
  const size_t golden_bytes = ElementBytes(runs.golden_dtype);
  for (size_t i = 0; i < runs.count; i += kDeviationSlice) {
    const size_t n = runs.count - i < kDeviationSlice ? runs.count - i : kDeviationSlice;
    body(SliceAs(runs.target_dtype, kForm, target + i * target_bytes, n, x),
         SliceAs(runs.golden_dtype, kForm, golden + i * golden_bytes, n, y), n);
  }
}

static inline bool IsComplex(DType dtype) {
  return dtype == DType::kComplex64 || dtype == DType::kComplex128;
}

static inline bool IsTakenAsFloat(DType dtype) {
  return FitsFloat(dtype) || IsComplex(dtype);
}

template <class F>
static inline void ForSlices(const PairOfRuns& runs, F body) {
  if (IsTakenAsFloat(runs.target_dtype) && IsTakenAsFloat(runs.golden_dtype)) {
    ForSlicesAs<float>(runs, body);
  } else {
    ForSlicesAs<double>(runs, body);
  }
}

// Bodies of ForSlices: what a lambda captures is not compiled for the target by every compiler.
struct DeviationAdder {
  DeviationSums* sums;
  template <class T>
  void operator()(const T* x, const T* y, size_t count) const {
    AddDeviationSlice(x, y, count, sums);
  }
};
struct SpreadAdder {
  const SpreadCenter& center;
  SpreadSums* sums;
  template <class T>
  void operator()(const T* x, const T* y, size_t count) const {
    AddSpreadSlice(center, x, y, count, sums);
  }
};

// Complex numbers, or a complex and a real side, in doubles. Of a complex side `a` or `b` is the
// modulus.
static void ComplexDeviations(const PairOfRuns& runs, DeviationSums* sums) {
  const char* target = static_cast<const char*>(runs.target);
  const char* golden = static_cast<const char*>(runs.golden);
  for (size_t i = 0; i < runs.count; ++i) {
    double t[2], g[2];
    LoadComplex(runs.target_dtype, target, i, t);
    LoadComplex(runs.golden_dtype, golden, i, g);
    const double a = IsComplex(runs.target_dtype) ? Modulus(t[0], t[1]) : t[0];
    const double b = IsComplex(runs.golden_dtype) ? Modulus(g[0], g[1]) : g[0];
    const double distance = Modulus(t[0] - g[0], t[1] - g[1]);
    const double ratio = Abs(b) <= kSmallestDivisor ? 0.0 : distance / Abs(b);  // NaN goes through
    const size_t l = i % kLanes;
    sums->x[l] += a;
    sums->y[l] += b;
    sums->xx[l] += a * a;
    sums->yy[l] += b * b;
    sums->xy[l] += t[0] * g[0] + t[1] * g[1];
    sums->absolute[l] += distance;
    sums->squares[l] += distance * distance;
    sums->relative[l] += ratio;
    sums->max_absolute[l] = Max(distance, sums->max_absolute[l]);
    sums->max_relative[l] = Max(ratio, sums->max_relative[l]);
    sums->min_x[l] = Min(a, sums->min_x[l]);
    sums->max_x[l] = Max(a, sums->max_x[l]);
    sums->min_y[l] = Min(b, sums->min_y[l]);
    sums->max_y[l] = Max(b, sums->max_y[l]);
  }
}

static void Deviations(const PairOfRuns& runs, DeviationSums* sums) {
  if (IsComplex(runs.target_dtype) || IsComplex(runs.golden_dtype)) {
    return ComplexDeviations(runs, sums);
  }
  ForSlices(runs, DeviationAdder{sums});
}

static void Spreads(const SpreadCenter& center, const PairOfRuns& runs, SpreadSums* sums) {
  ForSlices(runs, SpreadAdder{center, sums});
}
