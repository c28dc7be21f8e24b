// CompareHyperparameters(): which parameter of one training is which of the other.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <set>

#include "base/number_text.h"
#include "base/text_parts.h"
#include "pipeline/run_config/compare_configs.h"
#include "pipeline/run_config/text_similarity.h"

namespace plumbline::pipeline {
namespace {

using Parameter = std::pair<std::string, std::string>;  // name, value
using Parameters = std::vector<Parameter>;

constexpr double kAlike = 0.8;

// Names that mean the same.
constexpr std::array<std::array<std::string_view, 5>, 8> kAliases = {{
    {"learning_rate", "lr", "learningrate"},
    {"batch_size", "batch", "bs", "batch_size_per_gpu"},
    {"epochs", "num_epochs", "max_epochs", "epoch"},
    {"weight_decay", "wd", "weightdecay"},
    {"dropout", "dropout_rate", "drop_rate"},
    {"compute_dtype", "bf16", "fp32"},
    {"residual_dtype", "fp32_residual_connection"},
    {"softmax_compute_dtype", "attention_softmax_in_fp32"},
}};

// The last dotted part, in one spelling.
std::string PlainName(std::string_view name) {
  std::string plain(name.substr(name.rfind('.') + 1));
  std::ranges::replace(plain, '-', '_');
  return plain;
}

bool IsAlias(const std::string& a, const std::string& b) {
  return std::ranges::any_of(kAliases, [&](const auto& group) {
    return std::ranges::find(group, a) != group.end() && std::ranges::find(group, b) != group.end();
  });
}

struct Match {
  size_t index = 0;
  std::string how;
};

class Matcher {
 public:
  Matcher(const Parameters& bench, const Parameters& cmp) : bench_(bench), cmp_(cmp) {
    found_.resize(bench.size());
    for (size_t i = 0; i < cmp.size(); ++i) left_.insert(i);
  }

  // Every stage takes what the one before left, so that a good match is never taken by a worse.
  const std::vector<std::optional<Match>>& Run() {
    Stage([](const std::string& a, const std::string& b) { return a == b; }, "pure name");
    Stage([](const std::string& a, const std::string& b) { return PlainName(a) == PlainName(b); },
          "pure name");
    Stage([](const std::string& a,
             const std::string& b) { return IsAlias(PlainName(a), PlainName(b)); },
          "mapping");
    for (size_t i = 0; i < bench_.size(); ++i) {
      if (!found_[i]) MatchAlike(i);
    }
    return found_;
  }

  [[nodiscard]] const std::set<size_t>& left() const { return left_; }

 private:
  template <class Same>
  void Stage(const Same& same, std::string_view how) {
    for (size_t i = 0; i < bench_.size(); ++i) {
      if (found_[i]) continue;
      const auto at = std::ranges::find_if(
          left_, [&](size_t k) { return same(bench_[i].first, cmp_[k].first); });
      if (at == left_.end()) continue;
      found_[i] = Match{*at, std::string(how)};
      left_.erase(at);
    }
  }

  void MatchAlike(size_t i) {
    double best = kAlike;
    auto chosen = left_.end();
    const std::string name = LowerCase(PlainName(bench_[i].first));
    for (auto at = left_.begin(); at != left_.end(); ++at) {
      const double ratio = SimilarityRatio(name, LowerCase(PlainName(cmp_[*at].first)));
      if (ratio <= best) continue;
      best = ratio;
      chosen = at;
    }
    if (chosen == left_.end()) return;
    found_[i] = Match{*chosen, "similarity:" + PythonFloat(best)};
    left_.erase(chosen);
  }

  const Parameters& bench_;
  const Parameters& cmp_;
  std::vector<std::optional<Match>> found_;
  std::set<size_t> left_;
};

void CompareFile(const std::string& file, const Parameters& bench, const Parameters& cmp,
                 ConfigSheet& sheet) {
  Matcher matcher(bench, cmp);
  const std::vector<std::optional<Match>>& found = matcher.Run();
  const auto add = [&](const std::array<std::string, 5>& cells, ConfigLevel level) {
    std::vector<report::Cell> row = {file};
    row.insert(row.end(), cells.begin(), cells.end());
    row.emplace_back(std::string(ConfigLevelName(level)));
    sheet.rows.push_back(std::move(row));
    sheet.level = std::max(sheet.level, level);
  };
  for (size_t i = 0; i < bench.size(); ++i) {
    const auto& [name, value] = bench[i];
    if (!found[i]) {
      add({name, "Only in benchmark", value, "", ""}, ConfigLevel::kWarning);
      sheet.findings.push_back(fmt::format("{}: {} only in bench", name, value));
      continue;
    }
    const auto& [cmp_name, cmp_value] = cmp[found[i]->index];
    if (value == cmp_value) continue;
    add({name, cmp_name, value, cmp_value, found[i]->how}, ConfigLevel::kError);
    const std::string both = name == cmp_name ? name : fmt::format("{} ({})", name, cmp_name);
    sheet.findings.push_back(fmt::format("{}: {} in bench, {} in cmp", both, value, cmp_value));
  }
  for (const size_t k : matcher.left()) {
    add({"Only in comparison", cmp[k].first, "", cmp[k].second, ""}, ConfigLevel::kWarning);
    sheet.findings.push_back(fmt::format("{}: {} only in cmp", cmp[k].first, cmp[k].second));
  }
}

}  // namespace

void CompareHyperparameters(const ConfigPack& bench, const ConfigPack& cmp, ConfigSheet& sheet) {
  static const Parameters kNone;
  std::set<std::string> files;
  for (const auto* pack : {&bench, &cmp}) {
    for (const auto& entry : pack->hyperparameters) files.insert(entry.first);
  }
  for (const std::string& file : files) {
    const auto left = bench.hyperparameters.find(file), right = cmp.hyperparameters.find(file);
    CompareFile(file, left == bench.hyperparameters.end() ? kNone : left->second,
                right == cmp.hyperparameters.end() ? kNone : right->second, sheet);
  }
  std::ranges::sort(sheet.rows, [](const auto& a, const auto& b) {
    return std::ranges::lexicographical_compare(a, b,
                                                [](const report::Cell& x, const report::Cell& y) {
                                                  return report::CellText(x) < report::CellText(y);
                                                });
  });
}

}  // namespace plumbline::pipeline
