#include "report/html_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <string_view>
#include <utility>

#include "base/file/file.h"
#include "base/memory/packed_text.h"
#include "base/text/text_parts.h"
#include "report/findings.h"
#include "report/page_files.h"
#include "report/result_json.h"

namespace plumbline::report {

// In place: a page's rows are many.
std::string InScript(std::string json) {
  constexpr std::string_view kSafe = "\\u003c";
  size_t from = json.size();
  const auto count = static_cast<size_t>(std::ranges::count(json, '<'));
  size_t to = from + count * (kSafe.size() - 1);
  json.resize(to);
  while (from < to) {
    const char c = json[--from];
    if (c == '<') {
      to -= kSafe.size();
      kSafe.copy(&json[to], kSafe.size());
    } else {
      json[--to] = c;
    }
  }
  return json;
}

namespace {

constexpr size_t kMostKept = 4096;

}  // namespace

StackTexts::StackTexts(const Comparison& comparison, std::string (*spell)(const Frames&))
    : comparison_(comparison), spell_(spell) {
  for (const Shared<Frames>& stack : comparison.stacks) {
    if (texts_.size() == kMostKept) return;
    if (stack.empty()) continue;
    const auto [at, is_new] = texts_.try_emplace(&*stack);
    if (is_new) at->second = spell(*stack);
  }
}

const std::string* StackTexts::Find(size_t call) const {
  if (call >= comparison_.stacks.size()) return nullptr;
  const auto found = texts_.find(&*comparison_.stacks[call]);
  return found == texts_.end() ? nullptr : &found->second;
}

std::string StackTexts::Of(size_t call) const {
  if (const std::string* kept = Find(call)) return *kept;
  const bool has_stack = call < comparison_.stacks.size() && !comparison_.stacks[call].empty();
  return has_stack ? spell_(*comparison_.stacks[call]) : std::string();
}

std::vector<std::string> AnswerLines(std::string_view summary) {
  std::vector<std::string> lines = LinesIn(summary);
  std::erase_if(lines, [](const std::string& line) { return line.starts_with("file: "); });
  return lines;
}

// Contents of html/page.html, embedded by cmake/embed.cmake.
extern const std::string_view kPageHtml;

namespace {

// A place in a frame, and what writes its content.
struct Field {
  std::string_view name;
  std::function<Status(AtomicFile&)> write;
};

Field TextField(std::string_view name, std::vector<std::string_view> texts) {
  return {name, [texts = std::move(texts)](AtomicFile& file) -> Status {
            for (const std::string_view text : texts) PL_TRY(file.Write(text));
            return {};
          }};
}

// The fields stand in `html` in this order.
Status WriteFields(const std::string& path, std::string_view html,
                   const std::vector<Field>& fields) {
  PL_TRY_ASSIGN(AtomicFile file, AtomicFile::Create(path));
  for (const Field& field : fields) {
    const size_t at = html.find(field.name);
    PL_TRY(file.Write(html.substr(0, at)));
    PL_TRY(field.write(file));
    html.remove_prefix(at + field.name.size());
  }
  PL_TRY(file.Write(html));
  return file.Commit(false);
}

// As a Content-Security-Policy names an inline script or style. `digest`: hexadecimal.
std::string HashSource(std::string_view digest) {
  const auto value_of = [](char c) { return c <= '9' ? c - '0' : c - 'a' + 10; };
  std::string bytes;
  for (size_t i = 0; i + 1 < digest.size(); i += 2) {
    bytes += static_cast<char>(value_of(digest[i]) * 16 + value_of(digest[i + 1]));
  }
  return bytes.empty() ? "'none'" : fmt::format("'sha256-{}'", Base64Of(bytes));
}

// What is read without scripts; where the page was not built, that is all.
std::string PlainText(const std::string& summary) {
  const bool is_built = IsPageBuilt();
  std::string out = is_built ? "<noscript><pre>" : "<pre>";
  AppendHtmlText(summary, out);
  if (is_built) return out + "</pre></noscript>";
  AppendHtmlText(fmt::format("\nMore is not shown: {}.\n", kPageNotBuilt), out);
  return out + "</pre>";
}

std::string HeadOf(const std::string& summary, std::string_view overview, size_t parts) {
  std::string out;
  ObjectWriter object(out);
  object.Text("format", "plumbline page");
  object.Integer("version", 2);
  object.Texts("answer", AnswerLines(summary));
  object.Key("overview") += overview.empty() ? "null" : overview;
  object.Integer("parts", parts);
  object.End();
  return out;
}

// The page of a comparison.
Status WritePage(const std::string& path, const std::string& summary, std::string_view overview,
                 size_t parts, const std::function<Status(AtomicFile&)>& write_parts) {
  const PageFiles built = GetPageFiles();
  const std::string style_hash = HashSource(built.css_sha256),
                    script_hash = HashSource(built.js_sha256);
  const std::string plain = PlainText(summary);
  const std::string head = fmt::format("page {}\n", PackText(HeadOf(summary, overview, parts)));
  return WriteFields(path, kPageHtml,
                     {TextField("@STYLE_HASH@", {style_hash}),
                      TextField("@SCRIPT_HASH@", {script_hash}),
                      TextField("@STYLE@", {built.css}),
                      TextField("@SUMMARY@", {plain}),
                      {"@DATA@",
                       [&](AtomicFile& file) -> Status {
                         PL_TRY(file.Write(head));
                         return write_parts(file);
                       }},
                      TextField("@SCRIPT@", {built.js})});
}

// The answers of all parts, for readers without scripts.
std::string PlainSummary(std::span<const HtmlPart> parts) {
  std::string text;
  for (const HtmlPart& part : parts) {
    if (parts.size() > 1) text += part.label + ": ";
    text += SummaryText(*part.comparison);
  }
  return text;
}

}  // namespace

Status WriteHtmlFrame(const std::string& path, const HtmlFrame& frame,
                      const std::function<Status(AtomicFile&)>& write_data) {
  std::string plain;
  AppendHtmlText(frame.summary, plain);
  return WriteFields(path, frame.html,
                     {TextField("@STYLE@", frame.styles),
                      TextField("@SUMMARY@", {plain}),
                      {"@DATA@", write_data},
                      TextField("@SCRIPT@", frame.scripts)});
}

Status WriteHtml(std::span<const HtmlPart> parts, const std::string& path) {
  return WritePage(path, PlainSummary(parts), {}, parts.size(), [&](AtomicFile& file) -> Status {
    for (const HtmlPart& part : parts) {
      PL_TRY(file.Write(HtmlPartData(part, HtmlShare(parts.size()))));
    }
    return {};
  });
}

Status WriteHtmlOverview(const HtmlOverview& overview, const std::string& path) {
  return WritePage(path, overview.text, overview.json, overview.parts.size(),
                   [&](AtomicFile& file) -> Status {
                     for (const std::string& path_of_part : overview.parts) {
                       PL_TRY_ASSIGN(const std::string part, ReadFile(path_of_part));
                       PL_TRY(file.Write(part));
                     }
                     return {};
                   });
}

}  // namespace plumbline::report
