// The other side of the online pre-check: takes what trainings send, keeps it on disk until it is
// judged, and says which steps are whole.

#ifndef PLUMBLINE_ONLINE_RECEIVER_H_
#define PLUMBLINE_ONLINE_RECEIVER_H_

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/file/file.h"
#include "online/frame.h"
#include "online/link.h"
#include "online/troubles.h"
#include "plumbline/result.h"

namespace plumbline::online {

struct ReceiverOptions {
  std::string directory;  // shared with the trainings; not empty: host and port are not used
  std::string host = "0.0.0.0";
  int port = 0;
  std::string tls_directory;         // empty: plain TCP, with a warning
  std::vector<int64_t> ranks;        // that are expected; empty: any
  std::string spool;                 // where frames are kept, made if it is not there
  uint64_t most_spool_bytes = uint64_t{64} << 30;  // beyond it nobody gets credits
  std::chrono::milliseconds idle_limit = std::chrono::minutes(10);
};

// One step of one rank, all of which there is.
struct ReceivedStep {
  int32_t rank = 0;
  uint64_t session = 0;
  int64_t step = 0;
  std::string path;            // of its frames: VisitFrames()
  uint64_t last_sequence = 0;  // of its frames
  bool is_whole = false;       // its training said that nothing more comes
};

// What is known of one training.
struct SessionFacts {
  int32_t rank = 0;
  uint64_t session = 0;
  uint64_t records = 0;  // that came, since this program started
  uint64_t dropped = 0;  // that the training has not sent, as far as it could say
  uint64_t lost = 0;     // that came and could not be kept
  bool has_stopped = false;
};

// The frames of a file of `ReceivedStep::path`, in order; one that is cut or damaged ends it.
using VisitFrame = std::function<void(const FrameHeader& header, std::span<const std::byte> body)>;
// Returns how many bytes are whole.
uint64_t VisitFrames(std::span<const std::byte> bytes, const VisitFrame& visit);

// Any number of trainings at once, each on a thread. A frame is acknowledged when the operating
// system has it, so that a kill of this program loses none: the next one goes on with the spool.
// Each frame is kept once, however often it is sent. Thread-safe.
class Receiver {
 public:
  // `finished`: by session the last sequence that was judged before, of steps whose frames are gone.
  // Errors of TlsContext::Load() and Listener::Open(); kInvalidArgument: no such directory; kIo.
  static Result<std::unique_ptr<Receiver>> Start(const ReceiverOptions& options,
                                                 const std::map<uint64_t, uint64_t>& finished);
  ~Receiver();  // ends the connections

  [[nodiscard]] int port() const { return listener_ == nullptr ? 0 : listener_->port(); }
  // A step to judge, waited for at most that long; nothing: none is ready.
  std::optional<ReceivedStep> NextStep(std::chrono::milliseconds at_most);
  // It is judged and its rows are safe: its frames are removed.
  void Finished(const ReceivedStep& step);
  // Nothing more will come: every rank has said stop, or nobody has sent anything for too long.
  // Steps that were not whole are ready then, as they are.
  [[nodiscard]] bool IsOver();
  // Whether nobody has sent anything for too long, counted from `begin` at the earliest.
  [[nodiscard]] bool IsIdleSince(std::chrono::steady_clock::time_point begin);
  // What ended it was that nobody sent anything.
  [[nodiscard]] bool was_idle() const { return was_idle_; }
  [[nodiscard]] std::vector<SessionFacts> Sessions() const;

 private:
  struct Step {
    File file;
    uint64_t bytes = 0;
    uint64_t last_sequence = 0;
  };
  struct Session {
    SessionFacts facts;
    uint64_t last_sequence = 0;
    std::map<int64_t, Step> open_steps;
    Link* link = nullptr;       // that it is connected by
    bool is_given_up = false;  // its rank has a newer one
  };

  explicit Receiver(const ReceiverOptions& options) : options_(options) {}
  plumbline::Status TakeSpool(const std::map<uint64_t, uint64_t>& finished);
  plumbline::Status TakeSpoolFile(const std::string& path);
  void Accept();
  void Serve(Link& link);
  struct Conversation;
  plumbline::Status Converse(Link& link);
  plumbline::Status TakeFrames(Link& link, Conversation& talk);
  void Acknowledge(Conversation& talk) const;
  // Why nothing is taken from a training; empty: it is.
  [[nodiscard]] std::string Refusal(const FrameHeader& hello, std::string_view framework) const;
  // Requires mutex_, as the rest.
  plumbline::Status Greet(Link& link, const FrameReader::Frame& frame, Conversation& talk);
  Session& SessionOf(int32_t rank, uint64_t session);
  plumbline::Status Keep(Session& session, const FrameReader::Frame& frame);
  plumbline::Status Write(Session& session, const FrameReader::Frame& frame);
  void Ready(Session& session, std::map<int64_t, Step>::iterator step, bool is_whole);
  void ReadyAll(Session& session, bool is_whole);
  [[nodiscard]] bool AllHaveStopped() const;
  [[nodiscard]] std::string Answer(FrameKind kind, const Session& session) const;
  [[nodiscard]] std::string SpoolPath(const FrameHeader& header) const;

  void ScanShared();
  plumbline::Status ScanOnce();
  plumbline::Status TakeFile(const std::string& path, bool& is_new);

  const ReceiverOptions options_;
  std::unique_ptr<Listener> listener_;
  std::atomic<bool> ends_ = false;
  std::atomic<bool> was_idle_ = false;

  mutable std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  std::map<uint64_t, Session> sessions_;
  std::map<uint64_t, uint64_t> finished_;
  std::deque<ReceivedStep> ready_;
  uint64_t spool_bytes_ = 0;
  std::chrono::steady_clock::time_point last_frame_ = std::chrono::steady_clock::now();
  bool has_told_loss_ = false;
  Troubles troubles_;

  std::mutex threads_mutex_;
  std::map<int, std::unique_ptr<Link>> links_;
  std::vector<std::thread> threads_;
  std::thread accepting_;
};

}  // namespace plumbline::online

#endif  // PLUMBLINE_ONLINE_RECEIVER_H_
