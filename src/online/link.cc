#include "online/link.h"

#include <arpa/inet.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509_vfy.h>
#include <poll.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>

#include "base/file/file.h"

namespace plumbline::online {
namespace {

using Clock = std::chrono::steady_clock;

// The functions of OpenSSL that are used here. The library is opened with the first context: no
// training and no command needs it that does not ask for TLS.
struct Library {
  Library() {
    const std::string name = fmt::format("libssl.so.{}", OPENSSL_SHLIB_VERSION);
    void* const library = ::dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) return;
    is_whole = true;
    const auto find = [&]<class F>(F*& function, const char* symbol) {
      function = reinterpret_cast<F*>(::dlsym(library, symbol));
      is_whole = is_whole && function != nullptr;
    };
    find(server_method, "TLS_server_method");
    find(client_method, "TLS_client_method");
    find(new_context, "SSL_CTX_new");
    find(free_context, "SSL_CTX_free");
    find(control_context, "SSL_CTX_ctrl");
    find(use_chain, "SSL_CTX_use_certificate_chain_file");
    find(use_key, "SSL_CTX_use_PrivateKey_file");
    find(check_key, "SSL_CTX_check_private_key");
    find(load_authority, "SSL_CTX_load_verify_file");
    find(set_verify, "SSL_CTX_set_verify");
    find(own_certificate, "SSL_CTX_get0_certificate");
    find(new_ssl, "SSL_new");
    find(free_ssl, "SSL_free");
    find(set_fd, "SSL_set_fd");
    find(set_accept, "SSL_set_accept_state");
    find(set_connect, "SSL_set_connect_state");
    find(handshake, "SSL_do_handshake");
    find(read, "SSL_read_ex");
    find(write, "SSL_write_ex");
    find(error_of, "SSL_get_error");
    find(shut_down, "SSL_shutdown");
    find(verify_result, "SSL_get_verify_result");
    find(verify_text, "X509_verify_cert_error_string");
    find(not_before, "X509_get0_notBefore");
    find(not_after, "X509_get0_notAfter");
    find(compare_time, "X509_cmp_current_time");
    find(peek_error, "ERR_peek_last_error");
    find(clear_errors, "ERR_clear_error");
    find(reason, "ERR_reason_error_string");
  }

