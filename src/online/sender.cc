#include "online/sender.h"

#include <fmt/format.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <random>
#include <utility>

#include "base/file/file.h"
#include "base/memory/bytes.h"
#include "base/memory/digest.h"
#include "base/process/log.h"
#include "online/shared_place.h"

namespace plumbline::online {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

// Until the other machine says how many.
constexpr uint64_t kFirstCredits = 4096;
constexpr milliseconds kConnectLimit{5000}, kFirstPause{100}, kLongestPause{5000};
constexpr milliseconds kTick{200}, kRoomTick{50};
// Without a connection there is nobody to wait for.
constexpr milliseconds kFarewellAlone{5000};
constexpr size_t kAtOnce = size_t{4} << 20;

constexpr std::array<std::byte, kFrameAlignment> kZeros{};

uint64_t NewSession() {
  std::random_device random;
  return (uint64_t{random()} << 32 | random()) | 1;
}

}  // namespace

Result<std::shared_ptr<Sender>> Sender::Open(const SenderOptions& options) {
  std::shared_ptr<const TlsContext> tls;
  if (!options.directory.empty()) {
    if (KindOf(options.directory) != PathKind::kDirectory) {
      return Error(ErrorCode::kInvalidArgument,
                   fmt::format("nfs_path: {}: no such directory", options.directory));
    }
  } else if (options.tls_directory.empty()) {
    LogWarning(fmt::format("online pre-check: what this training computes is sent to {}:{} readable "
                           "by everybody on the network (tls_path is empty)",
                           options.host, options.port));
  } else {
    PL_TRY_ASSIGN(tls, TlsContext::Load(options.tls_directory, TlsContext::Side::kClient));
  }
  LogInfo(fmt::format("online pre-check: calls are sent to {}",
                      options.directory.empty() ? fmt::format("{}:{}", options.host, options.port)
                                                : options.directory));
  std::shared_ptr<Sender> sender(new Sender(options, std::move(tls)));
  sender->wake_ = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  *sender->thread_ = std::thread([raw = sender.get()] {
    BlockBrokenPipes();
    raw->options_.directory.empty() ? raw->Run() : raw->RunShared();
  });
  return sender;
}

Sender::Sender(const SenderOptions& options, std::shared_ptr<const TlsContext> tls)
    : options_(options),
      tls_(std::move(tls)),
      pid_(::getpid()),
      session_(NewSession()),
      credits_(kFirstCredits),
      pause_(kFirstPause) {}

Sender::~Sender() {
  Close();
  if (wake_ >= 0) ::close(wake_);
}

bool Sender::WaitForRoom() {
  if (!IsHere()) return false;
  std::unique_lock lock(mutex_);
  const bool waits = options_.may_block && is_connected_ && !is_refused_ && !is_closing_;
  if (waits) changed_->wait_for(lock, kRoomTick);
  return waits;
}

void Sender::Drop(std::string_view why) {
  ++counts_.dropped;
  if (std::exchange(has_told_drop_, true)) return;
  LogWarning(fmt::format("online pre-check: records are not sent ({}); the training goes on, and how "
                         "many are not checked is told at its end",
                         why));
}

void Sender::Queue(FrameKind kind, int64_t step, std::string start,
                   std::vector<ChannelTensor> tensors, uint64_t body_bytes) {
  auto frame = std::make_unique<Outgoing>();
  frame->header.kind = kind;
  frame->header.session = session_;
  frame->header.rank = options_.rank;
  frame->header.step = step;
  frame->header.sequence = next_sequence_++;
  frame->header.body_bytes = body_bytes;
  frame->start = std::move(start);
  frame->tensors = std::move(tensors);
  queue_.push_back(std::move(frame));
  const uint64_t one = 1;
  if (wake_ >= 0) (void)!::write(wake_, &one, sizeof(one));
  changed_->notify_all();
}

