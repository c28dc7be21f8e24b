// Texts of spreadsheet cells.

#ifndef PLUMBLINE_FORMATS_SHEET_TEXT_H_
#define PLUMBLINE_FORMATS_SHEET_TEXT_H_

#include <string>
#include <string_view>

namespace plumbline::xlsx {

// Appends the element `<t>` with `text` (UTF-8), cut to the 32,767 that a cell holds. Control
// characters and texts that look like an escape are written as the format's escapes (_x001B_);
// bytes that are not UTF-8 or no character of XML become U+FFFD. Blanks at the ends stay.
void AppendSheetText(std::string_view text, std::string& out);

}  // namespace plumbline::xlsx

#endif  // PLUMBLINE_FORMATS_SHEET_TEXT_H_
