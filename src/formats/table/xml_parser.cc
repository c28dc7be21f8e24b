#include "formats/table/xml_parser.h"

#include <expat.h>
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>

namespace plumbline::xml {
namespace {

constexpr char kBetween = ' ';  // in expanded names; no address of a namespace holds one
constexpr int kMostDepth = 256;
// Few and large blocks: a tag that goes over the end of one is read again from its beginning.
constexpr size_t kBlockBytes = size_t{1} << 30;

// One document being read; expat's callbacks get it as their argument.
class Reading {
 public:
  explicit Reading(Handler& handler)
      : handler_(handler), parser_(XML_ParserCreateNS(nullptr, kBetween)) {}

  Status Read(std::string_view document) {
    if (parser_ == nullptr) return Error(ErrorCode::kInternal, "no memory to read XML");
    XML_SetUserData(parser_.get(), this);
    XML_SetElementHandler(parser_.get(), &OnBegin, &OnEnd);
    XML_SetCharacterDataHandler(parser_.get(), &OnText);
    XML_SetStartDoctypeDeclHandler(parser_.get(), &OnDocumentType);
    bool is_last = false;
    while (!is_last) {
      const std::string_view block = document.substr(0, kBlockBytes);
      document.remove_prefix(block.size());
      is_last = document.empty();
      const bool read = XML_Parse(parser_.get(), block.data(), static_cast<int>(block.size()),
                                  is_last ? 1 : 0) != XML_STATUS_ERROR;
      if (error_) return *std::move(error_);
      if (handler_.is_done()) return {};
      if (!read) return Damaged(XML_ErrorString(XML_GetErrorCode(parser_.get())));
    }
    return {};
  }

 private:
  struct Free {
    void operator()(XML_Parser parser) const { XML_ParserFree(parser); }
  };

  [[nodiscard]] Error Damaged(std::string_view what) const {
    return Error(ErrorCode::kCorrupt,
                 fmt::format("line {}, column {}: {}", XML_GetCurrentLineNumber(parser_.get()),
                             XML_GetCurrentColumnNumber(parser_.get()), what));
  }
  // Callbacks may come once more behind the one that ends the reading.
  [[nodiscard]] bool is_over() const { return error_ || handler_.is_done(); }

  void Take(Status status) {
    if (!status) error_ = std::move(status).error();
    if (is_over()) XML_StopParser(parser_.get(), XML_FALSE);
  }

  static void OnBegin(void* user, const char* name, const char** attributes) {
    auto& reading = *static_cast<Reading*>(user);
    if (reading.is_over()) return;
    if (++reading.depth_ > kMostDepth) {
      return reading.Take(reading.Damaged("elements nest too deep"));
    }
    reading.Take(reading.handler_.Begin(Element(name, attributes)));
  }
  static void OnEnd(void* user, const char* /*name*/) {
    auto& reading = *static_cast<Reading*>(user);
    if (reading.is_over()) return;
    --reading.depth_;
    reading.Take(reading.handler_.End());
  }
  static void OnText(void* user, const char* text, int size) {
    auto& reading = *static_cast<Reading*>(user);
    if (!reading.is_over()) reading.handler_.Text({text, static_cast<size_t>(size)});
  }
  static void OnDocumentType(void* user, const char* /*name*/, const char* /*system*/,
                             const char* /*public_name*/, int /*has_internal_subset*/) {
    auto& reading = *static_cast<Reading*>(user);
    reading.Take(reading.Damaged("a document type, which such a file does not have"));
  }

  Handler& handler_;
  std::unique_ptr<XML_ParserStruct, Free> parser_;
  std::optional<Error> error_;
  int depth_ = 0;
};

}  // namespace

Element::Element(const char* expanded_name, const char** attributes) : attributes_(attributes) {
  const std::string_view whole = expanded_name;
  const size_t between = whole.rfind(kBetween);
  name_ = whole.substr(between == std::string_view::npos ? 0 : between + 1);
  space_ = whole.substr(0, whole.size() - std::min(whole.size(), name_.size() + 1));
}

std::string_view Element::Attribute(std::string_view name) const {
  for (const char** at = attributes_; *at != nullptr; at += 2) {
    if (name == at[0]) return at[1];
  }
  return {};
}

Status Parse(std::string_view document, Handler& handler) {
  return Reading(handler).Read(document);
}

}  // namespace plumbline::xml
