// Sums and counts of kernels/magnitude_sums.h, slice by slice as those of deviation_sums.inl.

// x where it is finite, else 0.
static inline VD FiniteOrZero(VD x) {
  return Select(Less(Abs(x), VD{} + __builtin_inf()), x, VD{});
}
static inline double FiniteOrZero(double x) { return Abs(x) < __builtin_inf() ? x : 0.0; }

template <class V>
struct MagnitudeLanes {
  V absolute, sum, squares;

  MagnitudeLanes(const MagnitudeSums& sums, size_t lane)
      : absolute(LoadLanes<V>(sums.absolute + lane)),
        sum(LoadLanes<V>(sums.sum + lane)),
        squares(LoadLanes<V>(sums.squares + lane)) {}
  template <bool exact>
  void Add(V value) {
    const V x = FiniteOrZero(value);
    absolute += Abs(x);
    sum += x;
    squares = AddProduct<exact>(squares, x, x);
  }
  void Store(MagnitudeSums* sums, size_t lane) const {
    StoreLanes(absolute, sums->absolute + lane);
    StoreLanes(sum, sums->sum + lane);
    StoreLanes(squares, sums->squares + lane);
  }
};

template <class T>
static void AddMagnitudeSlice(const T* x, size_t count, MagnitudeSums* sums) {
  const size_t whole = count / kLanes * kLanes;
  for (size_t v = 0; v < kLanes; v += kDoublesPerVector) {
    MagnitudeLanes<VD> lanes(*sums, v);
    for (size_t i = v; i < whole; i += kLanes) {
      lanes.template Add<sizeof(T) == 4>(LoadWide(x + i));
    }
    lanes.Store(sums, v);
  }
  for (size_t i = whole, l = 0; i < count; ++i, ++l) {
    MagnitudeLanes<double> lane(*sums, l);
    lane.template Add<false>(static_cast<double>(x[i]));
    lane.Store(sums, l);
  }
}

// `start` and `end` as T: the outermost of its values within the range.
template <class T>
static void CountOutside(const T* x, size_t count, T start, T end, RangeCount* range) {
  typedef typename VectorOf<T>::Type Vector;
  typedef typename VectorOf<T>::Counter Counter;
  constexpr size_t kPerVector = PL_WIDTH / sizeof(T);
  const Vector first = Vector{} + start, last = Vector{} + end;
  Counter below = {}, above = {};
  const size_t whole = count / kPerVector * kPerVector;
  for (size_t i = 0; i < whole; i += kPerVector) {
    const Vector value = LoadVector<T>(x + i);
    below = Count(below, Less(value, first));
    above = Count(above, Less(last, value));
  }
  for (size_t l = 0; l < kPerVector; ++l) {
    range->below += static_cast<uint64_t>(below[l]);
    range->above += static_cast<uint64_t>(above[l]);
  }
  for (size_t i = whole; i < count; ++i) {
    range->below += x[i] < start ? 1 : 0;
    range->above += x[i] > end ? 1 : 0;
  }
}

static inline float FirstFloatFrom(double start) {
  const float near = static_cast<float>(start);
  return static_cast<double>(near) < start ? __builtin_nextafterf(near, __builtin_inff()) : near;
}
static inline float LastFloatTo(double end) {
  const float near = static_cast<float>(end);
  return static_cast<double>(near) > end ? __builtin_nextafterf(near, -__builtin_inff()) : near;
}

// Calls body(x, count) for slices of the run as T.
template <class T, class F>
static inline void ForSingleSlices(DType dtype, const void* data, size_t count, const F& body) {
  constexpr DType kForm = sizeof(T) == 4 ? DType::kFloat32 : DType::kFloat64;
  constexpr size_t kLength = 8192 / sizeof(T);
  alignas(64) T buffer[kLength];
  const char* from = static_cast<const char*>(data);
  const size_t bytes = ElementBytes(dtype);
  for (size_t i = 0; i < count; i += kLength) {
    const size_t n = count - i < kLength ? count - i : kLength;
    body(SliceAs(dtype, kForm, from + i * bytes, n, buffer), n);
  }
}

struct MagnitudeAdder {
  MagnitudeSums* sums;
  template <class T>
  void operator()(const T* x, size_t count) const {
    AddMagnitudeSlice(x, count, sums);
  }
};
struct RangeCounter {
  RangeCount* range;
  void operator()(const float* x, size_t count) const {
    CountOutside(x, count, FirstFloatFrom(range->start), LastFloatTo(range->end), range);
  }
  void operator()(const double* x, size_t count) const {
    CountOutside(x, count, range->start, range->end, range);
  }
};