void Sender::AddEntry(int64_t step, std::span<const std::byte> packed,
                      std::vector<ChannelTensor> tensors, bool is_whole) {
  if (!IsHere()) return;
  std::vector<FrameTensor> table;
  for (const ChannelTensor& tensor : tensors) {
    table.push_back({tensor.name, tensor.dtype, tensor.sizes, tensor.buffer.bytes()});
  }
  uint64_t body_bytes = 0;
  std::string start = EncodeRecordStart(packed, table, body_bytes);
  std::unique_lock lock(mutex_);
  ++counts_.records;
  const auto waits = [&] {
    return options_.may_block && is_connected_ && !is_refused_ && !is_closing_ && !HasCredit();
  };
  while (waits()) changed_->wait_for(lock, kRoomTick);
  if (is_refused_) return Drop("the other machine does not want them");
  if (is_closing_) return Drop("the training ends");
  if (!is_whole) return Drop("no memory is left for their tensors: see buffer_bytes");
  if (!HasCredit()) return Drop("the other machine has not taken those before them");
  Queue(FrameKind::kRecord, step, std::move(start), std::move(tensors), body_bytes);
}

void Sender::EndStep(int64_t step) {
  if (!IsHere()) return;
  const std::scoped_lock lock(mutex_);
  if (!is_refused_ && !is_closing_) Queue(FrameKind::kStepEnd, step, {}, {}, 0);
}

SenderCounts Sender::counts() const {
  const std::scoped_lock lock(mutex_);
  return counts_;
}

void Sender::Close() {
  if (!IsHere()) return;
  {
    const std::scoped_lock lock(mutex_);
    if (std::exchange(is_closed_, true)) return;
    if (!is_refused_) Queue(FrameKind::kStop, 0, {}, {}, 0);
    is_closing_ = true;
    deadline_ = Clock::now() + (is_connected_ ? options_.farewell
                                              : std::min(options_.farewell, kFarewellAlone));
    changed_->notify_all();
  }
  if (thread_->joinable()) thread_->join();
  for (const std::string& line : troubles_.Repeated()) LogWarning("online pre-check: " + line);
  const std::scoped_lock lock(mutex_);
  counts_.unsent = static_cast<uint64_t>(std::ranges::count_if(
      queue_, [](const auto& frame) { return frame->header.kind == FrameKind::kRecord; }));
  queue_.clear();
  const uint64_t missing = counts_.dropped + counts_.unsent + counts_.lost;
  const std::string text = fmt::format(
      "online pre-check: {} records, {} dropped, {} unsent, {} lost on the other machine",
      counts_.records, counts_.dropped, counts_.unsent, counts_.lost);
  missing == 0 ? LogInfo(text) : LogLoss(text + ": these are not checked");
}

bool Sender::IsOver() {
  const std::scoped_lock lock(mutex_);
  if (is_refused_) return true;
  return is_closing_ && (queue_.empty() || Clock::now() > *deadline_);
}

void Sender::Trouble(const Error& error) {
  {
    const std::scoped_lock lock(mutex_);
    is_connected_ = false;
    changed_->notify_all();
  }
  if (!troubles_.IsNew(error.message())) return;
  has_told_trouble_ = true;
  LogWarning(fmt::format("online pre-check: {}. The training goes on; the connection is tried again",
                         error.message()));
}

void Sender::Pause() {
  std::unique_lock lock(mutex_);
  const auto until = Clock::now() + pause_;
  pause_ = std::min(2 * pause_, kLongestPause);
  changed_->wait_until(lock, until, [&] { return is_closing_; });
  if (is_closing_) changed_->wait_for(lock, kFirstPause, [] { return false; });
}

void Sender::Run() {
  while (!IsOver()) {
    const plumbline::Status talked = Talk();
    if (talked) break;
    if (IsOver()) {
      // Why nothing arrived is told where nothing else was.
      Trouble(talked.error());
      break;
    }
    Trouble(talked.error());
    Pause();
  }
}

plumbline::Status Sender::Talk() {
  PL_TRY_ASSIGN(const std::unique_ptr<Link> link,
                Link::Connect(options_.host, options_.port, tls_.get(), kConnectLimit));
  FrameReader reader;
  PL_TRY(Greet(*link, reader));
  return Exchange(*link, reader);
}

