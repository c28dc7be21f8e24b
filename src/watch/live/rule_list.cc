#include "watch/live/rule_list.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "base/file/file.h"

namespace plumbline::watch {
namespace {

// A scalar as text; "" for anything else.
std::string ScalarText(const json::Value& value) {
  if (value.AsText() != nullptr) return *value.AsText();
  const bool is_scalar = value.AsBool() != nullptr || value.AsReal() || value.AsInteger();
  return is_scalar ? value.Text() : std::string();
}

class RuleList {
 public:
  explicit RuleList(std::vector<std::string>* faults) : faults_(*faults) {}

  void Read(const std::string& where, const json::Value& list) {
    for (size_t i = 0; i < list.AsList()->size(); ++i) {
      ReadOne(fmt::format("{}[{}]", where, i), (*list.AsList())[i]);
    }
  }

  void Fault(const std::string& where, std::string_view problem) {
    faults_.push_back(fmt::format("{}: {}", where, problem));
  }

  Rules rules;

 private:
  void ReadOne(const std::string& where, const json::Value& value) {
    if (value.is_object()) {
      const std::vector<RuleField> fields = FieldsOf(value, "");
      for (const RuleFault& fault : rules.AddFrom(fields)) {
        Fault(fault.field ? fmt::format("{}.{}", where, fields[*fault.field].key) : where,
              fault.problem);
      }
      return;
    }
    if (value.AsText() == nullptr) {
      return Fault(where, R"(expected an expression or an object such as {"when": "max > 10"})");
    }
    Result<Rule> rule = Rules::ParseRule(*value.AsText());
    if (!rule) return Fault(where, rule.error().message());
    rules.Add(*std::move(rule));
  }

  static std::vector<RuleField> FieldsOf(const json::Value& object, const std::string& before) {
    std::vector<RuleField> fields;
    for (const std::string_view key : object.Keys()) {
      const json::Value& value = *object.Find(key);
      RuleField field{before + std::string(key), {}, value.AsList() != nullptr};
      if (field.key == "on" && value.is_object()) {
        std::ranges::move(FieldsOf(value, "on."), std::back_inserter(fields));
        continue;
      }
      if (!field.is_list) field.texts.push_back(ScalarText(value));
      for (size_t i = 0; field.is_list && i < value.AsList()->size(); ++i) {
        field.texts.push_back(ScalarText((*value.AsList())[i]));
      }
      fields.push_back(std::move(field));
    }
    return fields;
  }

  std::vector<std::string>& faults_;
};

void ReadRulesFile(const std::string& path, RuleList& list) {
  const std::string where = fmt::format("watch: {}", path);
  const auto text = ReadFile(path);
  if (!text) return list.Fault("watch", text.error().message());
  const auto document = json::Value::Parse(*text);
  if (!document) {
    return list.Fault(where, fmt::format("is no JSON, the only form of rules files that a training "
                                         "reads: {}",
                                         document.error().message()));
  }
  const json::Value* version = document->Find("version");
  const json::Value* rules = document->Find("rules");
  const bool is_known = version != nullptr && version->AsInteger() == 1;
  if (!is_known || rules == nullptr || rules->AsList() == nullptr) {
    return list.Fault(where, R"(expected {"version": 1, "rules": [...]})");
  }
  list.Read(where + ": rules", *rules);
}

}  // namespace

Rules ReadRuleList(const json::Value& value, const std::string& directory,
                   std::vector<std::string>* faults) {
  RuleList list(faults);
  if (value.AsList() != nullptr) {
    list.Read("watch", value);
  } else if (value.AsText() != nullptr) {
    const bool is_whole = value.AsText()->starts_with('/');
    ReadRulesFile(is_whole ? *value.AsText() : JoinPath(directory, *value.AsText()), list);
  } else {
    list.Fault("watch", "expected a list of rules, or the path of a rules file");
  }
  return std::move(list.rules);
}

}  // namespace plumbline::watch