static void Magnitudes(DType dtype, const void* data, size_t count, MagnitudeSums* sums) {
  const MagnitudeAdder body{sums};
  if (FitsFloat(dtype)) return ForSingleSlices<float>(dtype, data, count, body);
  ForSingleSlices<double>(dtype, data, count, body);
}

static void CountRangeOf(DType dtype, const void* data, size_t count, RangeCount* range) {
  const RangeCounter body{range};
  if (FitsFloat(dtype)) return ForSingleSlices<float>(dtype, data, count, body);
  ForSingleSlices<double>(dtype, data, count, body);
}

// Of pairs that are finite on both sides; of others zeros.
template <class T>
static void AddChangeSlice(const T* x, const T* p, size_t count, ChangeSums* sums) {
  const size_t whole = count / kLanes * kLanes;
  const VD inf = VD{} + __builtin_inf();
  for (size_t v = 0; v < kLanes; v += kDoublesPerVector) {
    VD change = LoadLanes<VD>(sums->change + v), before = LoadLanes<VD>(sums->before + v);
    for (size_t i = v; i < whole; i += kLanes) {
      const VD a = LoadWide(x + i), b = LoadWide(p + i);
      const TruthD finite = Both(Less(Abs(a), inf), Less(Abs(b), inf));
      change += Select(finite, Abs(a - b), VD{});
      before += Select(finite, Abs(b), VD{});
    }
    StoreLanes(change, sums->change + v);
    StoreLanes(before, sums->before + v);
  }
  for (size_t i = whole, l = 0; i < count; ++i, ++l) {
    const double a = static_cast<double>(x[i]), b = static_cast<double>(p[i]);
    const bool finite = Abs(a) < __builtin_inf() && Abs(b) < __builtin_inf();
    sums->change[l] += finite ? Abs(a - b) : 0.0;
    sums->before[l] += finite ? Abs(b) : 0.0;
  }
}

template <class T>
static void CountAbove(const T* x, const T* p, size_t count, ChangeLimit* limit) {
  const VD inf = VD{} + __builtin_inf();
  const VD rtol = VD{} + limit->rtol, atol = VD{} + limit->atol;
  VL above = {};
  const size_t whole = count / kDoublesPerVector * kDoublesPerVector;
  for (size_t i = 0; i < whole; i += kDoublesPerVector) {
    const VD a = LoadWide(x + i), b = LoadWide(p + i);
    const TruthD finite = Both(Less(Abs(a), inf), Less(Abs(b), inf));
    above = Count(above, Both(finite, Less(atol + rtol * Abs(b), Abs(a - b))));
  }
  for (size_t l = 0; l < kDoublesPerVector; ++l) limit->above += static_cast<uint64_t>(above[l]);
  for (size_t i = whole; i < count; ++i) {
    const double a = static_cast<double>(x[i]), b = static_cast<double>(p[i]);
    const bool finite = Abs(a) < __builtin_inf() && Abs(b) < __builtin_inf();
    limit->above += finite && Abs(a - b) > limit->atol + limit->rtol * Abs(b) ? 1 : 0;
  }
}

struct ChangeAdder {
  ChangeSums* sums;
  ChangeLimit* limits;
  size_t limit_count;
  template <class T>
  void operator()(const T* x, const T* p, size_t count) const {
    if (sums != nullptr) AddChangeSlice(x, p, count, sums);
    for (size_t i = 0; i < limit_count; ++i) CountAbove(x, p, count, limits + i);
  }
};

static void ComplexChanges(const PairOfRuns& runs, const ChangeAdder& to) {
  const char* target = static_cast<const char*>(runs.target);
  const char* golden = static_cast<const char*>(runs.golden);
  for (size_t i = 0; i < runs.count; ++i) {
    double t[2], g[2];
    LoadComplex(runs.target_dtype, target, i, t);
    LoadComplex(runs.golden_dtype, golden, i, g);
    const double distance = Modulus(t[0] - g[0], t[1] - g[1]), before = Modulus(g[0], g[1]);
    if (!(distance < __builtin_inf() && before < __builtin_inf())) continue;
    const size_t l = i % kLanes;
    if (to.sums != nullptr) {
      to.sums->change[l] += distance;
      to.sums->before[l] += before;
    }
    for (size_t k = 0; k < to.limit_count; ++k) {
      to.limits[k].above += distance > to.limits[k].atol + to.limits[k].rtol * before ? 1 : 0;
    }
  }
}

static void Changes(const PairOfRuns& runs, ChangeSums* sums, ChangeLimit* limits,
                    size_t limit_count) {
  const ChangeAdder body{sums, limits, limit_count};
  if (IsComplex(runs.target_dtype) || IsComplex(runs.golden_dtype)) {
    return ComplexChanges(runs, body);
  }
  ForSlices(runs, body);
}
