// Texts inside HTML and XML.

#ifndef PLUMBLINE_REPORT_MARKUP_TEXT_H_
#define PLUMBLINE_REPORT_MARKUP_TEXT_H_

#include <string>
#include <string_view>

namespace plumbline::report {

// Appends `text` as the content of an element.
void AppendHtmlText(std::string_view text, std::string& out);
// The same for XML attributes in double quotes and for contents whose line breaks must stay; what
// XML 1.0 cannot hold becomes a question mark.
void AppendXmlText(std::string_view text, std::string& out);

}  // namespace plumbline::report

#endif  // PLUMBLINE_REPORT_MARKUP_TEXT_H_
