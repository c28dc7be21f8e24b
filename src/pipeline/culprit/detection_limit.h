// What a wrong run could have done in one comparison without being told.

#ifndef PLUMBLINE_PIPELINE_CULPRIT_DETECTION_LIMIT_H_
#define PLUMBLINE_PIPELINE_CULPRIT_DETECTION_LIMIT_H_

#include "plumbline/compare.h"

namespace plumbline::pipeline {

// Of rows that have been judged.
DetectionLimit LimitOf(const Comparison& comparison);

}  // namespace plumbline::pipeline

#endif  // PLUMBLINE_PIPELINE_CULPRIT_DETECTION_LIMIT_H_
