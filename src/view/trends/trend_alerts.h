// What stands out in values over steps.

#ifndef PLUMBLINE_VIEW_TRENDS_TREND_ALERTS_H_
#define PLUMBLINE_VIEW_TRENDS_TREND_ALERTS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace plumbline::view {

enum class TrendAlertKind : uint8_t { kNan, kInf, kDeviates, kJumps };
std::string_view TrendAlertName(TrendAlertKind kind);  // "nan", "inf", "z", "ratio"

struct TrendAlert {
  TrendAlertKind kind = TrendAlertKind::kNan;
  double value = 0;
  double z = 0;      // deviations from the mean of the window
  double ratio = 0;  // to the median magnitude of the window; 0 where that is 0
};

// Follows one series, value by value: a value stands out that is NaN or infinite; or of which more
// than 4 standard deviations lie between it and the mean of the finite values of the window before
// it; or that is more than 10 times as large as the median magnitude of those. A window of fewer
// than 5 says nothing; a deviation below a thousandth of the mean counts as that, as noise of a
// constant is none.
class TrendWatch {
 public:
  explicit TrendWatch(size_t window) : window_(window) {}

  // The alert that the next value gives.
  std::optional<TrendAlert> Add(double value);

 private:
  [[nodiscard]] std::optional<TrendAlert> Judge(double value) const;

  size_t window_;
  size_t next_ = 0;             // place of the oldest one, once the window is full
  std::vector<double> values_;  // the last finite ones
};

// The rule in a sentence.
std::string TrendRule(size_t window);

}  // namespace plumbline::view

#endif  // PLUMBLINE_VIEW_TRENDS_TREND_ALERTS_H_
