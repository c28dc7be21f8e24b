#include "view/serve/http_server.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cctype>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>

#include "view/serve/http_connection.h"

namespace plumbline::view {
namespace {

// One request after the other of a connection ends it at last, so that none holds a thread for
// ever.
constexpr size_t kRequestsOfConnection = 10'000;

// What a connection does meanwhile; each has a thread of its own.
struct Exchange {
  HttpConnection* connection = nullptr;
  std::optional<HttpResponse> refusal{};
  bool is_last = true;  // the connection ends behind the answer
};
thread_local Exchange* current_exchange = nullptr;

HttpRequest RequestOf(const httplib::Request& from) {
  HttpRequest request;
  request.method = from.method == "HEAD" ? "GET" : from.method;
  request.path = from.path;
  request.target = from.target;
  for (const auto& [name, value] : from.params) {
    if (!request.parameters.Has(name)) request.parameters.Set(name, value);
  }
  for (const auto& [name, value] : from.headers) {
    std::string lower = name;
    std::ranges::transform(lower, lower.begin(), [](unsigned char c) { return std::tolower(c); });
    request.headers.emplace(std::move(lower), value);  // the first of several
  }
  request.body = from.body;
  return request;
}

void GiveStream(HttpResponse&& from, httplib::Response& to) {
  current_exchange->is_last = true;
  to.set_header("Connection", "close");
  to.set_content_provider(
      from.type, [stream = std::move(from.stream)](size_t /*offset*/, httplib::DataSink& sink) {
        std::string piece;
        if (!sink.is_writable()) return false;
        if (!stream(piece)) {
          sink.done();
          return true;
        }
        return piece.empty() || sink.write(piece.data(), piece.size());
      });
}

// Bodies go out by pieces, as the library would pack a text, at its own slow choice, otherwise.
void Give(HttpResponse from, httplib::Response& to) {
  to.status = from.status;
  for (const auto& [name, value] : from.headers) to.set_header(name, value);
  if (from.stream) return GiveStream(std::move(from), to);
  if (from.body.empty()) return;
  to.set_content_provider(from.body.size(), from.type,
                          [body = from.body, owner = std::move(from.owner)](
                              size_t offset, size_t length, httplib::DataSink& sink) {
                            return sink.write(body.data() + offset, length);
                          });
}

class Listener : public httplib::Server {
 public:
  Listener(const HttpLimits& limits, HttpHandler& handler) : limits_(limits), handler_(handler) {
    new_task_queue = [this] { return new httplib::ThreadPool(limits_.threads); };
    set_payload_max_length(limits_.body_bytes);
    set_tcp_nodelay(true);
    // The library's own choice lets two servers share one port.
    set_socket_options([](socket_t socket) {
      const int on = 1;
      (void)::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    });
    SetHandlers();
  }

  void BeginStop() { is_stopping_ = true; }

 private:
  void SetHandlers() {
    set_pre_routing_handler([](const httplib::Request&, httplib::Response& response) {
      if (!current_exchange->refusal) return HandlerResponse::Unhandled;
      Give(*std::move(current_exchange->refusal), response);
      return HandlerResponse::Handled;
    });
    const auto answer = [this](const httplib::Request& request, httplib::Response& response) {
      Give(handler_.Answer(RequestOf(request)), response);
    };
    // Any path: a long one was refused, for which an expression like this needs much stack.
    Get(R"([\s\S]*)", answer);
    Post(R"([\s\S]*)", answer);
    Delete(R"([\s\S]*)", answer);
    // The library refuses a long address by itself, without a word.
    set_error_handler(HandlerWithResponse([](const httplib::Request&, httplib::Response& response) {
      if (response.status != 414 || response.has_header("Content-Type")) {
        return HandlerResponse::Unhandled;
      }
      response.set_content(fmt::format(R"({{"error":{{"code":"invalid-argument","message":)"
                                       R"("the address is longer than {} bytes"}}}})",
                                       CPPHTTPLIB_REQUEST_URI_MAX_LENGTH),
                           "application/json");
      return HandlerResponse::Handled;
    }));
    set_exception_handler([](const httplib::Request&, httplib::Response& response,
                             const std::exception_ptr& /*what*/) {
      response.status = 500;
      response.set_content(R"({"error":{"code":"internal","message":"no memory for the answer"}})",
                           "application/json");
    });
  }

  void Look(httplib::Request& request, Exchange& exchange) {
    exchange.connection->EndHead();
    exchange.is_last = false;  // nobody can tell where a damaged request ends
    request.ranges.clear();    // every answer is whole
    exchange.refusal = handler_.Refuse(RequestOf(request));
    const bool has_body = request.has_header("Transfer-Encoding") ||
                          request.get_header_value("Content-Length", 0) != "";
    // Otherwise its body would be taken for the next request.
    if (!exchange.refusal || !has_body) return;
    exchange.is_last = true;
    request.headers.erase("Expect");
    request.set_header("Connection", "close");
  }

  bool process_and_close_socket(socket_t socket) override {
    HttpConnection connection(socket, limits_, is_stopping_);
    bool is_good = false;
    for (size_t left = kRequestsOfConnection; left > 0 && connection.AwaitRequest(); --left) {
      Exchange exchange{.connection = &connection};
      current_exchange = &exchange;
      bool is_closed = false;
      is_good = process_request(connection, left == 1, is_closed,
                                [&](httplib::Request& request) { Look(request, exchange); });
      current_exchange = nullptr;
      if (!is_good) connection.RefuseLongHead();
      if (exchange.is_last) connection.Drain();
      if (!is_good || is_closed || exchange.is_last) break;
    }
    (void)::shutdown(socket, SHUT_RDWR);
    (void)::close(socket);
    return is_good;
  }

  const HttpLimits limits_;
  HttpHandler& handler_;
  std::atomic<bool> is_stopping_ = false;
};

class RunningServer : public HttpServer {
 public:
  RunningServer(const HttpLimits& limits, HttpHandler& handler) : listener_(limits, handler) {}
  ~RunningServer() override { Stop(); }

  Status Start(const std::string& host, int port, HttpHandler& handler) {
    errno = 0;
    port_ = port == 0 ? listener_.bind_to_any_port(host)
                      : (listener_.bind_to_port(host, port) ? port : -1);
    if (port_ <= 0) {
      const int reason = errno;
      return Error(ErrorCode::kIo,
                   fmt::format("{}:{}: cannot listen there ({}). Choose another --port (0: one "
                               "that is free) or --host",
                               host, port, reason == 0 ? "unknown host" : std::strerror(reason)));
    }
    handler.Listens(port_);
    thread_ = std::jthread([this] { (void)listener_.listen_after_bind(); });
    while (!listener_.is_running()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return {};
  }

  [[nodiscard]] int port() const override { return port_; }

  void Stop() override {
    if (!thread_.joinable()) return;
    listener_.BeginStop();
    listener_.stop();
    thread_.join();
  }

 private:
  Listener listener_;
  int port_ = -1;
  std::jthread thread_;
};

}  // namespace

Result<std::unique_ptr<HttpServer>> StartHttpServer(const std::string& host, int port,
                                                    const HttpLimits& limits,
                                                    HttpHandler& handler) {
  auto server = std::make_unique<RunningServer>(limits, handler);
  PL_TRY(server->Start(host, port, handler));
  return std::unique_ptr<HttpServer>(std::move(server));
}

}  // namespace plumbline::view
