// The training's side of the online pre-check: sends records to the machine that checks them, from
// a thread of its own.

#ifndef PLUMBLINE_ONLINE_SENDER_H_
#define PLUMBLINE_ONLINE_SENDER_H_

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/process/of_process.h"
#include "online/frame.h"
#include "online/link.h"
#include "online/troubles.h"
#include "plumbline/result.h"
#include "store/tensor_channel.h"

namespace plumbline::online {

struct SenderOptions {
  // A directory that both machines have; not empty: host and port are not used.
  std::string directory;
  std::string host;
  int port = 0;
  std::string tls_directory;  // empty: plain TCP, with a warning
  int32_t rank = 0;
  std::string framework = "pytorch";
  bool may_block = false;  // the training waits for room while the other machine is there
  // How long the end of the training waits while nothing is taken any more.
  std::chrono::milliseconds farewell = std::chrono::seconds(30);
};

// What became of the records of a training.
struct SenderCounts {
  uint64_t records = 0;  // that were to be sent
  uint64_t dropped = 0;  // not even queued: no credit, no memory, or refused
  uint64_t unsent = 0;   // queued, and not known to have arrived
  uint64_t lost = 0;     // arrived, and could not be kept there
};

// Queue, credits, connection. A record is queued while the other machine gives credits and there is
// memory for its tensors (whose buffers it holds), else dropped and counted. Queued frames are kept
// until they are acknowledged and sent again after a lost connection, which is tried anew with
// growing pauses. Each trouble is logged once, in one line, and
// how often it came again when all is over. In a forked child nothing here does
// anything. Must be destroyed before the owner of the buffers.
class Sender : public TensorChannel {
 public:
  // Errors of TlsContext::Load(), and kInvalidArgument: no address, no such directory.
  static Result<std::shared_ptr<Sender>> Open(const SenderOptions& options);
  ~Sender() override;  // Close()

  bool WaitForRoom() override;
  void AddEntry(int64_t step, std::span<const std::byte> packed,
                std::vector<ChannelTensor> tensors, bool is_whole) override;
  void EndStep(int64_t step) override;
  // Says stop, waits as long as frames are taken (see farewell), and logs what was not. Once.
  void Close();
  [[nodiscard]] SenderCounts counts() const;

 private:
  struct Outgoing {
    FrameHeader header;
    std::string start;  // body, or its part before the tensors
    std::vector<ChannelTensor> tensors;
    bool is_sealed = false;  // has its checksum
  };
  Sender(const SenderOptions& options, std::shared_ptr<const TlsContext> tls);
  [[nodiscard]] bool IsHere() const { return ::getpid() == pid_; }
  // Requires mutex_.
  void Queue(FrameKind kind, int64_t step, std::string start, std::vector<ChannelTensor> tensors,
             uint64_t body_bytes);
  void Drop(std::string_view why);
  [[nodiscard]] bool HasCredit() const { return queue_.size() < credits_; }

  void Run();
  // One connection from its beginning to its end.
  plumbline::Status Talk();
  plumbline::Status Greet(Link& link, FrameReader& reader);
  plumbline::Status Exchange(Link& link, FrameReader& reader);
  // The frames that arrived; `answered`: a welcome was among them.
  plumbline::Status TakeAnswers(FrameReader& reader, bool& answered);
  // Writes what can be written; true: there is more.
  Result<bool> WriteSome(Link& link);
  Outgoing* FrameToSend();
  void Acknowledge(uint64_t sequence, const Credits& credits);
  void Trouble(const Error& error);
  void Pause();
  [[nodiscard]] bool IsOver();

  // By files of a shared directory.
  void RunShared();
  plumbline::Status WriteShared();
  plumbline::Status WriteFrameFile(Outgoing& frame);
  void CollectTaken();

  const SenderOptions options_;
  const std::shared_ptr<const TlsContext> tls_;
  const pid_t pid_;
  const uint64_t session_;

  mutable std::mutex mutex_;  // guards what follows
  OfProcess<std::condition_variable> changed_;
  std::deque<std::unique_ptr<Outgoing>> queue_;  // not acknowledged, by sequence
  uint64_t next_sequence_ = 1;
  uint64_t next_to_send_ = 1;
  uint64_t credits_;
  SenderCounts counts_;
  bool is_connected_ = false;
  bool is_refused_ = false;
  bool is_closing_ = false;
  bool is_closed_ = false;
  bool has_told_drop_ = false;
  bool has_told_loss_ = false;
  std::optional<std::chrono::steady_clock::time_point> deadline_;  // of the farewell

  // Of the thread alone.
  int wake_ = -1;
  size_t part_ = 0, written_ = 0;       // of the frame under way
  std::array<std::byte, kHeaderBytes> header_{};
  Troubles troubles_;
  bool has_told_trouble_ = false;  // since it was connected
  std::chrono::milliseconds pause_{};

  OfProcess<std::thread> thread_;
};

}  // namespace plumbline::online

#endif  // PLUMBLINE_ONLINE_SENDER_H_
