#include "view/serve/http_connection.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <string_view>

namespace plumbline::view {
namespace {

// What is read at once.
constexpr size_t kReadBytes = size_t{16} << 10;
// How long one wait may overlook that the server stops.
constexpr int kSliceMilliseconds = 200;
// What a client may still send when its answer is out.
constexpr int kDrainPieces = 64;
constexpr int kDrainMilliseconds = 500;
// A head that comes byte by byte holds a thread no longer than that.
constexpr std::chrono::seconds kHeadTime{20};

void AddressOf(const sockaddr_storage& address, std::string& ip, int& port) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (address.ss_family == AF_INET) {
    sockaddr_in v4{};
    std::memcpy(&v4, &address, sizeof v4);
    ::inet_ntop(AF_INET, &v4.sin_addr, text.data(), text.size());
    port = ntohs(v4.sin_port);
  } else if (address.ss_family == AF_INET6) {
    sockaddr_in6 v6{};
    std::memcpy(&v6, &address, sizeof v6);
    ::inet_ntop(AF_INET6, &v6.sin6_addr, text.data(), text.size());
    port = ntohs(v6.sin6_port);
  }
  ip = text.data();
}

}  // namespace

bool HttpConnection::Await(short events, int milliseconds) const {
  for (int waited = 0; waited < milliseconds; waited += kSliceMilliseconds) {
    pollfd wanted{socket_, events, 0};
    const int ready = ::poll(&wanted, 1, kSliceMilliseconds);
    if (ready > 0) return (wanted.revents & (events | POLLHUP)) != 0;
    if (ready < 0 && errno != EINTR) return false;
    if (ready == 0 && is_stopping_) return false;
  }
  return false;
}

bool HttpConnection::AwaitRequest() {
  if (is_stopping_) return false;
  if (taken_ == read_.size() && (!Await(POLLIN, limits_.idle_seconds * 1000) || !Fill()))
    return false;
  head_left_ = limits_.head_bytes;
  head_end_ = std::chrono::steady_clock::now() + kHeadTime;
  return true;
}

bool HttpConnection::Fill() {
  read_.resize(kReadBytes);
  taken_ = 0;
  ssize_t count = 0;
  do {
    count = ::recv(socket_, read_.data(), read_.size(), 0);
  } while (count < 0 && errno == EINTR);
  read_.resize(static_cast<size_t>(std::max<ssize_t>(count, 0)));
  return count > 0;
}

bool HttpConnection::is_readable() const {
  return taken_ < read_.size() || Await(POLLIN, limits_.patience_seconds * 1000);
}

bool HttpConnection::is_writable() const {
  pollfd wanted{socket_, POLLOUT | POLLRDHUP, 0};
  if (::poll(&wanted, 1, 0) <= 0) return Await(POLLOUT, limits_.patience_seconds * 1000);
  return (wanted.revents & (POLLRDHUP | POLLHUP | POLLERR)) == 0;
}

ssize_t HttpConnection::read(char* bytes, size_t size) {
  const bool is_in_head = head_left_ != static_cast<size_t>(-1);
  if (is_in_head && std::chrono::steady_clock::now() > head_end_) return -1;
  if (taken_ == read_.size() && (!is_readable() || !Fill())) return -1;
  const size_t count = std::min({size, read_.size() - taken_, head_left_});
  if (count == 0) return -1;
  std::memcpy(bytes, read_.data() + taken_, count);
  taken_ += count;
  if (is_in_head) head_left_ -= count;
  return static_cast<ssize_t>(count);
}

ssize_t HttpConnection::write(const char* bytes, size_t size) {
  if (!Await(POLLOUT, limits_.patience_seconds * 1000)) return -1;
  ssize_t count = 0;
  do {
    count = ::send(socket_, bytes, size, MSG_NOSIGNAL | MSG_DONTWAIT);
  } while (count < 0 && errno == EINTR);
  return count;
}

void HttpConnection::RefuseLongHead() {
  constexpr std::string_view kAnswer =
      "HTTP/1.1 431 Request Header Fields Too Large\r\nConnection: close\r\n"
      "Content-Length: 0\r\n\r\n";
  if (head_left_ == 0) (void)write(kAnswer.data(), kAnswer.size());
}

void HttpConnection::Drain() {
  (void)::shutdown(socket_, SHUT_WR);
  for (int left = kDrainPieces; left > 0 && Await(POLLIN, kDrainMilliseconds) && Fill(); --left) {
  }
}

void HttpConnection::get_remote_ip_and_port(std::string& ip, int& port) const {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  if (::getpeername(socket_, reinterpret_cast<sockaddr*>(&address), &size) == 0) {
    AddressOf(address, ip, port);
  }
}

void HttpConnection::get_local_ip_and_port(std::string& ip, int& port) const {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  if (::getsockname(socket_, reinterpret_cast<sockaddr*>(&address), &size) == 0) {
    AddressOf(address, ip, port);
  }
}

}  // namespace plumbline::view
