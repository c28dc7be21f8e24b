// C += A B for the panels of panel_product.h.

// Vectors of one row of a panel, and rows of C held in registers: 8 accumulators hide the latency
// of additions at every width and leave registers for the factors.
static constexpr size_t kPanelVectors = kPanelColumns / kDoublesPerVector;
static constexpr size_t kPanelRows = 8 / kPanelVectors;

template <size_t rows>
static inline void PanelTile(const PanelProduct& p, const double* a, const double* panel,
                             size_t depth, double* c) {
  VD sums[rows][kPanelVectors] = {};
  for (size_t k = 0; k < depth; ++k) {
    VD b[kPanelVectors];
    PL_UNROLL for (size_t v = 0; v < kPanelVectors; ++v) {
      b[v] = LoadVector<double>(panel + k * kPanelColumns + v * kDoublesPerVector);
    }
    PL_UNROLL for (size_t i = 0; i < rows; ++i) {
      const double factor = a[i * p.a_row_stride + k * p.a_depth_stride];
      PL_UNROLL for (size_t v = 0; v < kPanelVectors; ++v) sums[i][v] += factor * b[v];
    }
  }
  PL_UNROLL for (size_t i = 0; i < rows; ++i) {
    PL_UNROLL for (size_t v = 0; v < kPanelVectors; ++v) {
      double* const to = c + i * p.c_stride + v * kDoublesPerVector;
      const VD sum = LoadVector<double>(to) + sums[i][v];
      __builtin_memcpy(to, &sum, sizeof(sum));
    }
  }
}

static void MultiplyPanels(const PanelProduct& p) {
  if (p.rows == 0) return;  // there may be no memory to point into
  for (size_t first = 0; first < p.depth; first += kPanelDepth) {
    const size_t depth = p.depth - first < kPanelDepth ? p.depth - first : kPanelDepth;
    for (size_t n = 0; n < p.panel_count; ++n) {
      const double* const panel = p.panels + (n * p.depth + first) * kPanelColumns;
      const double* const a = p.a + first * p.a_depth_stride;
      double* const c = p.c + n * kPanelColumns;
      size_t i = 0;
      for (; i + kPanelRows <= p.rows; i += kPanelRows) {
        PanelTile<kPanelRows>(p, a + i * p.a_row_stride, panel, depth, c + i * p.c_stride);
      }
      for (; i < p.rows; ++i) {
        PanelTile<1>(p, a + i * p.a_row_stride, panel, depth, c + i * p.c_stride);
      }
    }
  }
}
