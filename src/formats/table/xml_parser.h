// The elements and texts of an XML document, front to back.

#ifndef PLUMBLINE_FORMATS_TABLE_XML_PARSER_H_
#define PLUMBLINE_FORMATS_TABLE_XML_PARSER_H_

#include <string_view>

#include "plumbline/result.h"

namespace plumbline::xml {

// A start tag. Valid during the call that hands it out.
class Element {
 public:
  Element(const char* expanded_name, const char** attributes);

  // The address of the namespace, whatever prefix the document has for it; empty: in none.
  [[nodiscard]] std::string_view space() const { return space_; }
  [[nodiscard]] std::string_view name() const { return name_; }
  // The value of an attribute without a prefix; empty when there is none.
  [[nodiscard]] std::string_view Attribute(std::string_view name) const;

 private:
  std::string_view space_, name_;
  const char** attributes_;  // names and values in turn, ended by null
};

// What a reader does with a document. Its first error ends the reading.
class Handler {
 public:
  virtual ~Handler() = default;
  virtual Status Begin(const Element& element) = 0;
  virtual Status End() = 0;  // of the innermost element that has begun
  // A piece of text inside that element, entities decoded; a text may come in many pieces.
  virtual void Text(std::string_view piece) = 0;
  // True ends the reading without an error.
  [[nodiscard]] virtual bool is_done() const { return false; }
};

// Hands the whole of `document` to `handler`. kCorrupt with the line: not well-formed, a prefix
// without a namespace, elements nested more than 256 deep, or a document type (which tables of
// spreadsheets never have, and which would bring entities of any size).
Status Parse(std::string_view document, Handler& handler);

}  // namespace plumbline::xml

#endif  // PLUMBLINE_FORMATS_TABLE_XML_PARSER_H_
