#include "config/acl_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <span>
#include <utility>

#include "base/text/text_parts.h"
#include "config/options.h"

namespace plumbline::acl_json {
namespace {

using settings::Json;

constexpr std::string_view kOpening = "/*", kClosing = "*/";  // of a comment
constexpr std::string_view kSection = "dump";
constexpr std::string_view kKeys[] = {"dump_list",  "dump_path",  "dump_mode", "dump_op_switch",
                                      "dump_data",  "dump_stats", "dump_step", "dump_debug",
                                      "dump_scene", "dump_level"};
constexpr std::string_view kModes[] = {"output", "input", "all"};
constexpr std::string_view kSwitch[] = {"on", "off"};
constexpr std::string_view kData[] = {"tensor", "stats"};
constexpr std::string_view kLevels[] = {"op", "kernel", "all"};
constexpr std::string_view kStatistics[] = {"Max",          "Min",          "Avg",   "Nan",
                                            "Negative Inf", "Positive Inf", "L2norm"};

// "line 4, column 17" of a byte, both from 1.
std::string PlaceOf(std::string_view text, size_t at) {
  const std::string_view before = text.substr(0, at);
  const size_t line_start = before.rfind('\n') + 1;  // npos + 1 is 0
  return fmt::format("line {}, column {}", std::ranges::count(before, '\n') + 1,
                     before.size() - line_start + 1);
}

// Copies a text token by token and knows what the last one was.
class Copier {
 public:
  explicit Copier(std::string_view text) : text_(text) {}

  Repaired Run() {
    if (text_.starts_with(kByteOrderMark)) {
      Note(0, "a byte order mark");
      at_ = kByteOrderMark.size();
    }
    while (at_ < text_.size()) Step();
    return std::move(out_);
  }

 private:
  enum class Last { kOther, kValue, kComma };

  void Note(size_t at, std::string_view what) {
    out_.repairs.push_back(fmt::format("{}: {}", PlaceOf(text_, at), what));
  }

  void Copy(size_t size) {
    out_.text += text_.substr(at_, size);
    at_ += size;
  }

  void Step() {
    const char c = text_[at_];
    if (c == ' ' || c == '\t' || c == '\r' || c == '\n') {
      Copy(1);
    } else if (c == '#' || text_.substr(at_, 2) == "//") {
      Note(at_, "a comment");
      at_ = std::min(text_.find('\n', at_), text_.size());
    } else if (text_.substr(at_, kOpening.size()) == kOpening) {
      Note(at_, "a comment");
      DropComment();
    } else if (c == '}' || c == ']') {
      if (last_ == Last::kComma) {
        Note(last_at_, "a comma in front of no member");
        out_.text.erase(last_out_, 1);
      }
      Copy(1);
      SetLast(Last::kValue);
    } else if (c == ',') {
      const bool is_behind_value = last_ == Last::kValue;
      last_at_ = at_;
      last_out_ = out_.text.size();
      Copy(1);
      last_ = is_behind_value ? Last::kComma : Last::kOther;
    } else if (c == ':') {
      Copy(1);
      last_ = Last::kOther;
    } else {
      CopyValue();
    }
  }

  // Up to its end, or that of the text; the lines behind it keep their numbers.
  void DropComment() {
    const size_t closing = text_.find(kClosing, at_ + kOpening.size());
    const size_t end = closing == std::string_view::npos ? text_.size() : closing + kClosing.size();
    const std::string_view comment = text_.substr(at_, end - at_);
    out_.text.append(static_cast<size_t>(std::ranges::count(comment, '\n')), '\n');
    at_ = end;
  }

  // A text, a number, a word, or the start of an object or array.
  void CopyValue() {
    if (last_ == Last::kValue) {
      Note(last_at_, "a comma is missing");
      out_.text.insert(last_out_, 1, ',');
    }
    const char c = text_[at_];
    if (c == '{' || c == '[') {
      Copy(1);
      last_ = Last::kOther;
      return;
    }
    Copy(c == '"' ? TextSize() : WordSize());
    SetLast(Last::kValue);
  }

  [[nodiscard]] size_t TextSize() const {
    size_t end = at_ + 1;
    while (end < text_.size() && text_[end] != '"' && text_[end] != '\n') {
      end += text_[end] == '\\' ? 2 : 1;
    }
    return std::min(end + 1, text_.size()) - at_;
  }
  [[nodiscard]] size_t WordSize() const {
    const size_t end = text_.find_first_of(" \t\r\n,:]}[{\"#/", at_ + 1);
    return std::min(end, text_.size()) - at_;
  }

  // What was copied last, where it ends.
  void SetLast(Last last) {
    last_ = last;
    last_at_ = at_;
    last_out_ = out_.text.size();
  }

  std::string_view text_;
  size_t at_ = 0;
  Last last_ = Last::kOther;
  size_t last_at_ = 0, last_out_ = 0;  // behind a value; of a comma
  Repaired out_;
};

class Rules {
 public:
  Rules(const Json& dump, CheckedAclJson& out) : dump_(dump), out_(out) {}

