// Texts inside HTML and XML.

#ifndef PLUMBLINE_REPORT_MARKUP_TEXT_H_
#define PLUMBLINE_REPORT_MARKUP_TEXT_H_

#include <string>
#include <string_view>

namespace plumbline::report {

// Appends `text` as the content of an element. Bytes that are not UTF-8, lone surrogates and NUL
// become U+FFFD.
void AppendHtmlText(std::string_view text, std::string& out);
// The same for XML attributes in double quotes and for contents whose line breaks must stay;
// control characters, which XML 1.0 cannot hold, become question marks.
void AppendXmlText(std::string_view text, std::string& out);

}  // namespace plumbline::report

#endif  // PLUMBLINE_REPORT_MARKUP_TEXT_H_
