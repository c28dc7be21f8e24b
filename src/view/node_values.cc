#include "view/node_values.h"

#include <fmt/format.h>

#include <cctype>
#include <cmath>
#include <span>
#include <utility>
#include <variant>

#include "base/memory/digest.h"
#include "base/text/json.h"
#include "base/text/number_text.h"
#include "base/text/text_parts.h"
#include "formats/json/dump_json.h"
#include "match/expand.h"

namespace plumbline::view {
namespace {

// As match::Expander has it: the list of arguments, 400 containers and what is in the innermost.
constexpr int kMostLevels = 402;
constexpr size_t kDecimals = 6;
constexpr size_t kMostDigits = 20;  // of a number in a text, on either side of its point
constexpr std::string_view kNull = "null";
constexpr std::string_view kStatistics[] = {dump_json::kMax, dump_json::kMin, dump_json::kMean,
                                            dump_json::kNorm};

struct MemberRule {
  std::string_view key, part;
  bool is_output = false;
};
constexpr MemberRule kMembers[] = {
    {dump_json::kInputArgs, ".input"},       {dump_json::kInputKwargs, ".input"},
    {dump_json::kInput, ".input"},           {dump_json::kOutput, ".output", true},
    {dump_json::kParameters, ".parameters"}, {dump_json::kBuffers, ".buffers", true}};

bool IsWordByte(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' ||
         static_cast<unsigned char>(c) >= 0x80;
}

std::string WithNulls(std::string_view text) {
  constexpr std::string_view kNone = "None";
  if (text.find_first_of("'N") == std::string_view::npos) return std::string(text);
  std::string out;
  for (size_t i = 0; i < text.size();) {
    const size_t end = i + kNone.size();
    const bool is_none = text.substr(i).starts_with(kNone) &&
                         (i == 0 || !IsWordByte(text[i - 1])) &&
                         (end == text.size() || !IsWordByte(text[end]));
    if (is_none) {
      out += kNull;
      i += kNone.size();
    } else {
      if (text[i] != '\'') out += text[i];
      ++i;
    }
  }
  return out;
}

size_t DigitsAt(std::string_view text, size_t at) {
  size_t count = 0;
  while (at + count < text.size() && count < kMostDigits && text[at + count] >= '0' &&
         text[at + count] <= '9') {
    ++count;
  }
  return count;
}

// Bytes of the decimal number at `at`, without a sign; 0: none, or no more than six decimals.
size_t LongDecimalAt(std::string_view text, size_t at) {
  const size_t whole = DigitsAt(text, at);
  if (whole == 0 || at + whole >= text.size() || text[at + whole] != '.') return 0;
  const size_t decimals = DigitsAt(text, at + whole + 1);
  return decimals > kDecimals ? whole + 1 + decimals : 0;
}

std::string WithShortDecimals(std::string text_to_change, bool is_within) {
  const std::string_view text = text_to_change;
  // Most texts hold no such number; of others than .vis one must be the whole text.
  const size_t point = text.find('.');
  if (point == std::string_view::npos || text.size() - point <= kDecimals) return text_to_change;
  if (!is_within && DigitsAt(text, 0) != point) return text_to_change;
  std::string out;
  for (size_t i = 0; i < text.size();) {
    const size_t length = LongDecimalAt(text, i);
    const std::string_view rest = text.substr(i + length);
    const bool is_whole = i == 0 && (rest.empty() || rest == "%");
    const auto number = length == 0 ? std::nullopt : ParseReal(text.substr(i, length));
    if (!number || !(is_within || is_whole)) {
      out += text[i++];
      continue;
    }
    AppendFixed(*number, kDecimals, out);
    i += length;
  }
  return out;
}

std::string DigestOf(std::string_view text) {
  return Crc32Hex(Crc32(std::as_bytes(std::span(text.data(), text.size()))));
}

// Whether the walked name of an argument is that of a rank, which has the type of its value.
bool NamesRank(std::string_view name) {
  const std::string_view last = name.substr(name.rfind('.') + 1);
  return last == "src" || last == "dst" || last == "group_src" || last == "group_dst";
}

// Walks the values of one call; every leaf becomes a parameter.
class ValueWalker {
 public:
  ValueWalker(const Call& call, const ValueForm& form, NodeValues& out)
      : form_(form),
        out_(out),
        is_gradients_(call.kind == CallKind::kParametersGrad),
        is_batch_(call.name.find("batch_isend_irecv") != std::string::npos) {}