  void Run() {
    for (const std::string_view name : dump_.Keys()) {
      if (std::ranges::count(kKeys, name) > 0) continue;
      out_.warnings.push_back(settings::UnknownKeyWarning(kSection, name, kKeys));
    }
    CheckOneOf("dump_mode", kModes);
    CheckOneOf("dump_op_switch", kSwitch);
    CheckOneOf("dump_debug", kSwitch);
    CheckOneOf("dump_data", kData);
    CheckOneOf("dump_level", kLevels);
    CheckPath();
    CheckList();
    CheckStatistics();
    CheckStep();
  }

 private:
  static std::string Field(std::string_view name) { return fmt::format("{}.{}", kSection, name); }

  [[nodiscard]] const Json* Find(std::string_view name) const { return dump_.Find(name); }

  void Fail(const Error& error) { out_.errors.push_back(error.message()); }

  void CheckOneOf(std::string_view name, std::span<const std::string_view> allowed) {
    const Json* value = Find(name);
    if (value == nullptr) return;
    const auto known = settings::OneOf(Field(name), *value, allowed);
    if (!known) Fail(known.error());
  }

  void CheckPath() {
    const Json* value = Find("dump_path");
    if (value == nullptr) {
      if (Find("dump_scene") != nullptr) return;  // exceptions have a place of their own
      out_.errors.push_back(Field("dump_path") + ": is missing (expected a directory)");
      return;
    }
    const auto path = settings::AsString(Field("dump_path"), *value);
    if (!path) return Fail(path.error());
    if (path->empty()) Fail(settings::Invalid(Field("dump_path"), *value, "a directory"));
  }

  void CheckList() {
    const Json* value = Find("dump_list");
    if (value == nullptr) return;
    if (value->AsList() == nullptr) {
      return Fail(settings::Invalid(Field("dump_list"), *value, "an array, [] for everything"));
    }
    for (const Json& entry : *value->AsList()) {
      const Json* const layer = entry.Find("layer");
      const Json* const model = entry.Find("model_name");
      const bool is_entry = (layer == nullptr || layer->AsList() != nullptr) &&
                            (model == nullptr || model->AsText() != nullptr) &&
                            (layer != nullptr || model != nullptr);
      if (is_entry) continue;
      Fail(settings::Invalid(Field("dump_list"), entry,
                             "objects such as {\"model_name\": \"m\", \"layer\": [\"op1\"]}"));
    }
  }

  void CheckStatistics() {
    const Json* value = Find("dump_stats");
    if (value == nullptr) return;
    const auto names = settings::AsStringList(Field("dump_stats"), *value);
    if (!names) return Fail(names.error());
    for (const std::string& name : *names) {
      const auto known = settings::OneOf(Field("dump_stats"), Json(name), kStatistics);
      if (!known) Fail(known.error());
    }
    const Json* data = Find("dump_data");
    if (data == nullptr || *data != Json("stats")) {
      out_.warnings.push_back(Field("dump_stats") +
                              ": without effect (expected \"dump_data\": \"stats\" beside it)");
    }
  }

  void CheckStep() {
    const Json* value = Find("dump_step");
    if (value == nullptr) return;
    const auto text = settings::AsString(Field("dump_step"), *value);
    if (!text) return Fail(text.error());
    const auto is_part = [](char c) { return (c >= '0' && c <= '9') || c == '|' || c == '-'; };
    if (text->empty() || !std::ranges::all_of(*text, is_part)) {
      Fail(settings::Invalid(Field("dump_step"), *value, "numbers and ranges such as \"0|3-5\""));
    }
  }

  const Json& dump_;
  CheckedAclJson& out_;
};

}  // namespace

Repaired Repair(std::string_view text) { return Copier(text).Run(); }

Result<CheckedAclJson> Check(std::string_view text, bool is_lenient) {
  CheckedAclJson checked;
  const Repaired repaired = Repair(text);
  if (!repaired.repairs.empty() && !is_lenient) {
    return Error(ErrorCode::kInvalidArgument,
                 fmt::format("{}; the ACL runtime takes strict JSON ({} to repair). --lenient "
                             "prints the corrected file",
                             repaired.repairs.front(), repaired.repairs.size()));
  }
  size_t error_at = 0;
  const Result<Json> json = Json::Parse(repaired.text, &error_at);
  if (!json) {
    return Error(ErrorCode::kInvalidArgument,
                 fmt::format("{}: not valid JSON", PlaceOf(repaired.text, error_at)));
  }
  checked.text = repaired.text;
  checked.repairs = repaired.repairs;
  const Json* dump = json->Find(kSection);
  if (dump == nullptr || !dump->is_object()) {
    return Error(ErrorCode::kInvalidArgument,
                 "has no object \"dump\" (expected {\"dump\": {...}})");
  }
  Rules(*dump, checked).Run();
  return checked;
}

}  // namespace plumbline::acl_json
