#include "record/call_stack.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace plumbline {
namespace {

// Parts of paths whose frames say nothing about the model. "torch/nn/modules" holds layers, but
// the line that calls them is what a user looks for.
constexpr std::string_view kForeignPaths[] = {
    "/site-packages/torch/", "/dist-packages/torch/",     "/msprobe/",
    "/plumbline/",           "/site-packages/torch_npu/",
};

std::string OneLine(std::string_view frame) {
  std::string text(frame);
  const size_t split = text.find(", \n");
  if (split != std::string::npos) {
    text = fmt::format("{}:{}", frame.substr(0, split), frame.substr(split + 3));
  }
  std::replace(text.begin(), text.end(), '\n', ' ');
  while (!text.empty() && text.back() == ' ') text.pop_back();
  return text;
}

}  // namespace

bool IsForeignFrame(std::string_view frame) {
  const std::string_view path = frame.substr(0, frame.find(','));
  return std::any_of(std::begin(kForeignPaths), std::end(kForeignPaths),
                     [&](std::string_view part) { return path.find(part) != path.npos; });
}

std::string UserFrame(const std::vector<std::string>& stack) {
  if (stack.empty()) return {};
  const auto found = std::find_if(stack.begin(), stack.end(),
                                  [](const std::string& frame) { return !IsForeignFrame(frame); });
  return OneLine(found == stack.end() ? stack.front() : *found);
}

}  // namespace plumbline
