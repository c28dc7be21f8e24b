// The page with curves over the steps of a training (html/), which several commands fill.

#ifndef PLUMBLINE_WATCH_CURVE_PAGE_H_
#define PLUMBLINE_WATCH_CURVE_PAGE_H_

#include <string>
#include <vector>

#include "plumbline/result.h"

namespace plumbline {

// `summary`: for readers without scripts. `data`: what html/trend.js reads, as JSON that can stand
// in a script. kIo.
Status WriteCurvePage(const std::string& path, const std::string& summary, const std::string& data);

// [first,second,...] with four digits, more than a curve shows; null: no number.
void AppendCurvePoints(const std::vector<float>& points, std::string& out);
template <class T>
void AppendCurveIntegers(const std::vector<T>& numbers, std::string& out) {
  out += '[';
  for (const T number : numbers) {
    if (out.back() != '[') out += ',';
    out += std::to_string(number);
  }
  out += ']';
}

}  // namespace plumbline

#endif  // PLUMBLINE_WATCH_CURVE_PAGE_H_
