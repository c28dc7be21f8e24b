// Connections of the online pre-check: TCP, plain or under TLS 1.3 in which both sides prove who
// they are. The only code of plumbline that listens for other machines.

#ifndef PLUMBLINE_ONLINE_LINK_H_
#define PLUMBLINE_ONLINE_LINK_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "plumbline/result.h"

namespace plumbline::online {

// Whether a text is an IPv4 address as both configurations want it, "192.168.1.7".
bool IsIpv4(std::string_view text);

// What one side proves itself with, and whom it believes. Immutable; thread-safe.
class TlsContext {
 public:
  enum class Side : uint8_t { kServer, kClient };
  // Of `directory`: server.key and server.crt, or client.key and client.crt, and ca.crt, which has
  // signed the other side's. kNotFound, kCorrupt (no key, no certificate, one not of the other),
  // kInvalidArgument (expired, or not valid yet), kUnsupported (no OpenSSL on this machine).
  static Result<std::shared_ptr<const TlsContext>> Load(const std::string& directory, Side side);
  ~TlsContext();
  TlsContext(const TlsContext&) = delete;
  TlsContext& operator=(const TlsContext&) = delete;

  [[nodiscard]] void* context() const { return context_; }  // SSL_CTX

 private:
  explicit TlsContext(void* context) : context_(context) {}
  void* context_;
};

// One connection; never waits but where it says so. Not for several threads, but Stop(). A thread
// that uses it blocks SIGPIPE (BlockBrokenPipes()). Closed on destruction.
class Link {
 public:
  using Milliseconds = std::chrono::milliseconds;
  // `tls` null: plain. Waits until both sides are sure of each other, at most so long. kIo: nobody
  // listens, no answer, or a certificate was refused, by either side.
  static Result<std::unique_ptr<Link>> Connect(const std::string& host, int port,
                                               const TlsContext* tls, Milliseconds at_most);
  ~Link();
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;

  // Of an accepted connection, before anything else.
  plumbline::Status Handshake(Milliseconds at_most);
  // Bytes moved; 0: none can be at this moment. kIo: the other side has gone.
  Result<size_t> Read(std::span<std::byte> out);
  Result<size_t> Write(std::span<const std::byte> bytes);
  // Until something can be read, something written (if wanted), `wake` (-1: none) can be read, or
  // the time is over.
  void Wait(bool wants_write, int wake, Milliseconds at_most) const;
  // Ends it for the thread that uses it. Thread-safe.
  void Stop() const;

 private:
  friend class Listener;
  Link(int fd, void* tls, std::string peer) : fd_(fd), tls_(tls), peer_(std::move(peer)) {}
  [[nodiscard]] Result<size_t> Blocked(int result, std::string_view action);
  const int fd_;
  void* tls_;  // SSL; null: plain
  const std::string peer_;
  bool wants_write_ = false;  // TLS has something of its own to send
};

// A port that is listened at. Thread-compatible.
class Listener {
 public:
  // Port 0: any free one. kIo: it is taken, or the address is none of this machine.
  static Result<std::unique_ptr<Listener>> Open(const std::string& host, int port,
                                                std::shared_ptr<const TlsContext> tls);
  ~Listener();
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  [[nodiscard]] int port() const { return port_; }
  // The next connection, before its handshake; null: none came in that time.
  Result<std::unique_ptr<Link>> Accept(std::chrono::milliseconds at_most);

 private:
  Listener(int fd, int port, std::shared_ptr<const TlsContext> tls)
      : fd_(fd), port_(port), tls_(std::move(tls)) {}
  const int fd_;
  const int port_;
  const std::shared_ptr<const TlsContext> tls_;
};

// A connection that ends while something is written to it is an error here, no signal.
void BlockBrokenPipes();

}  // namespace plumbline::online

#endif  // PLUMBLINE_ONLINE_LINK_H_
