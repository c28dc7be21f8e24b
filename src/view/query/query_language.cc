#include "view/query/query_language.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <span>

#include "base/text/text_parts.h"
#include "view/store/name_index.h"
#include "view/store/node_columns.h"

namespace plumbline::view {
namespace {

// A query is typed by hand, or made of a few names.
constexpr size_t kMostBytes = 8192, kMostTerms = 64;

struct Choice {
  std::string_view word;
  uint32_t bits;
};

constexpr uint32_t Bit(auto value) { return 1U << static_cast<uint32_t>(value); }

constexpr Choice kLevels[] = {{"pass", Bit(NodeLevel::kPass)},
                              {"warning", Bit(NodeLevel::kWarning)},
                              {"error", Bit(NodeLevel::kError)},
                              {"unmatched", Bit(NodeLevel::kUnmatched)},
                              {"none", Bit(NodeLevel::kNone)}};
constexpr Choice kOverflows[] = {{"none", Bit(StoredOverflow::kNone)},
                                 {"medium", Bit(StoredOverflow::kMedium)},
                                 {"high", Bit(StoredOverflow::kHigh)},
                                 {"critical", Bit(StoredOverflow::kCritical)}};
constexpr Choice kTypeWords[] = {{"module", Bit(StoredType::kModule)},
                                 {"api", Bit(StoredType::kApi)},
                                 {"fused", Bit(StoredType::kFused)},
                                 {"group", Bit(StoredType::kGroup)},
                                 {"root", Bit(StoredType::kRoot)}};
constexpr Choice kDirectionWords[] = {{"forward", Bit(Direction::kForwardCall)},
                                      {"backward", Bit(Direction::kBackwardCall)}};
constexpr Choice kFlags[] = {
    {"first", node_flag::kFirst},           {"source", node_flag::kSource},
    {"carrier", node_flag::kCarrier},       {"communicates", node_flag::kCommunicates},
    {"recomputed", node_flag::kRecomputed}, {"repaired", node_flag::kRepaired},
    {"merged", node_flag::kMerged},         {"hand", node_flag::kByHand}};
constexpr Choice kSides[] = {{"target", kSideTarget}, {"golden", kSideGolden}};
constexpr Choice kKinds[] = {
    {"leaf", kIsLeaf}, {"matched", kIsMatched}, {"unmatched", kIsUnmatched}};

enum class Form : uint8_t { kChoices, kNumbers, kTexts };

struct NamedField {
  std::string_view word;
  QueryField field;
  Form form;
  std::span<const Choice> choices = {};
};

constexpr NamedField kNamed[] = {{"level", QueryField::kLevel, Form::kChoices, kLevels},
                                 {"worst", QueryField::kWorst, Form::kChoices, kLevels},
                                 {"overflow", QueryField::kOverflow, Form::kChoices, kOverflows},
                                 {"type", QueryField::kType, Form::kChoices, kTypeWords},
                                 {"op", QueryField::kOperation, Form::kTexts},
                                 {"dir", QueryField::kDirection, Form::kChoices, kDirectionWords},
                                 {"rank", QueryField::kRank, Form::kNumbers},
                                 {"step", QueryField::kStep, Form::kNumbers},
                                 {"ms", QueryField::kMicroStep, Form::kNumbers},
                                 {"dtype", QueryField::kDType, Form::kTexts},
                                 {"shape", QueryField::kShape, Form::kTexts},
                                 {"side", QueryField::kSide, Form::kChoices, kSides},
                                 {"flag", QueryField::kFlag, Form::kChoices, kFlags},
                                 {"is", QueryField::kIs, Form::kChoices, kKinds}};

constexpr std::pair<std::string_view, QueryField> kCompared[] = {
    {"error", QueryField::kError},
    {"input_error", QueryField::kInputError},
    {"size", QueryField::kSize},
    {"depth", QueryField::kDepth},
    {"errors", QueryField::kErrors}};

constexpr std::pair<std::string_view, QuerySign> kSigns[] = {{">=", QuerySign::kAtLeast},
                                                             {"<=", QuerySign::kAtMost},
                                                             {">", QuerySign::kMore},
                                                             {"<", QuerySign::kLess},
                                                             {"=", QuerySign::kEqual}};

std::string Quoted(std::string_view text) {
  constexpr size_t kShown = 40;
  return fmt::format("'{}'", text.substr(0, kShown));
}

template <class Rows>
std::string WordsOf(const Rows& rows) {
  std::vector<std::string_view> words;
  for (const auto& row : rows) {
    if constexpr (requires { row.word; }) {
      words.push_back(row.word);
    } else {
      words.push_back(row.first);
    }
  }
  return fmt::format("{}", fmt::join(words, ", "));
}

bool IsBlank(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }
bool IsWordCharacter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

// How many UTF-16 units a page counts up to a byte.
size_t UnitsBefore(std::string_view text, size_t at) {
  size_t units = 0;
  for (const char c : text.substr(0, at)) {
    const auto byte = static_cast<uint8_t>(c);
    if ((byte & 0xC0) == 0x80) continue;  // goes on with a character
    units += byte >= 0xF0 ? 2 : 1;
  }
  return units;
}

class QueryParser {
 public:
  explicit QueryParser(std::string_view text) : text_(text) {}

