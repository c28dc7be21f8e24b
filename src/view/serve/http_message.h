// A request of a browser and the answer to it, without the library that carries them.

#ifndef PLUMBLINE_VIEW_SERVE_HTTP_MESSAGE_H_
#define PLUMBLINE_VIEW_SERVE_HTTP_MESSAGE_H_

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "plumbline/result.h"
#include "view/query/parameters.h"

namespace plumbline::view {

struct HttpRequest {
  std::string method;  // "GET"; HEAD comes as GET
  std::string path;    // decoded, without the query
  std::string target;  // as it was sent, with the query
  Parameters parameters;
  std::map<std::string, std::string, std::less<>> headers;  // names in lower case
  std::string body;

  // Empty where there is none.
  [[nodiscard]] std::string_view Header(std::string_view name) const {
    const auto found = headers.find(name);
    return found == headers.end() ? std::string_view() : std::string_view(found->second);
  }
};

struct HttpResponse {
  int status = 200;
  std::string type{};                   // media type of the body
  std::string_view body{};              // in the memory of `owner`
  std::shared_ptr<const void> owner{};  // of the body; null: it lives as long as the program
  std::vector<std::pair<std::string, std::string>> headers{};
  // Instead of a body: waits a moment for the next piece, which may stay empty; false: no more.
  // Called by one thread until the reader has gone.
  std::function<bool(std::string& piece)> stream{};

  void SetBody(std::string text, std::string_view media_type) {
    auto kept = std::make_shared<const std::string>(std::move(text));
    type = media_type;
    body = *kept;
    owner = std::move(kept);
  }
};

inline constexpr std::string_view kJsonType = "application/json; charset=utf-8";
inline constexpr std::string_view kPlainType = "text/plain; charset=utf-8";

// What answers. Called by several threads at once.
class HttpHandler {
 public:
  virtual ~HttpHandler() = default;
  // Told once, before the first request.
  virtual void Listens(int port) = 0;
  // Looks at a request before its body is read; a response: that is the answer, and the body is
  // not read.
  virtual std::optional<HttpResponse> Refuse(const HttpRequest& request) = 0;
  virtual HttpResponse Answer(const HttpRequest& request) = 0;
};

}  // namespace plumbline::view

#endif  // PLUMBLINE_VIEW_SERVE_HTTP_MESSAGE_H_
