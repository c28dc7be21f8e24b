// Who may ask: the token, the host and origin that a request names, and what it may carry.

#ifndef PLUMBLINE_VIEW_SERVE_ACCESS_GATE_H_
#define PLUMBLINE_VIEW_SERVE_ACCESS_GATE_H_

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "plumbline/result.h"
#include "view/serve/http_message.h"

namespace plumbline::view {

// 32 characters with 128 random bits.
Result<std::string> MakeToken();
// kInvalidArgument unless it is 8 to 128 letters, digits, '-', '_' or '.'.
Status CheckToken(std::string_view token);

// Addresses that only this machine reaches.
bool IsLoopback(std::string_view host);

struct AccessRules {
  std::string token;
  std::string host = "127.0.0.1";  // where the server listens
  // Origins that may show the page in a frame, as in a Content-Security-Policy; empty: none.
  std::string frames;
  size_t body_bytes = size_t{4} << 20;
};

// Decides about requests. Thread-safe once SetPort() was called.
class AccessGate {
 public:
  explicit AccessGate(AccessRules rules);
  void SetPort(int port);

  // Nothing: the request may pass. Otherwise its answer: a redirect that sets the cookie, for an
  // address with the right token; 401 without a token, 421 for another host's name (a name that
  // was bound anew to this machine), 403 for a foreign origin, 400, 405, 411, 413, 414 or 415.
  [[nodiscard]] std::optional<HttpResponse> Check(const HttpRequest& request) const;

  // On every answer: what the page may load, and who may show it.
  void AddHeaders(HttpResponse& response) const;

 private:
  [[nodiscard]] bool IsOwnHost(std::string_view host_and_port) const;
  [[nodiscard]] bool HasToken(const HttpRequest& request) const;
  [[nodiscard]] std::optional<HttpResponse> CheckSource(const HttpRequest& request) const;
  [[nodiscard]] std::optional<HttpResponse> CheckBody(const HttpRequest& request) const;
  [[nodiscard]] HttpResponse LetIn(const HttpRequest& request) const;

  AccessRules rules_;
  std::string machine_;  // its name, in lower case
  std::string cookie_;   // its name
};

// The answer {"error": {"code", "message"}}; where a person reads it, the message alone.
HttpResponse ErrorResponse(int status, std::string_view code, std::string_view message);
HttpResponse ErrorResponse(const Error& error);

// `target` without its parameter `token`, as an address on this server; the rest stays as it is.
std::string WithoutToken(std::string_view target);

}  // namespace plumbline::view

#endif  // PLUMBLINE_VIEW_SERVE_ACCESS_GATE_H_
