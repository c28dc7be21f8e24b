// The HTTP server: sockets, threads and the protocol. It knows nothing of what is asked. A library
// of its own (plumbline_http), which only the module of `plumb view` links.

#ifndef PLUMBLINE_VIEW_SERVE_HTTP_SERVER_H_
#define PLUMBLINE_VIEW_SERVE_HTTP_SERVER_H_

#include <cstddef>
#include <memory>
#include <string>

#include "plumbline/result.h"
#include "view/serve/http_message.h"

namespace plumbline::view {

// What a client may send and how many are served at once; more wait until one ends.
struct HttpLimits {
  size_t threads = 64;  // connections; one that waits for its next request holds a thread
  size_t body_bytes = size_t{4} << 20;
  size_t head_bytes = size_t{32} << 10;  // request line and headers
  int idle_seconds = 5;                  // of a connection without a request
  int patience_seconds = 10;             // for a client that reads or writes
};

// Serves from StartHttpServer() on until it is stopped or destroyed. Thread-safe.
class HttpServer {
 public:
  virtual ~HttpServer() = default;
  [[nodiscard]] virtual int port() const = 0;
  // Takes no more connections, lets running answers finish and waits for them.
  virtual void Stop() = 0;
};

// Binds to `host` (a name or an address) and `port`, 0: one that is free. `handler` must outlive
// the server. kIo: the address cannot be bound, such as a port that is in use.
Result<std::unique_ptr<HttpServer>> StartHttpServer(const std::string& host, int port,
                                                    const HttpLimits& limits, HttpHandler& handler);

}  // namespace plumbline::view

#endif  // PLUMBLINE_VIEW_SERVE_HTTP_SERVER_H_