  ParsedQuery Parse() {
    if (text_.size() > kMostBytes) Fail(0, fmt::format("longer than {} bytes", kMostBytes));
    while (!parsed_.fault && SkipBlanks()) ReadTerm();
    if (parsed_.fault) parsed_.terms.clear();
    return std::move(parsed_);
  }

 private:
  bool SkipBlanks() {
    while (at_ < text_.size() && IsBlank(text_[at_])) ++at_;
    return at_ < text_.size();
  }
  void Fail(size_t at, std::string message) {
    if (!parsed_.fault) parsed_.fault = {UnitsBefore(text_, at), std::move(message)};
  }

  void ReadTerm() {
    const size_t begin = at_;
    QueryTerm term;
    if (text_[at_] == '-' && at_ + 1 < text_.size() && !IsBlank(text_[at_ + 1])) {
      term.is_negated = true;
      ++at_;
    }
    if (text_[at_] == '"') {
      ReadQuoted(begin, term);
    } else {
      const size_t word_at = at_;
      while (at_ < text_.size() && !IsBlank(text_[at_])) ++at_;
      ReadWord(text_.substr(word_at, at_ - word_at), word_at, term);
    }
    if (parsed_.terms.size() >= kMostTerms)
      Fail(begin, fmt::format("more than {} terms", kMostTerms));
    parsed_.terms.push_back(std::move(term));
  }

  void ReadQuoted(size_t begin, QueryTerm& term) {
    std::string text;
    for (++at_; at_ < text_.size() && text_[at_] != '"'; ++at_) {
      if (text_[at_] == '\\' && at_ + 1 < text_.size()) ++at_;
      text += text_[at_];
    }
    if (at_ == text_.size()) return Fail(begin, "the quote is not closed");
    ++at_;
    term.texts = {FoldCase(text)};
  }

  void ReadWord(std::string_view word, size_t at, QueryTerm& term) {
    size_t end = 0;
    while (end < word.size() && IsWordCharacter(word[end])) ++end;
    const std::string name = FoldCase(word.substr(0, end));
    const std::string_view rest = word.substr(end);
    if (!name.empty() && rest.starts_with(':')) return ReadNamed(name, rest.substr(1), at, term);
    if (!name.empty()) {
      for (const auto& [sign, meaning] : kSigns) {
        if (!rest.starts_with(sign)) continue;
        term.sign = meaning;
        return ReadCompared(name, rest.substr(sign.size()), at, term);
      }
    }
    term.texts = {FoldCase(word)};
  }

