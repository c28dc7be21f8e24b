// Answers packed for the way.

#ifndef PLUMBLINE_VIEW_SERVE_GZIP_TEXT_H_
#define PLUMBLINE_VIEW_SERVE_GZIP_TEXT_H_

#include <optional>
#include <string>
#include <string_view>

namespace plumbline::view {

// Whether an Accept-Encoding header takes gzip: named, or "*", and not with q=0.
bool TakesGzip(std::string_view accept_encoding);

// The text as one gzip member; nothing where it would not become smaller. Takes about 3 ms per
// megabyte.
std::optional<std::string> GzipText(std::string_view text);

}  // namespace plumbline::view

#endif  // PLUMBLINE_VIEW_SERVE_GZIP_TEXT_H_