plumbline::Status Sender::Greet(Link& link, FrameReader& reader) {
  FrameHeader hello;
  hello.kind = FrameKind::kHello;
  hello.session = session_;
  hello.rank = options_.rank;
  const std::string frame = EncodeFrame(hello, options_.framework);
  size_t sent = 0;
  const auto deadline = Clock::now() + kConnectLimit;
  for (bool answered = false; !answered;) {
    if (Clock::now() > deadline) {
      return Error(ErrorCode::kIo, fmt::format("{}:{}: does not answer as `plumb precheck --online` "
                                               "does",
                                               options_.host, options_.port));
    }
    // One that refuses our certificate says so before it is gone: what can be read counts first.
    const Result<size_t> written = link.Write(BytesOf(frame).subspan(sent));
    PL_TRY_ASSIGN(const size_t got, link.Read(reader.Room()));
    if (!written) return written.error();
    sent += *written;
    reader.Take(got);
    PL_TRY(TakeAnswers(reader, answered));
    if (!answered && got == 0) link.Wait(sent < frame.size(), -1, kTick);
    if (IsOver() && !answered) return {};
  }
  const std::scoped_lock lock(mutex_);
  if (is_refused_) return {};
  next_to_send_ = queue_.empty() ? next_sequence_ : queue_.front()->header.sequence;
  part_ = written_ = 0;
  is_connected_ = true;
  pause_ = kFirstPause;
  if (std::exchange(has_told_trouble_, false)) LogInfo("online pre-check: connected again");
  if (is_closing_) deadline_ = Clock::now() + options_.farewell;
  changed_->notify_all();
  return {};
}

plumbline::Status Sender::TakeAnswers(FrameReader& reader, bool& answered) {
  FrameReader::Frame frame;
  for (;;) {
    PL_TRY_ASSIGN(const bool is_whole, reader.Next(frame));
    if (!is_whole) return {};
    if (frame.header.kind == FrameKind::kRefusal) {
      answered = true;
      LogLoss(fmt::format("online pre-check: {}. Nothing is checked; the training goes on",
                          OneLine(AsText(frame.body()))));
      const std::scoped_lock lock(mutex_);
      is_refused_ = true;
      changed_->notify_all();
      return {};
    }
    const bool is_answer =
        frame.header.kind == FrameKind::kWelcome || frame.header.kind == FrameKind::kAck;
    if (!is_answer || frame.header.session != session_) {
      return Error(ErrorCode::kCorrupt, "the other machine sends something else than answers");
    }
    PL_TRY_ASSIGN(const Credits credits, ParseCredits(frame.body()));
    Acknowledge(frame.header.sequence, credits);
    answered = answered || frame.header.kind == FrameKind::kWelcome;
  }
}

void Sender::Acknowledge(uint64_t sequence, const Credits& credits) {
  std::vector<std::unique_ptr<Outgoing>> done;  // freed without the lock
  const std::scoped_lock lock(mutex_);
  while (!queue_.empty() && queue_.front()->header.sequence <= sequence) {
    done.push_back(std::move(queue_.front()));
    queue_.pop_front();
  }
  credits_ = credits.records;
  counts_.lost = credits.lost;
  if (is_closing_ && !done.empty()) deadline_ = Clock::now() + options_.farewell;
  if (counts_.lost > 0 && !std::exchange(has_told_loss_, true)) {
    LogWarning("online pre-check: the other machine cannot keep records (is its disk full?); the "
               "training goes on, and how many are not checked is told at its end");
  }
  changed_->notify_all();
}

Sender::Outgoing* Sender::FrameToSend() {
  const std::scoped_lock lock(mutex_);
  if (queue_.empty() || next_to_send_ >= next_sequence_) return nullptr;
  const uint64_t first = queue_.front()->header.sequence;
  if (next_to_send_ < first) next_to_send_ = first;
  Outgoing* const frame = queue_[next_to_send_ - first].get();
  frame->header.dropped = counts_.dropped;
  return frame;
}

namespace {

// The pieces of a frame in order: body start, then elements and the zeros behind them.
template <class Frame, class Use>
void ForEachPiece(const Frame& frame, const Use& use) {
  use(BytesOf(frame.start));
  for (size_t i = 0; i < frame.tensors.size(); ++i) {
    const std::span<const std::byte> bytes = frame.tensors[i].buffer.bytes();
    use(bytes);
    const bool is_last = i + 1 == frame.tensors.size();
    if (!is_last) use(std::span(kZeros).first(Padded(bytes.size()) - bytes.size()));
  }
}

// The checksum, on the thread that sends.
template <class Frame>
void Seal(Frame& frame) {
  if (frame.is_sealed) return;
  uint32_t crc = 0;
  ForEachPiece(frame, [&](std::span<const std::byte> piece) { crc = Crc32c(piece, crc); });
  frame.header.body_crc = crc;
  frame.is_sealed = true;
}

}  // namespace

