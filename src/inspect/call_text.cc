#include "inspect/call_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "base/file/file.h"
#include "base/process/log.h"
#include "base/text/json.h"
#include "base/text/text_parts.h"
#include "match/expand.h"
#include "plumbline/run.h"
#include "report/newest_table.h"

namespace plumbline::inspect {
namespace {

constexpr std::string_view kTitle = "Statistic Info:\n";

// One tensor, by the texts of its facts.
std::string Line(std::string_view name, std::string_view dtype, std::string_view shape,
                 const std::vector<std::string>& max_min_mean) {
  return fmt::format("  [{}][dtype: {}][shape: {}][max: {}][min: {}][mean: {}]\n", name, dtype,
                     shape, max_min_mean[0], max_min_mean[1], max_min_mean[2]);
}

// A value as it is spelled; texts without their quotes.
std::string ReadSpelled(json::Reader& in, std::string_view text) {
  if (in.Peek() == json::Kind::kString) {
    std::string_view value;
    in.ReadString(value);
    return std::string(value);
  }
  in.Peek();
  const size_t start = in.offset();
  in.SkipValue();
  std::string_view spelled = text.substr(start, in.offset() - start);
  spelled.remove_prefix(std::min(spelled.find_first_not_of(" \t,"), spelled.size()));
  return std::string(spelled);
}

std::vector<std::string> ReadSpelledList(json::Reader& in, std::string_view text) {
  std::vector<std::string> values;
  if (in.Peek() != json::Kind::kArray) {
    in.SkipValue();
    return values;
  }
  in.EnterArray();
  while (in.NextElement()) values.push_back(ReadSpelled(in, text));
  return values;
}

// The text file of older releases.
class OldFile {
 public:
  explicit OldFile(std::string_view start) : start_(start) {}

  Result<std::string> Read(const std::string& path) {
    PL_TRY_ASSIGN(const std::string text, ReadFile(path));
    size_t number = 0;
    for (const std::string_view line : SplitAt(text, '\n')) {
      ++number;
      if (line.find_first_not_of(" \r") == std::string_view::npos) continue;
      json::Reader in(line, 8);
      const bool goes_on = ReadLine(in, line);
      if (in.failed()) return in.error().In(fmt::format("{}: line {}", path, number));
      if (!goes_on) break;
    }
    return std::move(statistics_) + stacks_;
  }

 private:
  bool ReadLine(json::Reader& in, std::string_view line) {
    if (in.Peek() != json::Kind::kArray) {
      in.SkipValue();
      return false;
    }
    in.EnterArray();
    if (!in.NextElement()) return false;
    const std::string name = ReadSpelled(in, line);
    if (name.find("stack_info") != std::string::npos) {
      ReadStack(in, line, name);
    } else {
      ReadStatistics(in, line, name);
    }
    in.ReadEnd();
    return true;
  }

  void ReadStatistics(json::Reader& in, std::string_view line, const std::string& name) {
    constexpr size_t kDType = 3, kShape = 4, kNumbers = 5;
    std::string dtype, shape;
    std::vector<std::string> numbers;
    for (size_t i = 1; in.NextElement(); ++i) {
      if (i == kDType) {
        dtype = ReadSpelled(in, line);
      } else if (i == kShape) {
        shape = ReadSpelled(in, line);
      } else if (i == kNumbers) {
        numbers = ReadSpelledList(in, line);
      } else {
        in.SkipValue();
      }
    }
    if (in.failed() || numbers.size() < 3 || !name.starts_with(start_)) return;
    if (statistics_.empty()) statistics_ = kTitle;
    statistics_ += Line(name, dtype, shape, numbers);
  }

  void ReadStack(json::Reader& in, std::string_view line, const std::string& name) {
    std::vector<std::vector<std::string>> frames;
    for (bool is_first = true; in.NextElement(); is_first = false) {
      if (!is_first || in.Peek() != json::Kind::kArray) {
        in.SkipValue();
        continue;
      }
      in.EnterArray();
      while (in.NextElement()) frames.push_back(ReadSpelledList(in, line));
    }
    if (in.failed() || frames.empty() || !name.starts_with(start_)) return;
    stacks_ += fmt::format("\nTrace back({}):\n", name);
    for (auto frame = frames.rbegin(); frame != frames.rend(); ++frame) {
      frame->resize(4);
      stacks_ += fmt::format("  File \"{}\", line {}, in {}\n    {}\n", (*frame)[0], (*frame)[1],
                             (*frame)[2], (*frame)[3]);
    }
  }

  std::string_view start_;
  std::string statistics_, stacks_;
};

Result<std::string> TextOfRun(const std::string& path, std::string_view start) {
  PL_TRY_ASSIGN(const Run run, Run::Open(path));
  std::string statistics, stacks;
  match::Expander expander;
  for (const Call& call : run.calls()) {
    if (!call.name.starts_with(start)) continue;
    PL_TRY_ASSIGN(const match::CallItems items, expander.ExpandCall(call, false));
    for (const Item& item : items.items) {
      if (!item.is_tensor) continue;
      if (statistics.empty()) statistics = kTitle;
      std::vector<std::string> numbers;
      for (size_t i = 0; i < 3; ++i) {
        numbers.push_back(report::NewestStatisticText(item.statistics[i]));
      }
      statistics += Line(item.name.view(), item.dtype ? item.dtype->view() : "",
                         item.shape_text ? item.shape_text->view() : "", numbers);
    }
    const auto& frames = run.StackOf(call.name);
    if (frames->empty()) continue;
    stacks += fmt::format("\nTrace back({}):\n", call.name);
    for (auto frame = frames->rbegin(); frame != frames->rend(); ++frame) {
      stacks += fmt::format("  {}\n", OneLine(*frame));
    }
  }
  return statistics + stacks;
}

}  // namespace

Result<std::string> CallText(const std::string& path, std::string_view start) {
  PL_TRY_ASSIGN(std::string text,
                path.ends_with(".json") ? TextOfRun(path, start) : OldFile(start).Read(path));
  if (!text.empty()) return text;
  return Error(ErrorCode::kNotFound,
               fmt::format("{}: no call whose name starts with \"{}\"", path, start));
}

}  // namespace plumbline::inspect