  Status Walk(const Value& value, std::string& name, bool is_output, int depth = 0) {
    if (depth > kMostLevels) {
      return Error(ErrorCode::kCorrupt,
                   fmt::format("{}: arguments nest deeper than {} levels", name, kMostLevels));
    }
    if (value.is_null()) return AddNull(name, is_output);
    if (const auto* tensor = value.As<TensorRecord>()) return AddTensor(*tensor, name, is_output);
    if (const auto* list = value.As<ValueList>()) {
      for (size_t i = 0; i < list->size(); ++i) {
        const std::string part = is_gradients_ ? std::string() : fmt::format(".{}", i);
        PL_TRY(WalkPart((*list)[i], part, name, is_output, depth));
      }
      return {};
    }
    const auto* map = value.As<ValueMap>();
    if (map == nullptr) return {};
    if (TextOf(value, "class_type") == "torch.distributed.P2POp") {
      return AddTransfer(value, name, is_output);
    }
    if (!TextOf(value, dump_json::kType).empty()) return AddTyped(*map, value, name, is_output);
    for (const auto& [key, member] : *map) {
      PL_TRY(WalkPart(member, "." + key, name, is_output, depth));
    }
    return {};
  }

 private:
  Status WalkPart(const Value& value, std::string_view part, std::string& name, bool is_output,
                  int depth) {
    const size_t size = name.size();
    name += part;
    PL_TRY(Walk(value, name, is_output, depth + 1));
    name.resize(size);
    return {};
  }

  static std::string_view TextOf(const Value& map, std::string_view key) {
    const Value* const member = map.Find(key);
    const auto* const text = member == nullptr ? nullptr : member->As<std::string>();
    return text == nullptr ? std::string_view() : *text;
  }

  void Begin(std::string_view name) {
    out_.text() += name;
    out_.BeginFields();
    is_first_ = true;
  }
  // A leaf is called as its file is.
  void BeginLeaf(std::string_view name, std::string_view data_name) {
    Begin(data_name.empty() ? name : data_name.substr(0, data_name.rfind('.')));
  }
  void Raw(std::string_view key, std::string_view text) {
    AppendField(key, text, is_first_, out_.text());
    is_first_ = false;
  }
  void Shown(std::string_view key, std::string_view text) { Raw(key, ShownValue(text, form_)); }
  void AnyValue(std::string_view key, const Value& value) {
    if (value.is_null()) return Raw(key, kNull);
    if (const auto* number = value.As<double>()) return Raw(key, ShownNumber(*number, form_));
    if (const auto* text = value.As<std::string>()) return Shown(key, *text);
    Raw(key, match::PythonText(value));
  }
  void Number(std::string_view key, const Statistic& statistic) {
    if (const auto* real = std::get_if<double>(&statistic)) {
      Raw(key, ShownNumber(*real, form_));
    } else if (const auto* integer = std::get_if<int64_t>(&statistic)) {
      Raw(key, fmt::format_int(*integer).c_str());
    } else if (const auto* truth = std::get_if<bool>(&statistic)) {
      Raw(key, *truth ? "True" : "False");
    }
  }
  [[nodiscard]] bool wants_digest() const { return form_.is_vis || form_.has_digests; }
  void Digest(std::string_view text) {
    if (wants_digest()) Raw(dump_json::kDigest, text);
  }
  void DataName(const std::optional<std::string>& name) {
    Raw(dump_json::kDataName, name && !name->empty() ? std::string_view(*name) : "-1");
  }
  Status End(bool is_output) {
    out_.Finish(is_output);
    return {};
  }

  Status AddNull(std::string_view name, bool is_output) {
    Begin(name);
    Raw("value", kNull);
    return End(is_output);
  }

  // Between the statistics and what is added at the end, the order is that of the dump.
  void TensorFields(const TensorRecord& tensor) {
    Raw(dump_json::kType, tensor.type);
    Raw(dump_json::kDType, tensor.dtype_text);
    Raw(dump_json::kShape, match::ShapeText(tensor.shape));
    const Statistic* const statistics[] = {&tensor.max, &tensor.min, &tensor.mean, &tensor.norm};
    const bool has_any = !std::holds_alternative<std::monostate>(tensor.max);
    for (size_t i = 0; i < std::size(statistics); ++i) {
      const bool is_null = std::holds_alternative<std::monostate>(*statistics[i]);
      if (!is_null) Number(kStatistics[i], *statistics[i]);
      if (is_null && has_any) Raw(kStatistics[i], kNull);
    }
    if (tensor.requires_grad && !form_.is_vis) {
      Raw(dump_json::kRequiresGrad, *tensor.requires_grad ? "True" : "False");
    }
    if (tensor.max_finite) Number(dump_json::kMaxFinite, *tensor.max_finite);
    if (tensor.min_finite) Number(dump_json::kMinFinite, *tensor.min_finite);
    if (tensor.digest) Digest(*tensor.digest);
    DataName(tensor.data_name);
    for (const auto& [key, count] : {std::pair(dump_json::kNanCount, tensor.nan_count),
                                     std::pair(dump_json::kInfCount, tensor.inf_count),
                                     std::pair(dump_json::kZeroCount, tensor.zero_count)}) {
      if (count) Raw(key, fmt::format_int(*count).c_str());
    }
    if (!tensor.requires_grad && !form_.is_vis && has_any) Raw(dump_json::kRequiresGrad, kNull);
    if (!tensor.digest) Digest(DigestOf(""));
  }