Result<bool> Sender::WriteSome(Link& link) {
  for (size_t sent = 0; sent < kAtOnce;) {
    Outgoing* const frame = FrameToSend();
    if (frame == nullptr) return false;
    if (part_ == 0 && written_ == 0) {
      Seal(*frame);
      header_ = EncodeHeader(frame->header);
    }
    // Parts: the header, the start of the body, each tensor, and zeros.
    std::vector<std::span<const std::byte>> parts{header_};
    ForEachPiece(*frame, [&](std::span<const std::byte> piece) { parts.push_back(piece); });
    const uint64_t body = frame->header.body_bytes;
    parts.push_back(std::span(kZeros).first(Padded(body) - body));
    while (part_ < parts.size()) {
      const std::span<const std::byte> rest = parts[part_].subspan(written_);
      if (!rest.empty()) {
        PL_TRY_ASSIGN(const size_t written, link.Write(rest.first(std::min(rest.size(), kAtOnce))));
        if (written == 0) return true;
        written_ += written;
        sent += written;
        if (written < rest.size()) continue;
      }
      ++part_;
      written_ = 0;
    }
    part_ = 0;
    ++next_to_send_;
  }
  return true;
}

plumbline::Status Sender::Exchange(Link& link, FrameReader& reader) {
  while (!IsOver()) {
    PL_TRY_ASSIGN(const bool has_more, WriteSome(link));
    PL_TRY_ASSIGN(const size_t got, link.Read(reader.Room()));
    reader.Take(got);
    bool answered = false;
    if (got > 0) PL_TRY(TakeAnswers(reader, answered));
    if (got == 0) link.Wait(has_more, wake_, kTick);
    uint64_t count = 0;
    (void)!::read(wake_, &count, sizeof(count));
  }
  return {};
}

// ---- A shared directory: each frame is a file, which the other machine deletes once it is kept.

void Sender::RunShared() {
  while (!IsOver()) {
    CollectTaken();
    const plumbline::Status written = WriteShared();
    if (!written) {
      Trouble(written.error());
      Pause();
      continue;
    }
    std::unique_lock lock(mutex_);
    if (!is_connected_) {
      is_connected_ = true;
      pause_ = kFirstPause;
    }
    if (next_to_send_ < next_sequence_) continue;
    changed_->wait_for(lock, is_closing_ ? kRoomTick : kTick);
  }
}

plumbline::Status Sender::WriteShared() {
  PL_TRY(shared_place::Start(options_.directory, options_.rank, session_));
  while (Outgoing* const frame = FrameToSend()) {
    Seal(*frame);
    PL_TRY(WriteFrameFile(*frame));
    frame->tensors.clear();  // the file has them
    ++next_to_send_;
  }
  return {};
}

plumbline::Status Sender::WriteFrameFile(Outgoing& frame) {
  PL_TRY_ASSIGN(const std::string path, shared_place::FramePath(options_.directory, frame.header));
  PL_TRY_ASSIGN(AtomicFile file, AtomicFile::Create(path));
  PL_TRY(file.Write(EncodeHeader(frame.header)));
  plumbline::Status status;
  ForEachPiece(frame, [&](std::span<const std::byte> piece) {
    if (status && !piece.empty()) status = file.Write(piece);
  });
  PL_TRY(status);
  const uint64_t body = frame.header.body_bytes;
  PL_TRY(file.Write(std::span<const std::byte>(kZeros).first(Padded(body) - body)));
  return file.Commit(/*durable=*/false);
}

// What the other machine has deleted it has kept.
void Sender::CollectTaken() {
  for (;;) {
    FrameHeader first;
    {
      const std::scoped_lock lock(mutex_);
      if (queue_.empty() || queue_.front()->header.sequence >= next_to_send_) return;
      first = queue_.front()->header;
    }
    const Result<std::string> path = shared_place::FramePath(options_.directory, first);
    if (!path || KindOf(*path) != PathKind::kMissing) return;
    const SenderCounts now = counts();
    Acknowledge(first.sequence, {kFirstCredits, now.lost});
  }
}

}  // namespace plumbline::online