  bool is_whole = false;
  decltype(TLS_server_method)* server_method = nullptr;
  decltype(TLS_client_method)* client_method = nullptr;
  decltype(SSL_CTX_new)* new_context = nullptr;
  decltype(SSL_CTX_free)* free_context = nullptr;
  decltype(SSL_CTX_ctrl)* control_context = nullptr;
  decltype(SSL_CTX_use_certificate_chain_file)* use_chain = nullptr;
  decltype(SSL_CTX_use_PrivateKey_file)* use_key = nullptr;
  decltype(SSL_CTX_check_private_key)* check_key = nullptr;
  decltype(SSL_CTX_load_verify_file)* load_authority = nullptr;
  decltype(SSL_CTX_set_verify)* set_verify = nullptr;
  decltype(SSL_CTX_get0_certificate)* own_certificate = nullptr;
  decltype(SSL_new)* new_ssl = nullptr;
  decltype(SSL_free)* free_ssl = nullptr;
  decltype(SSL_set_fd)* set_fd = nullptr;
  decltype(SSL_set_accept_state)* set_accept = nullptr;
  decltype(SSL_set_connect_state)* set_connect = nullptr;
  decltype(SSL_do_handshake)* handshake = nullptr;
  decltype(SSL_read_ex)* read = nullptr;
  decltype(SSL_write_ex)* write = nullptr;
  decltype(SSL_get_error)* error_of = nullptr;
  decltype(SSL_shutdown)* shut_down = nullptr;
  decltype(SSL_get_verify_result)* verify_result = nullptr;
  decltype(X509_verify_cert_error_string)* verify_text = nullptr;
  decltype(X509_get0_notBefore)* not_before = nullptr;
  decltype(X509_get0_notAfter)* not_after = nullptr;
  decltype(X509_cmp_current_time)* compare_time = nullptr;
  decltype(ERR_peek_last_error)* peek_error = nullptr;
  decltype(ERR_clear_error)* clear_errors = nullptr;
  decltype(ERR_reason_error_string)* reason = nullptr;
};

const Library& Tls() {
  static const Library* const library = new Library;  // threads may use it while the process ends
  return *library;
}

// What to do where a certificate is refused, by either side.
constexpr std::string_view kCertificates =
    "Both sides need certificates of the same ca.crt, or both tls_path \"\"";

// Whether the other side has ended the connection for a reason of TLS, such as our certificate.
bool WasRefused() {
  return ERR_GET_REASON(Tls().peek_error()) > SSL_AD_REASON_OFFSET;
}

// What OpenSSL says was wrong last.
std::string TlsReason() {
  const unsigned long error = Tls().peek_error();
  const char* const reason = error == 0 ? nullptr : Tls().reason(error);
  return reason == nullptr ? "the connection was closed" : reason;
}

int PollMilliseconds(Link::Milliseconds time) {
  return static_cast<int>(std::clamp<int64_t>(time.count(), 0, 1 << 30));
}

Result<sockaddr_in> AddressOf(const std::string& host, int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  if (::inet_pton(AF_INET, host.c_str(), &address.sin_addr) != 1) {
    return Error(ErrorCode::kInvalidArgument,
                 fmt::format("host: \"{}\" is no IPv4 address (expected four numbers, such as "
                             "192.168.1.7)",
                             host));
  }
  return address;
}

std::string PlaceOf(const sockaddr_in& address) {
  std::array<char, INET_ADDRSTRLEN> text{};
  ::inet_ntop(AF_INET, &address.sin_addr, text.data(), text.size());
  return fmt::format("{}:{}", text.data(), ntohs(address.sin_port));
}

struct SocketHolder {
  explicit SocketHolder(int socket) : fd(socket) {}
  SocketHolder(const SocketHolder&) = delete;
  SocketHolder& operator=(const SocketHolder&) = delete;
  ~SocketHolder() {
    if (fd >= 0) ::close(fd);
  }
  int Release() { return std::exchange(fd, -1); }
  int fd;
};

void SendAtOnce(int fd) {
  const int one = 1;
  (void)::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
}

void* NewSsl(const TlsContext* tls, int fd, bool is_server) {
  if (tls == nullptr) return nullptr;
  SSL* const ssl = Tls().new_ssl(static_cast<SSL_CTX*>(tls->context()));
  if (ssl == nullptr) return nullptr;
  Tls().set_fd(ssl, fd);
  is_server ? Tls().set_accept(ssl) : Tls().set_connect(ssl);
  return ssl;
}

plumbline::Status CheckDates(SSL_CTX* context, const std::string& path) {
  X509* const certificate = Tls().own_certificate(context);
  if (certificate == nullptr) return {};
  const bool is_early = Tls().compare_time(Tls().not_before(certificate)) > 0;
  const bool is_late = Tls().compare_time(Tls().not_after(certificate)) < 0;
  if (!is_early && !is_late) return {};
  return Error(ErrorCode::kInvalidArgument,
               fmt::format("{}: the certificate {}. Make a new one", path,
                           is_late ? "has expired" : "is not valid yet"));
}

}  // namespace

bool IsIpv4(std::string_view text) {
  in_addr address{};
  return ::inet_pton(AF_INET, std::string(text).c_str(), &address) == 1;
}

void BlockBrokenPipes() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGPIPE);
  (void)::pthread_sigmask(SIG_BLOCK, &signals, nullptr);
}

Result<std::shared_ptr<const TlsContext>> TlsContext::Load(const std::string& directory,
                                                           Side side) {
  const Library& tls = Tls();
  if (!tls.is_whole) {
    return Error(ErrorCode::kUnsupported,
                 fmt::format("tls_path: there is no libssl.so.{} on this machine. Install OpenSSL, "
                             "or set tls_path to \"\"",
                             OPENSSL_SHLIB_VERSION));
  }
  const std::string_view name = side == Side::kServer ? "server" : "client";
  const std::string certificate = JoinPath(directory, fmt::format("{}.crt", name));
  const std::string key = JoinPath(directory, fmt::format("{}.key", name));
  const std::string authority = JoinPath(directory, "ca.crt");
  for (const std::string& path : {certificate, key, authority}) {
    if (KindOf(path) == PathKind::kFile) continue;
    return Error(ErrorCode::kNotFound,
                 fmt::format("{}: no such file (tls_path wants {}.key, {}.crt and ca.crt)", path,
                             name, name));
  }
  SSL_CTX* const context =
      tls.new_context(side == Side::kServer ? tls.server_method() : tls.client_method());
  std::shared_ptr<const TlsContext> made(new TlsContext(context));
  const auto refuse = [](const std::string& path, std::string_view what) {
    return Error(ErrorCode::kCorrupt, fmt::format("{}: {} ({})", path, what, TlsReason()));
  };
  tls.clear_errors();
  if (context == nullptr) return refuse(directory, "OpenSSL cannot be used");
  tls.control_context(context, SSL_CTRL_SET_MIN_PROTO_VERSION, TLS1_3_VERSION, nullptr);
  constexpr long kModes = SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER;
  tls.control_context(context, SSL_CTRL_MODE, kModes, nullptr);
  if (tls.use_chain(context, certificate.c_str()) != 1) {
    return refuse(certificate, "no certificate can be read");
  }
  if (tls.use_key(context, key.c_str(), SSL_FILETYPE_PEM) != 1 || tls.check_key(context) != 1) {
    return refuse(key, fmt::format("not the key of {}.crt", name));
  }
  if (tls.load_authority(context, authority.c_str()) != 1) {
    return refuse(authority, "no certificate can be read");
  }
  PL_TRY(CheckDates(context, certificate));
  tls.set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
  return made;
}