  Status AddTensor(const TensorRecord& tensor, std::string_view name, bool is_output) {
    const bool has_file = tensor.data_name && *tensor.data_name != "-1";
    BeginLeaf(name, has_file ? std::string_view(*tensor.data_name) : std::string_view());
    TensorFields(tensor);
    return End(is_output);
  }

  // One transfer of batch_isend_irecv.
  Status AddTransfer(const Value& value, std::string_view name, bool is_output) {
    const Value* const tensor = value.Find("tensor");
    const auto* const record = tensor == nullptr ? nullptr : tensor->As<TensorRecord>();
    Begin(name);
    if (record != nullptr) TensorFields(*record);
    for (const std::string_view key : {"class_type", "op", "peer", "tag", "group_id"}) {
      if (is_batch_ && key != "class_type") continue;
      const Value* const member = value.Find(key);
      if (member != nullptr) AnyValue(key, *member);
    }
    return End(is_output);
  }

  Status AddTyped(const ValueMap& map, const Value& value, std::string_view name, bool is_output) {
    const std::string_view type = TextOf(value, dump_json::kType);
    const std::string_view data_name = TextOf(value, dump_json::kDataName);
    BeginLeaf(name, data_name == "-1" ? std::string_view() : data_name);
    const bool is_group = type == "torch.ProcessGroup";
    for (const auto& [key, member] : map) {
      const bool is_kept = key == "type" || key == "group_ranks" || key == "group_id";
      if (key == dump_json::kDataName || (is_group && !is_kept)) continue;
      if (key == dump_json::kDigest && !wants_digest()) continue;
      AnyValue(key, member);
    }
    DataName(std::string(data_name));
    if (!is_group) AddScalarFields(value, type, name);
    return End(is_output);
  }

  // What a scalar has in common with tensors: its value stands for each statistic.
  void AddScalarFields(const Value& value, std::string_view type, std::string_view name) {
    static const Value kNone;
    const Value* const found = value.Find("value");
    const Value& content = found == nullptr ? kNone : *found;
    const bool has_statistics = type != "torch.Size" && type != "slice" && !content.is_null();
    if (has_statistics) {
      if (!form_.is_vis && value.Find(dump_json::kRequiresGrad) == nullptr) {
        Raw(dump_json::kRequiresGrad, kNull);
      }
      for (const std::string_view key : kStatistics) {
        if (value.Find(key) == nullptr) AnyValue(key, content);
      }
    }
    if (value.Find(dump_json::kDType) == nullptr) {
      const bool is_own_type = type == "torch.Size" || type == "slice" || type == "ellipsis" ||
                               (!form_.is_vis && NamesRank(name));
      Shown(dump_json::kDType, is_own_type ? type : match::PythonTypeText(content));
      Shown(dump_json::kShape, ShapeOf(type, content));
    }
    if (value.Find(dump_json::kDigest) != nullptr) return;
    Digest(DigestOf(found == nullptr ? std::string() : match::PythonText(content)));
  }

  static std::string ShapeOf(std::string_view type, const Value& content) {
    if (type == "torch.Size") return match::PythonText(content);
    if (type != "slice") return "[]";
    const auto* const parts = content.As<ValueList>();
    if (parts == nullptr) return match::TupleText({});
    const auto count = static_cast<int64_t>(parts->size());
    return match::TupleText(std::span(&count, 1));
  }

  const ValueForm& form_;
  NodeValues& out_;
  const bool is_gradients_, is_batch_;
  bool is_first_ = true;
};

}  // namespace

void AppendField(std::string_view key, std::string_view text, bool is_first, std::string& fields) {
  if (!is_first) fields += ", ";
  json::AppendString(key, fields);
  fields += ": ";
  json::AppendString(text, fields);
}

std::string ShownNumber(double number, const ValueForm& form) {
  std::string text = PythonFloat(number);
  if (!form.is_vis) return text;
  if (text.find('e') != std::string::npos) return fmt::format("{:.6e}", number);
  if (!std::isfinite(number)) return text;
  std::string rounded;
  AppendFixed(number, kDecimals, rounded);
  return PythonFloat(ParseReal(rounded).value_or(number));
}

std::string ShownValue(std::string_view text, const ValueForm& form) {
  if (text.empty() || text == " ") return std::string(text);
  return WithShortDecimals(WithNulls(text), form.is_vis);
}

Result<NodeValues> ValuesOf(const Call& call, const ValueForm& form) {
  NodeValues values;
  ValueWalker walker(call, form, values);
  std::string name = call.name;
  const auto walk = [&](const Value& value, std::string_view part, bool is_output) -> Status {
    name.resize(call.name.size());
    name += part;
    return walker.Walk(value, name, is_output);
  };
  if (call.kind == CallKind::kParametersGrad) {
    for (const auto& [key, value] : call.members) {
      if (key != dump_json::kMergeLines) PL_TRY(walk(value, "." + key, false));
    }
  } else {
    for (const MemberRule& rule : kMembers) {
      const Value* const value = call.Find(rule.key);
      if (value != nullptr) PL_TRY(walk(*value, rule.part, rule.is_output));
    }
  }
  values.Shrink();
  return values;
}

}  // namespace plumbline::view
