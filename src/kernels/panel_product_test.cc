#include "kernels/panel_product.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "kernels/cpu_target.h"
#include "kernels/kernel_table.h"

namespace plumbline::kernels {
namespace {

std::vector<double> Random(size_t count, unsigned seed) {
  std::mt19937 engine(seed);
  std::uniform_real_distribution<double> uniform(-1, 1);
  std::vector<double> values(count);
  for (double& value : values) value = uniform(engine);
  return values;
}

// Element (i, j) with the order of additions that the header promises.
double ElementByDefinition(const PanelProduct& p, size_t i, size_t j) {
  const double* const panel = p.panels + j / kPanelColumns * p.depth * kPanelColumns;
  double element = p.c[i * p.c_stride + j];
  for (size_t first = 0; first < p.depth; first += kPanelDepth) {
    double sum = 0;
    for (size_t k = first; k < std::min(p.depth, first + kPanelDepth); ++k) {
      const double factor = p.a[i * p.a_row_stride + k * p.a_depth_stride];
      sum += factor * panel[k * kPanelColumns + j % kPanelColumns];
    }
    element += sum;
  }
  return element;
}

void MultiplyByDefinition(const PanelProduct& p) {
  for (size_t i = 0; i < p.rows; ++i) {
    for (size_t j = 0; j < p.panel_count * kPanelColumns; ++j) {
      p.c[i * p.c_stride + j] = ElementByDefinition(p, i, j);
    }
  }
}

TEST(PanelProduct, EveryTargetAddsInTheSameOrder) {
  for (const CpuTarget target : UsableTargets()) {
    for (const size_t rows : {0ul, 1ul, 2ul, 3ul, 5ul, 8ul, 13ul}) {
      for (const size_t depth : {0ul, 1ul, 7ul, 255ul, 256ul, 257ul, 600ul}) {
        for (const bool is_transposed : {false, true}) {
          const std::vector<double> a = Random(rows * depth, 1), b = Random(depth * 24, 2);
          std::vector<double> c = Random(rows * 26, 3), expected = c;
          PanelProduct product{a.data(), depth, 1, rows, depth, b.data(), 3, c.data(), 26};
          if (is_transposed) product.a_row_stride = 1, product.a_depth_stride = rows;
          TableFor(target).multiply_panels(product);
          product.c = expected.data();
          MultiplyByDefinition(product);
          EXPECT_EQ(c, expected) << rows << " rows, depth " << depth;
        }
      }
    }
  }
}

}  // namespace
}  // namespace plumbline::kernels
