// How alike two texts are, as Python's difflib counts it.

#ifndef PLUMBLINE_PIPELINE_RUN_CONFIG_TEXT_SIMILARITY_H_
#define PLUMBLINE_PIPELINE_RUN_CONFIG_TEXT_SIMILARITY_H_

#include <string_view>

namespace plumbline::pipeline {

// 2 M / T: M characters in matching blocks (the longest one, then those left and right of it), T
// characters of both. 1 for two empty texts. Time grows with the product of the lengths; texts are
// cut at 1000 characters.
double SimilarityRatio(std::string_view a, std::string_view b);

}  // namespace plumbline::pipeline

#endif  // PLUMBLINE_PIPELINE_RUN_CONFIG_TEXT_SIMILARITY_H_