  void ReadCompared(const std::string& name, std::string_view value, size_t at, QueryTerm& term) {
    const auto known =
        std::ranges::find(kCompared, name, [](const auto& row) { return row.first; });
    if (known == std::end(kCompared)) {
      return Fail(at, fmt::format("{}: expected one of {}", Quoted(name), WordsOf(kCompared)));
    }
    term.field = known->second;
    const auto [end, error] =
        std::from_chars(value.data(), value.data() + value.size(), term.limit);
    if (error == std::errc::result_out_of_range) {
      term.limit = std::numeric_limits<double>::infinity();
    } else if (value.empty() || error != std::errc() || end != value.data() + value.size() ||
               std::isnan(term.limit)) {
      Fail(at, fmt::format("{}: expected a number, got {}", name, Quoted(value)));
    }
  }

  void ReadNamed(const std::string& name, std::string_view value, size_t at, QueryTerm& term) {
    const auto* const known = std::ranges::find(kNamed, std::string_view(name), &NamedField::word);
    if (known == std::end(kNamed)) {
      return Fail(at, fmt::format("{}: is not known; expected one of {}, or put the text in "
                                  "\"quotes\"",
                                  Quoted(name), WordsOf(kNamed)));
    }
    term.field = known->field;
    if (known->field == QueryField::kShape) {
      term.texts = {PlainShape(value)};
      return;
    }
    const std::string folded = FoldCase(value);
    bool is_any = false;
    for (const std::string_view word : SplitAt(folded, ',')) {
      if (word.empty()) continue;
      is_any = true;
      AddValue(*known, word, at, term);
    }
    if (!is_any) Fail(at, fmt::format("{}: expected a value behind the colon", name));
  }

  void AddValue(const NamedField& named, std::string_view word, size_t at, QueryTerm& term) {
    if (named.form == Form::kTexts) {
      term.texts.push_back(named.field == QueryField::kDType ? PlainDType(word)
                                                             : std::string(word));
    } else if (named.form == Form::kNumbers) {
      const std::optional<int64_t> number = ParseInteger(word);
      if (!number) {
        return Fail(at,
                    fmt::format("{}: expected whole numbers, got {}", named.word, Quoted(word)));
      }
      term.numbers.push_back(*number);
    } else {
      const auto choice = std::ranges::find(named.choices, word, &Choice::word);
      if (choice == named.choices.end()) {
        return Fail(at, fmt::format("{}: expected {}, got {}", named.word, WordsOf(named.choices),
                                    Quoted(word)));
      }
      term.choices |= choice->bits;
    }
  }

  const std::string_view text_;
  size_t at_ = 0;
  ParsedQuery parsed_;
};

constexpr std::pair<std::string_view, std::string_view> kShortTypes[] = {
    {"bf16", "bfloat16"}, {"fp16", "float16"},  {"fp32", "float32"}, {"fp64", "float64"},
    {"f16", "float16"},   {"f32", "float32"},   {"f64", "float64"},  {"half", "float16"},
    {"float", "float32"}, {"double", "float64"}};

}  // namespace

std::string PlainDType(std::string_view dtype) {
  std::string plain = FoldCase(dtype);
  const size_t dot = plain.rfind('.');
  if (dot != std::string::npos) plain.erase(0, dot + 1);
  for (const auto& [name, full] : kShortTypes) {
    if (plain == name) return std::string(full);
  }
  return plain;
}

std::string PlainShape(std::string_view shape) {
  std::string plain = "[";
  for (const char c : shape) {
    if (c != '[' && c != ']' && c != '(' && c != ')' && !IsBlank(c)) plain += c;
  }
  if (plain.ends_with(',')) plain.pop_back();
  return plain + ']';
}

ParsedQuery ParseQuery(std::string_view query) { return QueryParser(query).Parse(); }

}  // namespace plumbline::view
