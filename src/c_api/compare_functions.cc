// The functions of c_api.h that compare two recordings.

#include <fmt/format.h>

#include <string>
#include <utility>
#include <vector>

#include "base/process/parallel.h"
#include "base/text/text_parts.h"
#include "c_api/guard.h"
#include "plumbline/compare.h"

using plumbline::CompareOptions;
using plumbline::Comparison;
using plumbline::Status;
using plumbline::c_api::Fill;
using plumbline::c_api::Guard;
using plumbline::c_api::Need;

struct plumb_comparison {
  Comparison comparison;
  bool is_failure = false;
  std::string text, json, answer;
};

namespace {

// "wrong,unjudged" as a list.
std::vector<std::string> WordsOf(const char* list) {
  std::vector<std::string> words;
  for (const std::string_view word : plumbline::SplitAt(list, ',')) words.emplace_back(word);
  return words;
}

plumbline::Result<plumb_comparison> Compared(const std::string& target, const std::string& golden,
                                             const plumb_compare_options& asked) {
  using plumbline::kMostThreads;
  if (asked.threads < 0 || asked.threads > kMostThreads) {
    return plumbline::Error(
        plumbline::ErrorCode::kInvalidArgument,
        fmt::format("threads: {} (expected 0 to {})", asked.threads, kMostThreads));
  }
  CompareOptions options;
  options.fuzzy_match = asked.fuzzy_match != 0;
  options.salvage = asked.salvage != 0;
  options.threads = asked.threads;
  if (asked.noise_path != nullptr) options.noise_path = asked.noise_path;
  plumb_comparison made;
  PL_TRY_ASSIGN(made.comparison, plumbline::CompareRuns(target, golden, options));
  const char* const conditions = asked.fail_on == nullptr ? "wrong" : asked.fail_on;
  PL_TRY_ASSIGN(made.is_failure, plumbline::FailsOn(made.comparison, WordsOf(conditions)));
  made.text = plumbline::SummaryText(made.comparison);
  made.json = plumbline::SummaryJson(made.comparison);
  made.answer = made.text.substr(0, made.text.find('\n'));
  return made;
}

}  // namespace

int32_t plumb_compare(const char* target, const char* golden, const plumb_compare_options* options,
                      plumb_comparison** comparison, plumb_error* error) noexcept {
  if (comparison != nullptr) *comparison = nullptr;
  return Guard(error, [&]() -> Status {
    PL_TRY(Need(target, "target"));
    PL_TRY(Need(golden, "golden"));
    PL_TRY(Need(comparison, "comparison"));
    const plumb_compare_options asked =
        plumbline::c_api::Read(options, plumb_compare_options PLUMB_COMPARE_OPTIONS_INIT);
    PL_TRY_ASSIGN(plumb_comparison made, Compared(target, golden, asked));
    *comparison = new plumb_comparison(std::move(made));
    return {};
  });
}

void plumb_comparison_close(plumb_comparison* comparison) noexcept { delete comparison; }

int32_t plumb_comparison_verdict(const plumb_comparison* comparison, plumb_verdict* verdict,
                                 plumb_error* error) noexcept {
  return Guard(error, [&]() -> Status {
    PL_TRY(Need(comparison, "comparison"));
    const Comparison& made = comparison->comparison;
    plumb_verdict filled{};
    filled.exit_state = comparison->is_failure ? 1 : 0;
    filled.is_complete = made.is_complete() ? 1 : 0;
    filled.answer = comparison->answer.c_str();
    if (made.first_wrong_call) {
      const plumbline::FirstWrongCall& wrong = *made.first_wrong_call;
      filled.first_wrong = wrong.name.c_str();
      filled.first_item = wrong.item.c_str();
      filled.what = wrong.what.c_str();
      filled.cause = wrong.cause.c_str();
      filled.cause_text = wrong.cause_text.c_str();
      filled.confidence = wrong.confidence.c_str();
    }
    static_assert(sizeof(filled.rows) == sizeof(made.counts.rows));
    for (size_t i = 0; i < plumbline::kVerdictCount; ++i) filled.rows[i] = made.counts.rows[i];
    filled.calls = made.counts.calls;
    filled.unmatched[0] = made.counts.unmatched_target;
    filled.unmatched[1] = made.counts.unmatched_golden;
    return Fill(filled, verdict, "verdict");
  });
}

const char* plumb_comparison_text(const plumb_comparison* comparison) noexcept {
  return comparison == nullptr ? nullptr : comparison->text.c_str();
}

const char* plumb_comparison_json(const plumb_comparison* comparison) noexcept {
  return comparison == nullptr ? nullptr : comparison->json.c_str();
}

int32_t plumb_comparison_write(plumb_comparison* comparison, const char* directory,
                               const char* formats, plumb_error* error) noexcept {
  return Guard(error, [&]() -> Status {
    PL_TRY(Need(comparison, "comparison"));
    PL_TRY(Need(directory, "directory"));
    CompareOptions options;
    options.output_dir = directory;
    if (formats != nullptr) {
      PL_TRY_ASSIGN(options.formats, plumbline::ReportFormatsOf(WordsOf(formats)));
    }
    return plumbline::WriteComparison(comparison->comparison, options);
  });
}
