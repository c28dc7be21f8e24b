// Gradients of symmetric matrices, which formulas that agree on such matrices need not share.

#ifndef PLUMBLINE_PIPELINE_CULPRIT_SYMMETRIC_GRADIENT_H_
#define PLUMBLINE_PIPELINE_CULPRIT_SYMMETRIC_GRADIENT_H_

#include "plumbline/compare.h"

namespace plumbline::pipeline {

// Whether a row of a backward call holds gradients that differ in their antisymmetric part alone,
// of a value that is a symmetric matrix on both sides (the last two axes count), though no diagonal
// one: symmetric because of how it was made. Of the directions in which such a value can move, the
// antisymmetric part of a gradient says nothing: `solve(S, B)` and `B^T inv(S)` have other
// gradients that mean the same. `noise`: largest relative error that counts as noise. False where
// the tensors were not recorded or cannot be read.
bool MeansTheSameForSymmetricValue(const Comparison& comparison, const ComparedRow& row,
                                   double noise);

}  // namespace plumbline::pipeline

#endif  // PLUMBLINE_PIPELINE_CULPRIT_SYMMETRIC_GRADIENT_H_
