#include "formats/json/vis_record.h"

#include <array>
#include <utility>

#include "base/text/json.h"

namespace plumbline::vis {
namespace {

// Upstream's colours of newer releases. Ranges are closed on the left; 1 belongs to the last one.
struct Band {
  std::string_view color, range, level, text;
};
constexpr std::array<Band, 4> kBands = {{
    {"#FFFCF3", "[0, 0.3]", "pass", "No difference that rounding or the inputs do not explain."},
    {"#FFDC7F", "[0.3, 0.6]", "warning",
     "A difference that may be an error, or values that could not be compared."},
    {"#FF704D", "[0.6, 1]", "error", "A difference that nothing before this node explains."},
    {"#C7C7C7", "[]", "unmatched node", "No counterpart in the other run."},
}};

using Tip = std::pair<std::string_view, std::string_view>;
constexpr Tip kSummaryTips[] = {
    {"Max diff", "The largest value of the target less that of the golden run."},
    {"Min diff", "The smallest value of the target less that of the golden run."},
    {"Mean diff", "The mean of the target less that of the golden run."},
    {"L2norm diff", "The L2 norm of the target less that of the golden run."}};
constexpr Tip kDigestTips[] = {{"md5", "Checksum of the values: equal for equal values."}};
constexpr Tip kTensorTips[] = {
    {"One Thousandth Err Ratio",
     "Share of the elements whose relative error is below 0.001; 1 is best."},
    {"Five Thousandths Err Ratio",
     "Share of the elements whose relative error is below 0.005; 1 is best."},
    {"Cosine", "Cosine of the two tensors as vectors; 1 is best, above 0.99 is usual."},
    {"MaxAbsErr", "Largest difference of two elements; 0 is best, below 0.001 is usual."},
    {"MaxRelativeErr", "Largest relative difference; infinite or absent where golden is 0."}};

void AppendMember(std::string_view key, std::string_view text, bool is_first, std::string& out) {
  if (!is_first) out += ", ";
  json::AppendString(key, out);
  out += ": ";
  json::AppendString(text, out);
}

template <size_t kCount>
std::string TipsJson(const Tip (&tips)[kCount]) {
  std::string out = "{";
  for (const auto& [key, text] : tips) AppendMember(key, text, out.size() == 1, out);
  return out + "}";
}

}  // namespace

std::string_view LevelName(Level level) { return kBands[static_cast<size_t>(level)].level; }

double IndexOf(Level level) { return static_cast<double>(level) / 2; }

std::string ColorsJson(Task task) {
  if (task.empty()) return "null";
  std::string out = "{";
  for (const Band& band : kBands) {
    if (task == kStructure && band.range != "[]") continue;
    if (out.size() > 1) out += ", ";
    json::AppendString(band.color, out);
    out += ": {\"value\": ";
    out += band.range;
    AppendMember("description", band.text, false, out);
    AppendMember("accuracy_level", band.level, false, out);
    out += '}';
  }
  return out + "}";
}

std::string ToolTipJson(Task task) {
  if (task.empty()) return {};
  if (task == kSummary) return TipsJson(kSummaryTips);
  return task == kDigests ? TipsJson(kDigestTips) : TipsJson(kTensorTips);
}

std::string ListJson(const std::vector<std::string_view>& texts) {
  std::string out = "[";
  for (size_t i = 0; i < texts.size(); ++i) {
    if (i > 0) out += ", ";
    json::AppendString(texts[i], out);
  }
  return out + "]";
}

}  // namespace plumbline::vis
