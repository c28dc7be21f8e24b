#include "view/serve/access_gate.h"

#include <fmt/format.h>
#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <charconv>
#include <cstdint>
#include <cstring>

#include "base/text/json.h"
#include "base/text/text_parts.h"

namespace plumbline::view {
namespace {

// Longer paths mean nothing here.
constexpr size_t kLongestPath = 1024;

bool IsNumber(std::string_view text) {
  return !text.empty() &&
         std::ranges::all_of(text, [](unsigned char c) { return std::isdigit(c); });
}

// "[::1]:80" and "name:80" without the port; IPv6 addresses without brackets.
std::string HostOf(std::string_view host_and_port) {
  std::string_view host = host_and_port;
  if (host.starts_with('[')) {
    const size_t close = host.find(']');
    if (close == std::string_view::npos) return {};
    const std::string_view rest = host.substr(close + 1);
    if (!rest.empty() && !(rest.starts_with(':') && IsNumber(rest.substr(1)))) return {};
    host = host.substr(1, close - 1);
  } else if (const size_t colon = host.find(':'); colon != std::string_view::npos) {
    if (!IsNumber(host.substr(colon + 1))) return {};
    host = host.substr(0, colon);
  }
  std::string lower(host);
  std::ranges::transform(lower, lower.begin(), [](unsigned char c) { return std::tolower(c); });
  return lower;
}

// An address in digits: nobody can bind it to another machine.
bool IsAddress(std::string_view host) {
  const bool is_v6 = host.find(':') != std::string_view::npos;
  return !host.empty() && std::ranges::all_of(host, [&](unsigned char c) {
    return c == '.' || (is_v6 ? c == ':' || std::isxdigit(c) != 0 : std::isdigit(c) != 0);
  });
}

// Takes as long for a wrong text as for a right one.
bool IsSameSecret(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  unsigned difference = 0;
  for (size_t i = 0; i < a.size(); ++i) difference |= static_cast<unsigned char>(a[i] ^ b[i]);
  return difference == 0;
}

std::string_view CookieNamed(std::string_view cookies, std::string_view name) {
  for (std::string_view part : SplitAt(cookies, ';')) {
    while (part.starts_with(' ')) part.remove_prefix(1);
    const size_t equals = part.find('=');
    if (equals != std::string_view::npos && part.substr(0, equals) == name) {
      return part.substr(equals + 1);
    }
  }
  return {};
}

bool IsApi(const HttpRequest& request) { return request.path.starts_with("/api/"); }

HttpResponse Refusal(const HttpRequest& request, int status, std::string_view code,
                     std::string_view message) {
  HttpResponse response = ErrorResponse(status, code, message);
  if (IsApi(request)) return response;
  response.SetBody(fmt::format("plumb view: {}\n", message), kPlainType);
  return response;
}

std::string MachineName() {
  std::array<char, 256> name{};
  if (::gethostname(name.data(), name.size() - 1) != 0) return {};
  return HostOf(name.data());
}

}  // namespace

Result<std::string> MakeToken() {
  std::array<unsigned char, 16> bytes{};
  size_t filled = 0;
  while (filled < bytes.size()) {
    const ssize_t count = ::getrandom(bytes.data() + filled, bytes.size() - filled, 0);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) {
      return Error(ErrorCode::kIo, fmt::format("token: no random bytes ({}). Choose one with "
                                               "--token",
                                               std::strerror(errno)));
    }
    filled += static_cast<size_t>(count);
  }
  std::string token;
  for (const unsigned char byte : bytes) token += fmt::format("{:02x}", byte);
  return token;
}

Status CheckToken(std::string_view token) {
  const bool is_plain = std::ranges::all_of(token, [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '-' || c == '_' || c == '.';
  });
  if (is_plain && token.size() >= 8 && token.size() <= 128) return {};
  return Error(ErrorCode::kInvalidArgument,
               "--token: expected 8 to 128 letters, digits, '-', '_' or '.'");
}

bool IsLoopback(std::string_view host) {
  const bool is_v4 = host.starts_with("127.") && IsAddress(host);
  return is_v4 || host == "localhost" || host == "::1";
}

AccessGate::AccessGate(AccessRules rules) : rules_(std::move(rules)), machine_(MachineName()) {}

void AccessGate::SetPort(int port) { cookie_ = fmt::format("plumb_view_{}", port); }

bool AccessGate::IsOwnHost(std::string_view host_and_port) const {
  const std::string host = HostOf(host_and_port);
  if (IsLoopback(host)) return true;
  // Any port: it may be another one at the near end of a tunnel.
  if (IsLoopback(rules_.host)) return false;
  return IsAddress(host) || (!host.empty() && (host == machine_ || host == HostOf(rules_.host)));
}

bool AccessGate::HasToken(const HttpRequest& request) const {
  constexpr std::string_view kBearer = "Bearer ";
  const std::string_view authorization = request.Header("authorization");
  if (authorization.starts_with(kBearer)) {
    return IsSameSecret(authorization.substr(kBearer.size()), rules_.token);
  }
  return IsSameSecret(CookieNamed(request.Header("cookie"), cookie_), rules_.token);
}

HttpResponse AccessGate::LetIn(const HttpRequest& request) const {
  HttpResponse response;
  response.status = 302;
  // Within a page of another site a strict cookie would not come back.
  const std::string_view site =
      rules_.frames.empty() ? "SameSite=Strict" : "SameSite=None; Secure; Partitioned";
  response.headers = {
      {"Location", WithoutToken(request.target)},
      {"Set-Cookie", fmt::format("{}={}; Path=/; HttpOnly; {}", cookie_, rules_.token, site)}};
  return response;
}

