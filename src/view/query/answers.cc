#include "view/query/answers.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "view/query/question_table.h"

namespace plumbline::view {
namespace {

struct Known {
  std::string_view name;
  Result<std::string> (*answer)(const Question& question);
};

constexpr std::array kKnown = {
    Known{"meta", AnswerMeta},
    Known{"children", AnswerChildren},
    Known{"path", AnswerPath},
    Known{"node", AnswerNode},
    Known{"find", AnswerFind},
    Known{"first", AnswerFirst},
    Known{"flow", AnswerFlow},
    Known{"comm", AnswerCommunication},
    Known{"timeline", AnswerTimeline},
    Known{"structure", AnswerStructure},
    Known{"over_steps", AnswerOverSteps},
    Known{"baseline", AnswerBaseline},
};

}  // namespace

std::span<const std::string_view> Questions() {
  static const auto kNames = [] {
    std::array<std::string_view, kKnown.size()> names;
    std::ranges::transform(kKnown, names.begin(), &Known::name);
    return names;
  }();
  return kNames;
}

Result<std::string> Answer(const ResultStore& store, std::string_view question,
                           const Parameters& parameters, const ResultStore* base) {
  const auto known = std::ranges::find(kKnown, question, &Known::name);
  if (known == kKnown.end()) {
    return Error(ErrorCode::kNotFound,
                 fmt::format("'{}': there is no such question", question.substr(0, 40)));
  }
  return known->answer({store, parameters, base});
}

}  // namespace plumbline::view