TlsContext::~TlsContext() {
  if (context_ != nullptr) Tls().free_context(static_cast<SSL_CTX*>(context_));
}

Result<std::unique_ptr<Link>> Link::Connect(const std::string& host, int port,
                                            const TlsContext* tls, Milliseconds at_most) {
  const auto deadline = Clock::now() + at_most;
  PL_TRY_ASSIGN(const sockaddr_in address, AddressOf(host, port));
  const std::string peer = PlaceOf(address);
  SocketHolder holder(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (holder.fd < 0) return ErrnoError(errno, peer, "make a socket");
  const auto* const generic = reinterpret_cast<const sockaddr*>(&address);
  if (::connect(holder.fd, generic, sizeof(address)) != 0) {
    if (errno != EINPROGRESS) return ErrnoError(errno, peer, "connect");
    pollfd waits{holder.fd, POLLOUT, 0};
    if (::poll(&waits, 1, PollMilliseconds(at_most)) != 1) {
      return Error(ErrorCode::kIo, peer + ": no answer");
    }
    int problem = 0;
    socklen_t size = sizeof(problem);
    (void)::getsockopt(holder.fd, SOL_SOCKET, SO_ERROR, &problem, &size);
    if (problem != 0) return ErrnoError(problem, peer, "connect");
  }
  SendAtOnce(holder.fd);
  void* const ssl = NewSsl(tls, holder.fd, /*is_server=*/false);
  std::unique_ptr<Link> link(new Link(holder.Release(), ssl, peer));
  PL_TRY(link->Handshake(
      std::chrono::duration_cast<Milliseconds>(std::max(deadline - Clock::now(), Clock::duration{}))));
  return link;
}

Link::~Link() {
  if (tls_ != nullptr) {
    auto* const ssl = static_cast<SSL*>(tls_);
    Tls().clear_errors();
    (void)Tls().shut_down(ssl);
    Tls().free_ssl(ssl);
  }
  ::close(fd_);
}

plumbline::Status Link::Handshake(Milliseconds at_most) {
  if (tls_ == nullptr) return {};
  auto* const ssl = static_cast<SSL*>(tls_);
  const auto deadline = Clock::now() + at_most;
  for (;;) {
    Tls().clear_errors();
    const int result = Tls().handshake(ssl);
    if (result == 1) return {};
    const int error = Tls().error_of(ssl, result);
    if (error != SSL_ERROR_WANT_READ && error != SSL_ERROR_WANT_WRITE) {
      const long verified = Tls().verify_result(ssl);
      return Error(ErrorCode::kIo,
                   fmt::format("{}: no secure connection ({}). {}", peer_,
                               verified == X509_V_OK
                                   ? TlsReason()
                                   : "its certificate: " + std::string(Tls().verify_text(verified)),
                               kCertificates));
    }
    const auto left = std::chrono::duration_cast<Milliseconds>(deadline - Clock::now());
    if (left.count() <= 0) {
      return Error(ErrorCode::kIo, fmt::format("{}: no answer to the secure connection. {}", peer_,
                                               kCertificates));
    }
    pollfd waits{fd_, static_cast<short>(error == SSL_ERROR_WANT_READ ? POLLIN : POLLOUT), 0};
    (void)::poll(&waits, 1, PollMilliseconds(left));
  }
}

Result<size_t> Link::Blocked(int result, std::string_view action) {
  auto* const ssl = static_cast<SSL*>(tls_);
  const int error = Tls().error_of(ssl, result);
  wants_write_ = error == SSL_ERROR_WANT_WRITE;
  if (error == SSL_ERROR_WANT_READ || wants_write_) return size_t{0};
  if (error == SSL_ERROR_SSL && WasRefused()) {
    return Error(ErrorCode::kIo, fmt::format("{}: no secure connection ({}). {}", peer_, TlsReason(),
                                             kCertificates));
  }
  return Error(ErrorCode::kIo, fmt::format("{}: cannot {}: {}", peer_, action, TlsReason()));
}

Result<size_t> Link::Read(std::span<std::byte> out) {
  if (tls_ != nullptr) {
    size_t bytes = 0;
    Tls().clear_errors();
    const int result = Tls().read(static_cast<SSL*>(tls_), out.data(), out.size(), &bytes);
    if (result != 1) return Blocked(result, "read");
    return bytes;
  }
  const ssize_t bytes = ::recv(fd_, out.data(), out.size(), 0);
  if (bytes > 0) return static_cast<size_t>(bytes);
  if (bytes == 0) return Error(ErrorCode::kIo, peer_ + ": the connection was closed");
  if (errno == EAGAIN || errno == EINTR) return size_t{0};
  return ErrnoError(errno, peer_, "read");
}

Result<size_t> Link::Write(std::span<const std::byte> bytes) {
  if (bytes.empty()) return size_t{0};
  if (tls_ != nullptr) {
    size_t written = 0;
    Tls().clear_errors();
    const int result = Tls().write(static_cast<SSL*>(tls_), bytes.data(), bytes.size(), &written);
    if (result != 1) return Blocked(result, "write");
    return written;
  }
  const ssize_t written = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
  if (written >= 0) return static_cast<size_t>(written);
  if (errno == EAGAIN || errno == EINTR) return size_t{0};
  return ErrnoError(errno, peer_, "write");
}

void Link::Wait(bool wants_write, int wake, Milliseconds at_most) const {
  const bool writes = wants_write || wants_write_;
  std::array<pollfd, 2> waits{
      pollfd{fd_, static_cast<short>(writes ? POLLIN | POLLOUT : POLLIN), 0},
      pollfd{wake, POLLIN, 0}};
  (void)::poll(waits.data(), wake < 0 ? 1 : 2, PollMilliseconds(at_most));
}

void Link::Stop() const { (void)::shutdown(fd_, SHUT_RDWR); }

Result<std::unique_ptr<Listener>> Listener::Open(const std::string& host, int port,
                                                 std::shared_ptr<const TlsContext> tls) {
  PL_TRY_ASSIGN(sockaddr_in address, AddressOf(host, port));
  const std::string place = PlaceOf(address);
  SocketHolder holder(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (holder.fd < 0) return ErrnoError(errno, place, "make a socket");
  const int one = 1;  // a server that was killed leaves connections that end for a while
  (void)::setsockopt(holder.fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
  auto* const generic = reinterpret_cast<sockaddr*>(&address);
  if (::bind(holder.fd, generic, sizeof(address)) != 0) return ErrnoError(errno, place, "listen");
  if (::listen(holder.fd, SOMAXCONN) != 0) return ErrnoError(errno, place, "listen");
  socklen_t size = sizeof(address);
  if (::getsockname(holder.fd, generic, &size) != 0) return ErrnoError(errno, place, "listen");
  return std::unique_ptr<Listener>(
      new Listener(holder.Release(), ntohs(address.sin_port), std::move(tls)));
}

Listener::~Listener() { ::close(fd_); }

Result<std::unique_ptr<Link>> Listener::Accept(std::chrono::milliseconds at_most) {
  pollfd waits{fd_, POLLIN, 0};
  if (::poll(&waits, 1, PollMilliseconds(at_most)) != 1) return std::unique_ptr<Link>();
  sockaddr_in address{};
  socklen_t size = sizeof(address);
  const int fd = ::accept4(fd_, reinterpret_cast<sockaddr*>(&address), &size,
                           SOCK_NONBLOCK | SOCK_CLOEXEC);
  if (fd < 0) {
    // One that went before it was taken is none.
    if (errno == EAGAIN || errno == EINTR || errno == ECONNABORTED) return std::unique_ptr<Link>();
    return ErrnoError(errno, "port", "accept a connection");
  }
  SendAtOnce(fd);
  return std::unique_ptr<Link>(
      new Link(fd, NewSsl(tls_.get(), fd, /*is_server=*/true), PlaceOf(address)));
}

}  // namespace plumbline::online