std::optional<HttpResponse> AccessGate::CheckSource(const HttpRequest& request) const {
  const bool changes = request.method != "GET";
  const std::string_view origin = request.Header("origin");
  constexpr std::string_view kHttp = "http://";
  const bool is_foreign =
      !origin.empty() &&
      !(origin.starts_with(kHttp) && origin.substr(kHttp.size()) == request.Header("host"));
  if (changes && is_foreign) {
    return Refusal(
        request, 403, "forbidden",
        "the request comes from a page of another origin, which may change nothing here");
  }
  if (IsApi(request) && request.Header("sec-fetch-site") == "cross-site") {
    return Refusal(request, 403, "forbidden", "the request comes from a page of another site");
  }
  return std::nullopt;
}

std::optional<HttpResponse> AccessGate::CheckBody(const HttpRequest& request) const {
  const std::string_view length = request.Header("content-length");
  if (!request.Header("transfer-encoding").empty()) {
    return Refusal(request, 411, "length-required", "a body needs a Content-Length");
  }
  uint64_t bytes = 0;
  const auto [end, error] = std::from_chars(length.data(), length.data() + length.size(), bytes);
  if (!length.empty() && (error != std::errc() || end != length.data() + length.size())) {
    return Refusal(request, 400, "invalid-argument", "Content-Length: expected a whole number");
  }
  if (bytes > rules_.body_bytes) {
    return Refusal(request, 413, "too-large",
                   fmt::format("the body has {} bytes (at most {})", bytes, rules_.body_bytes));
  }
  if (request.method != "POST") {
    if (bytes == 0) return std::nullopt;
    return Refusal(request, 400, "invalid-argument", "only POST takes a body");
  }
  const std::string_view type = request.Header("content-type");
  const bool is_json = type.substr(0, type.find(';')) == "application/json";
  if (!is_json || !request.Header("content-encoding").empty()) {
    return Refusal(request, 415, "unsupported", "the body must be application/json, not packed");
  }
  return std::nullopt;
}

std::optional<HttpResponse> AccessGate::Check(const HttpRequest& request) const {
  if (request.path.size() > kLongestPath) {
    return Refusal(request, 414, "invalid-argument",
                   fmt::format("the path of the address has {} bytes (at most {})",
                               request.path.size(), kLongestPath));
  }
  if (request.method != "GET" && request.method != "POST" && request.method != "DELETE") {
    HttpResponse response =
        Refusal(request, 405, "invalid-argument", "expected GET, POST or DELETE");
    response.headers.emplace_back("Allow", "GET, HEAD, POST, DELETE");
    return response;
  }
  if (!IsOwnHost(request.Header("host"))) {
    return Refusal(request, 421, "forbidden",
                   "the address names another host. Open the address that plumb view printed");
  }
  const std::string_view token = request.parameters.Text("token");
  const bool is_named = request.parameters.Has("token") && request.method == "GET";
  const bool is_known = is_named ? IsSameSecret(token, rules_.token) : HasToken(request);
  if (!is_known) {
    return Refusal(request, 401, "unauthorized",
                   "the token is missing or wrong. Open the address that plumb view printed");
  }
  if (auto refusal = CheckSource(request)) return refusal;
  if (auto refusal = CheckBody(request)) return refusal;
  if (is_named) return LetIn(request);
  return std::nullopt;
}

void AccessGate::AddHeaders(HttpResponse& response) const {
  const std::string frames = rules_.frames.empty() ? "'none'" : rules_.frames;
  response.headers.emplace_back(
      "Content-Security-Policy",
      fmt::format("default-src 'none'; script-src 'self'; style-src 'self'; "
                  "img-src 'self' data: blob:; font-src 'self'; connect-src 'self'; "
                  "worker-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors {}",
                  frames));
  if (rules_.frames.empty()) response.headers.emplace_back("X-Frame-Options", "DENY");
  response.headers.emplace_back("X-Content-Type-Options", "nosniff");
  response.headers.emplace_back("Referrer-Policy", "no-referrer");
  response.headers.emplace_back("Cross-Origin-Resource-Policy", "same-origin");
  response.headers.emplace_back("Cache-Control", "no-cache");
}

HttpResponse ErrorResponse(int status, std::string_view code, std::string_view message) {
  std::string text = R"({"error":{"code":)";
  json::AppendString(code, text);
  text += R"(,"message":)";
  json::AppendString(message, text);
  text += "}}";
  HttpResponse response;
  response.status = status;
  response.SetBody(std::move(text), kJsonType);
  return response;
}

HttpResponse ErrorResponse(const Error& error) {
  switch (error.code()) {
    case ErrorCode::kInvalidArgument:
      return ErrorResponse(400, "invalid-argument", error.message());
    case ErrorCode::kNotFound:
      return ErrorResponse(404, "not-found", error.message());
    case ErrorCode::kUnsupported:
      return ErrorResponse(422, "unsupported", error.message());
    case ErrorCode::kCorrupt:
      return ErrorResponse(422, "corrupt", error.message());
    case ErrorCode::kIo:
      return ErrorResponse(500, "io", error.message());
    case ErrorCode::kInternal:
      break;
  }
  return ErrorResponse(500, "internal", error.message());
}

std::string WithoutToken(std::string_view target) {
  const size_t question = target.find('?');
  std::string_view path = target.substr(0, question);
  // "//name" would be another host.
  while (path.starts_with("//") || path.starts_with("/\\")) path.remove_prefix(1);
  if (!path.starts_with('/')) path = "/";
  std::string address(path);
  if (question == std::string_view::npos) return address;
  char before = '?';
  for (const std::string_view part : SplitAt(target.substr(question + 1), '&')) {
    if (part.empty() || part == "token" || part.starts_with("token=")) continue;
    address += before;
    address += part;
    before = '&';
  }
  return address;
}

}  // namespace plumbline::view
