// The gradients of rotary_row.h.

static inline void AddTo(double* sum, VD term) {
  const VD total = LoadVector<double>(sum) + term;
  __builtin_memcpy(sum, &total, sizeof(total));
}

static void AddRotaryRow(const RotaryRow& row) {
  const size_t half = row.half;
  size_t i = 0;
  for (; i + kDoublesPerVector <= half; i += kDoublesPerVector) {
    const size_t j = i + half;
    const VD g = LoadWide(row.g + i), turned_g = LoadWide(row.g + j);
    const VD x = LoadWide(row.x + i), turned_x = LoadWide(row.x + j);
    const VD r1 = LoadVector<double>(row.r1 + i), turned_r1 = LoadVector<double>(row.r1 + j);
    const VD r2 = LoadVector<double>(row.r2 + i), turned_r2 = LoadVector<double>(row.r2 + j);
    StoreSingle(r1 * g + turned_r2 * turned_g, row.dx + i);
    StoreSingle(turned_r1 * turned_g - r2 * g, row.dx + j);
    AddTo(row.sum1 + i, g * x);
    AddTo(row.sum1 + j, turned_g * turned_x);
    AddTo(row.sum2 + i, -(g * turned_x));
    AddTo(row.sum2 + j, turned_g * x);
  }
  for (; i < half; ++i) {
    const size_t j = i + half;
    const double g = row.g[i], turned_g = row.g[j], x = row.x[i], turned_x = row.x[j];
    row.dx[i] = (float)(row.r1[i] * g + row.r2[j] * turned_g);
    row.dx[j] = (float)(row.r1[j] * turned_g - row.r2[i] * g);
    row.sum1[i] += g * x;
    row.sum1[j] += turned_g * turned_x;
    row.sum2[i] -= g * turned_x;
    row.sum2[j] += turned_g * x;
  }
}
