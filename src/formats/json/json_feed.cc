#include "formats/json/json_feed.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <variant>

#include "base/text/json.h"

namespace plumbline::json {

void Document::Open(char bracket) {
  Separate();
  text_ += bracket;
  first_ = true;
}

void Document::Close(char bracket) {
  text_ += bracket;
  first_ = false;
}

void Document::Key(std::string_view key) {
  Text(key);
  text_ += ':';
  first_ = true;
}

void Document::Text(std::string_view text) {
  Separate();
  AppendString(text, text_);
}

void Document::Raw(std::string_view json) {
  Separate();
  text_ += json;
}

void Document::Member(std::string_view key, std::string_view text) {
  Key(key);
  Text(text);
}

void Document::Number(std::string_view key, uint64_t number) {
  Key(key);
  Raw(std::to_string(number));
}

void Document::Truth(std::string_view key, bool truth) {
  Key(key);
  Raw(truth ? "true" : "false");
}

void Document::Texts(std::string_view key, const std::vector<std::string>& texts) {
  Key(key);
  Open('[');
  for (const std::string& text : texts) Text(text);
  Close(']');
}

Result<std::string> Document::Finish() const {
  std::string out;
  PL_TRY(Rewrite(text_, {.indent = 2}, out));
  return out;
}

void Document::Separate() {
  if (!std::exchange(first_, false)) text_ += ',';
}

}  // namespace plumbline::json

namespace plumbline {

Status JsonFeed::LoadMore() {
  constexpr size_t kStep = size_t{4} << 20;
  const size_t ahead = text_.size() - in_.offset();
  PL_TRY(file_->LoadUntil(text_.size() + std::max(kStep, ahead)));
  text_ = file_->view();
  in_.Extend(text_);
  return {};
}

Status JsonFeed::ReadEnd() {
  for (;;) {
    json::Reader there = in_;
    const bool is_end = there.ReadEnd();
    if (is_whole() || !is_end) {
      in_ = there;
      if (!is_end) return in_.error();
      return {};
    }
    // Blanks up to the end of the loaded part.
    in_.Peek();
    Release(in_.offset());
    PL_TRY(LoadMore());
  }
}

}  // namespace plumbline

namespace plumbline::json {

namespace {

// As deep as dump.json may be.
constexpr int kMaxDepth = 512;

class Rewriter {
 public:
  Rewriter(std::string_view text, const RewriteOptions& options, std::string& out)
      : text_(text), options_(options), in_(text, kMaxDepth), out_(out) {}

  Status Run() {
    Value(options_.outer_levels, {});
    if (in_.failed() || !in_.ReadEnd()) return in_.error();
    return {};
  }

 private:
  void BreakLine(int level) {
    out_ += '\n';
    out_.append(static_cast<size_t>(level) * static_cast<size_t>(options_.indent), ' ');
  }

  // A failure sticks to the reader, so nothing is returned.
  void Value(int level, std::string_view key) {
    switch (in_.Peek()) {
      case Kind::kObject:
        return Object(level);
      case Kind::kArray:
        return Array(level);
      case Kind::kString:
        return Text(key);
      case Kind::kNumber:
        return NumberText();
      default: {
        const size_t begin = in_.offset();
        if (in_.SkipValue()) out_ += text_.substr(begin, in_.offset() - begin);
      }
    }
  }

  void Object(int level) {
    std::string_view key;
    bool first = true;
    in_.EnterObject();
    while (in_.NextMember(key)) {
      out_ += first ? '{' : ',';
      first = false;
      BreakLine(level + 1);
      const std::string kept(key);
      AppendString(kept, out_);
      out_ += ": ";
      Value(level + 1, kept);
    }
    if (!first) BreakLine(level);
    out_ += first ? "{}" : "}";
  }

  void Array(int level) {
    bool first = true;
    in_.EnterArray();
    while (in_.NextElement()) {
      out_ += first ? '[' : ',';
      first = false;
      BreakLine(level + 1);
      Value(level + 1, {});
    }
    if (!first) BreakLine(level);
    out_ += first ? "[]" : "]";
  }

  void Text(std::string_view key) {
    std::string_view text;
    if (!in_.ReadString(text)) return;
    std::optional<std::string> replaced;
    if (options_.replace && !key.empty()) replaced = options_.replace(key, text);
    AppendString(replaced ? std::string_view(*replaced) : text, out_);
  }

  void NumberText() {
    const size_t begin = in_.offset();
    Number number;
    if (!in_.ReadNumber(number)) return;
    const auto* real = std::get_if<double>(&number);
    const bool finite = real == nullptr || std::isfinite(*real);
    if (options_.strict && !finite) {
      const std::string_view infinity = *real < 0 ? "\"-Infinity\"" : "\"Infinity\"";
      out_ += std::isnan(*real) ? std::string_view("\"NaN\"") : infinity;
      return;
    }
    out_ += text_.substr(begin, in_.offset() - begin);
  }

  std::string_view text_;
  const RewriteOptions& options_;
  Reader in_;
  std::string& out_;
};

}  // namespace

Status Rewrite(std::string_view text, const RewriteOptions& options, std::string& out) {
  return Rewriter(text, options, out).Run();
}

}  // namespace plumbline::json
