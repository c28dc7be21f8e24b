// The bytes of one connection, with an end to how long and how much a client may send.

#ifndef PLUMBLINE_VIEW_SERVE_HTTP_CONNECTION_H_
#define PLUMBLINE_VIEW_SERVE_HTTP_CONNECTION_H_

#include <httplib.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <string>

#include "view/serve/http_server.h"

namespace plumbline::view {

// A socket as the library reads and writes it. Does not own it. Single thread: that of the
// connection.
class HttpConnection : public httplib::Stream {
 public:
  HttpConnection(socket_t socket, const HttpLimits& limits, const std::atomic<bool>& is_stopping)
      : socket_(socket), limits_(limits), is_stopping_(is_stopping) {}

  // Waits for the next request; false: the client has gone, stays silent, or the server stops.
  bool AwaitRequest();
  // From here on until the next AwaitRequest() the size of a head is not limited: its headers were
  // read.
  void EndHead() { head_left_ = static_cast<size_t>(-1); }
  // The client sends more than a head may have: says so.
  void RefuseLongHead();
  // Tells the client that nothing more comes, and takes for a moment what it still sends: an answer
  // is lost when a connection is closed with something unread.
  void Drain();

  [[nodiscard]] bool is_readable() const override;
  [[nodiscard]] bool is_writable() const override;
  ssize_t read(char* bytes, size_t size) override;
  ssize_t write(const char* bytes, size_t size) override;
  void get_remote_ip_and_port(std::string& ip, int& port) const override;
  void get_local_ip_and_port(std::string& ip, int& port) const override;
  [[nodiscard]] socket_t socket() const override { return socket_; }

 private:
  [[nodiscard]] bool Await(short events, int milliseconds) const;
  bool Fill();

  socket_t socket_;
  const HttpLimits& limits_;
  const std::atomic<bool>& is_stopping_;
  std::string read_;  // from the socket, not taken yet
  size_t taken_ = 0;  // of these
  size_t head_left_ = 0;
  std::chrono::steady_clock::time_point head_end_{};
};

}  // namespace plumbline::view

#endif  // PLUMBLINE_VIEW_SERVE_HTTP_CONNECTION_H_
