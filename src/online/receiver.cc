#include "online/receiver.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/memory/bytes.h"
#include "base/memory/digest.h"
#include "base/process/log.h"
#include "online/shared_place.h"

namespace plumbline::online {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

constexpr uint64_t kCredits = 4096;
constexpr milliseconds kHandshakeLimit{5000}, kServeTick{200};
constexpr std::string_view kSpoolSuffix = ".frames";

}  // namespace

uint64_t VisitFrames(std::span<const std::byte> bytes, const VisitFrame& visit) {
  uint64_t offset = 0;
  while (bytes.size() - offset >= kHeaderBytes) {
    const auto header = ParseHeader(bytes.subspan(offset, kHeaderBytes));
    if (!header || FrameBytes(*header) > bytes.size() - offset) break;
    const auto body = bytes.subspan(offset + kHeaderBytes, header->body_bytes);
    if (Crc32c(body) != header->body_crc) break;
    if (visit) visit(*header, body);
    offset += FrameBytes(*header);
  }
  return offset;
}

Result<std::unique_ptr<Receiver>> Receiver::Start(const ReceiverOptions& options,
                                                  const std::map<uint64_t, uint64_t>& finished) {
  std::unique_ptr<Receiver> receiver(new Receiver(options));
  PL_TRY(MakeDirectories(options.spool));
  PL_TRY(receiver->TakeSpool(finished));
  if (!options.directory.empty()) {
    if (KindOf(options.directory) != PathKind::kDirectory) {
      return Error(ErrorCode::kInvalidArgument,
                   fmt::format("nfs_path: {}: no such directory", options.directory));
    }
    receiver->accepting_ = std::thread([raw = receiver.get()] { raw->ScanShared(); });
    return receiver;
  }
  std::shared_ptr<const TlsContext> tls;
  if (options.tls_directory.empty()) {
    LogWarning("whoever reaches this port can read what trainings send and send something else "
               "(tls_path is empty)");
  } else {
    PL_TRY_ASSIGN(tls, TlsContext::Load(options.tls_directory, TlsContext::Side::kServer));
  }
  PL_TRY_ASSIGN(receiver->listener_, Listener::Open(options.host, options.port, std::move(tls)));
  receiver->accepting_ = std::thread([raw = receiver.get()] { raw->Accept(); });
  return receiver;
}

Receiver::~Receiver() {
  ends_ = true;
  if (accepting_.joinable()) accepting_.join();
  {
    const std::scoped_lock lock(threads_mutex_);
    for (const auto& [number, link] : links_) link->Stop();
  }
  for (std::thread& thread : threads_) thread.join();
  for (const std::string& line : troubles_.Repeated()) LogWarning(line);
}

// ---- The spool

std::string Receiver::SpoolPath(const FrameHeader& header) const {
  const std::string step =
      header.kind == FrameKind::kStop ? "stop" : fmt::format("step{}", header.step);
  return JoinPath(options_.spool, fmt::format("rank{}-{:016x}-{}{}", header.rank, header.session,
                                              step, kSpoolSuffix));
}

plumbline::Status Receiver::TakeSpool(const std::map<uint64_t, uint64_t>& finished) {
  finished_ = finished;
  PL_TRY_ASSIGN(const std::vector<std::string> names, ListDirectory(options_.spool));
  for (const std::string& name : names) {
    if (name.ends_with(kSpoolSuffix)) PL_TRY(TakeSpoolFile(JoinPath(options_.spool, name)));
  }
  return {};
}

// Of a program that was killed: what is whole stays, a torn end is cut off and sent again.
plumbline::Status Receiver::TakeSpoolFile(const std::string& path) {
  std::optional<FrameHeader> last;
  bool has_end = false;
  uint64_t whole = 0;
  {
    PL_TRY_ASSIGN(const auto map, MappedFile::Open(path));
    whole = VisitFrames(map->bytes(), [&](const FrameHeader& header, auto) {
      last = header;
      has_end = has_end || header.kind != FrameKind::kRecord;
    });
  }
  if (!last) return RemoveFile(path);
  Session& session = SessionOf(last->rank, last->session);
  session.last_sequence = std::max(session.last_sequence, last->sequence);
  if (last->kind == FrameKind::kStop) {
    session.facts.has_stopped = true;
    session.facts.dropped = last->dropped;
    return {};
  }
  Step step;
  PL_TRY_ASSIGN(step.file, File::OpenUpdate(path));
  PL_TRY(step.file.Resize(whole));
  PL_TRY_ASSIGN(step.file, File::OpenAppend(path));
  step.bytes = whole;
  step.last_sequence = last->sequence;
  spool_bytes_ += whole;
  const auto at = session.open_steps.insert_or_assign(last->step, std::move(step)).first;
  if (has_end) Ready(session, at, true);
  return {};
}

Receiver::Session& Receiver::SessionOf(int32_t rank, uint64_t session) {
  const auto [at, is_new] = sessions_.try_emplace(session);
  if (is_new) {
    at->second.facts.rank = rank;
    at->second.facts.session = session;
    const auto judged = finished_.find(session);
    if (judged != finished_.end()) at->second.last_sequence = judged->second;
  }
  return at->second;
}

void Receiver::Ready(Session& session, std::map<int64_t, Step>::iterator step, bool is_whole) {
  ReceivedStep ready;
  ready.rank = session.facts.rank;
  ready.session = session.facts.session;
  ready.step = step->first;
  ready.path = step->second.file.path();
  ready.last_sequence = step->second.last_sequence;
  ready.is_whole = is_whole;
  session.open_steps.erase(step);
  ready_.push_back(std::move(ready));
  changed_.notify_all();
}

void Receiver::ReadyAll(Session& session, bool is_whole) {
  while (!session.open_steps.empty()) Ready(session, session.open_steps.begin(), is_whole);
}

// The frames of one session come in order; one that is kept already is done.
plumbline::Status Receiver::Keep(Session& session, const FrameReader::Frame& frame) {
  const FrameHeader& header = frame.header;
  last_frame_ = Clock::now();
  session.facts.dropped = std::max(session.facts.dropped, header.dropped);
  if (header.sequence <= session.last_sequence) return {};
  if (header.sequence != session.last_sequence + 1) {
    return Error(ErrorCode::kCorrupt, fmt::format("rank {}: frame {} follows {}", header.rank,
                                                  header.sequence, session.last_sequence));
  }
  const bool is_record = header.kind == FrameKind::kRecord;
  if (is_record) ++session.facts.records;
  const plumbline::Status written = Write(session, frame);
  if (!written && is_record) ++session.facts.lost;
  if (!written && !std::exchange(has_told_loss_, true)) {
    LogLoss(fmt::format("{}. What cannot be kept is not checked, and counted; trainings go on",
                        written.error().message()));
  }
  session.last_sequence = header.sequence;
  if (header.kind == FrameKind::kStepEnd) {
    const auto step = session.open_steps.find(header.step);
    if (step != session.open_steps.end()) Ready(session, step, true);
  }
  if (header.kind == FrameKind::kStop) {
    session.facts.has_stopped = true;
    ReadyAll(session, true);
    changed_.notify_all();
  }
  return {};
}

plumbline::Status Receiver::Write(Session& session, const FrameReader::Frame& frame) {
  const std::string path = SpoolPath(frame.header);
  if (frame.header.kind == FrameKind::kStop) {
    PL_TRY_ASSIGN(File file, File::Create(path));
    return file.Write(std::span<const std::byte>(frame.bytes));
  }
  const auto [at, is_new] = session.open_steps.try_emplace(frame.header.step);
  Step& step = at->second;
  if (is_new) {
    auto file = File::OpenAppend(path);
    if (!file) {
      session.open_steps.erase(at);
      return file.error();
    }
    step.file = *std::move(file);
  }
  const plumbline::Status written = step.file.Write(std::span<const std::byte>(frame.bytes));
  if (!written) {
    (void)step.file.Resize(step.bytes);  // a part of a frame hides those behind it
    return written;
  }
  step.bytes += frame.bytes.size();
  spool_bytes_ += frame.bytes.size();
  step.last_sequence = frame.header.sequence;
  return {};
}

std::optional<ReceivedStep> Receiver::NextStep(milliseconds at_most) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, at_most, [this] { return !ready_.empty(); });
  if (ready_.empty()) return std::nullopt;
  ReceivedStep step = std::move(ready_.front());
  ready_.pop_front();
  return step;
}

void Receiver::Finished(const ReceivedStep& step) {
  const Result<uint64_t> bytes = FileSize(step.path);
  (void)RemoveFile(step.path);
  const std::scoped_lock lock(mutex_);
  spool_bytes_ -= std::min(spool_bytes_, bytes.value_or(0));
  // Judging took its time, during which nobody could be told to go on.
  last_frame_ = Clock::now();
}

bool Receiver::AllHaveStopped() const {
  if (sessions_.empty()) return false;
  const auto has_stopped = [](const auto& entry) {
    return entry.second.facts.has_stopped || entry.second.is_given_up;
  };
  if (!std::ranges::all_of(sessions_, has_stopped)) return false;
  return std::ranges::all_of(options_.ranks, [this](int64_t rank) {
    return std::ranges::any_of(sessions_, [rank](const auto& entry) {
      return entry.second.facts.rank == rank && entry.second.facts.has_stopped;
    });
  });
}

bool Receiver::IsOver() {
  const std::scoped_lock lock(mutex_);
  if (AllHaveStopped()) return true;
  if (Clock::now() - last_frame_ < options_.idle_limit) return false;
  was_idle_ = true;
  for (auto& entry : sessions_) ReadyAll(entry.second, false);
  return true;
}

bool Receiver::IsIdleSince(Clock::time_point begin) {
  const std::scoped_lock lock(mutex_);
  if (Clock::now() - std::max(begin, last_frame_) < options_.idle_limit) return false;
  was_idle_ = true;
  return true;
}

std::vector<SessionFacts> Receiver::Sessions() const {
  const std::scoped_lock lock(mutex_);
  std::vector<SessionFacts> facts;
  for (const auto& entry : sessions_) facts.push_back(entry.second.facts);
  std::ranges::stable_sort(facts, {}, &SessionFacts::rank);
  return facts;
}

// ---- Connections

void Receiver::Accept() {
  BlockBrokenPipes();
  for (int number = 0; !ends_; ++number) {
    Result<std::unique_ptr<Link>> link = listener_->Accept(kServeTick);
    if (!link) {  // out of descriptors: later ones may be free again
      std::this_thread::sleep_for(kServeTick);
      continue;
    }
    if (*link == nullptr) continue;
    const std::scoped_lock lock(threads_mutex_);
    Link& connected = *(links_[number] = *std::move(link));
    threads_.emplace_back([this, number, &connected] {
      BlockBrokenPipes();
      Serve(connected);
      const std::scoped_lock ending(threads_mutex_);
      links_.erase(number);
    });
  }
}

void Receiver::Serve(Link& link) {
  const plumbline::Status ended = Converse(link);
  const std::scoped_lock lock(mutex_);
  bool is_expected = false;  // a training that has said stop goes
  for (auto& entry : sessions_) {
    if (entry.second.link != &link) continue;
    entry.second.link = nullptr;
    is_expected = entry.second.facts.has_stopped;
  }
  if (ended || is_expected || ends_) return;
  if (troubles_.IsNew(ended.error().message())) LogWarning(ended.error().message());
}

std::string Receiver::Refusal(const FrameHeader& hello, std::string_view framework) const {
  if (framework != "pytorch") {
    return fmt::format("a training of {} (expected pytorch)", OneLine(framework));
  }
  const bool is_expected =
      options_.ranks.empty() || std::ranges::find(options_.ranks, hello.rank) != options_.ranks.end();
  if (!is_expected) return fmt::format("rank {} is not in rank_list", hello.rank);
  for (const auto& entry : sessions_) {
    const Session& other = entry.second;
    const bool is_other = entry.first != hello.session && other.facts.rank == hello.rank;
    if (is_other && other.link != nullptr && !other.facts.has_stopped) {
      return fmt::format("another training is connected as rank {}", hello.rank);
    }
  }
  return {};
}

std::string Receiver::Answer(FrameKind kind, const Session& session) const {
  FrameHeader header;
  header.kind = kind;
  header.session = session.facts.session;
  header.rank = session.facts.rank;
  header.sequence = session.last_sequence;
  const bool has_room = spool_bytes_ < options_.most_spool_bytes;
  return EncodeFrame(header, EncodeCredits({has_room ? kCredits : 0, session.facts.lost}));
}

// Of one connection.
struct Receiver::Conversation {
  FrameReader reader;
  Session* session = nullptr;       // once it has said hello
  std::string answer, last_answer;  // to write; the last acknowledgement
  bool is_refused = false;
};

plumbline::Status Receiver::Greet(Link& link, const FrameReader::Frame& frame,
                                  Conversation& talk) {
  if (frame.header.kind != FrameKind::kHello) {
    return Error(ErrorCode::kCorrupt, "a connection that does not begin as a training does");
  }
  const std::string why = Refusal(frame.header, AsText(frame.body()));
  if (!why.empty()) {
    LogWarning("refused: " + why);
    FrameHeader refusal = frame.header;
    refusal.kind = FrameKind::kRefusal;
    talk.answer += EncodeFrame(refusal, why);
    talk.is_refused = true;
    return {};
  }
  for (auto& entry : sessions_) {
    Session& other = entry.second;
    const bool is_older = other.facts.rank == frame.header.rank &&
                          entry.first != frame.header.session && !other.facts.has_stopped;
    if (!is_older || other.is_given_up) continue;
    other.is_given_up = true;
    ReadyAll(other, false);
  }
  talk.session = &SessionOf(frame.header.rank, frame.header.session);
  if (talk.session->link != nullptr) talk.session->link->Stop();  // half open, from before
  talk.session->link = &link;
  talk.answer += Answer(FrameKind::kWelcome, *talk.session);
  return {};
}

// The frames that have come.
plumbline::Status Receiver::TakeFrames(Link& link, Conversation& talk) {
  FrameReader::Frame frame;
  while (!talk.is_refused) {
    PL_TRY_ASSIGN(const bool is_whole, talk.reader.Next(frame));
    if (!is_whole) return {};
    const std::scoped_lock lock(mutex_);
    last_frame_ = Clock::now();
    if (talk.session == nullptr) {
      PL_TRY(Greet(link, frame, talk));
      continue;
    }
    const SessionFacts& facts = talk.session->facts;
    const bool is_its_own =
        frame.header.session == facts.session && frame.header.rank == facts.rank;
    if (!is_its_own || talk.session->link != &link) {
      return Error(ErrorCode::kCorrupt, "a frame of another training, or of an older connection");
    }
    PL_TRY(Keep(*talk.session, frame));
  }
  return {};
}

// Once its sequence, its credits or what is lost have changed.
void Receiver::Acknowledge(Conversation& talk) const {
  const std::scoped_lock lock(mutex_);
  std::string now = Answer(FrameKind::kAck, *talk.session);
  if (now == talk.last_answer) return;
  talk.answer += now;
  talk.last_answer = std::move(now);
}

plumbline::Status Receiver::Converse(Link& link) {
  PL_TRY(link.Handshake(kHandshakeLimit));
  const auto greeted_by = Clock::now() + kHandshakeLimit;
  Conversation talk;
  while (!ends_) {
    PL_TRY_ASSIGN(const size_t got, link.Read(talk.reader.Room()));
    talk.reader.Take(got);
    if (got > 0) PL_TRY(TakeFrames(link, talk));
    if (talk.session != nullptr) {
      Acknowledge(talk);
    } else if (!talk.is_refused && Clock::now() > greeted_by) {
      return Error(ErrorCode::kIo, "a connection was closed that said nothing");
    }
    PL_TRY_ASSIGN(const size_t written, link.Write(BytesOf(talk.answer)));
    talk.answer.erase(0, written);
    if (talk.is_refused && talk.answer.empty()) return {};
    if (got == 0) link.Wait(!talk.answer.empty(), -1, kServeTick);
  }
  return {};
}

// ---- A shared directory

void Receiver::ScanShared() {
  while (!ends_) {
    const plumbline::Status scanned = ScanOnce();
    if (!scanned) {
      const std::scoped_lock lock(mutex_);
      if (troubles_.IsNew(scanned.error().message())) {
        LogWarning(scanned.error().message() + ". It is tried again");
      }
    }
    std::this_thread::sleep_for(kServeTick / 4);
  }
}

plumbline::Status Receiver::ScanOnce() {
  PL_TRY_ASSIGN(const std::vector<shared_place::Training> trainings,
                shared_place::Trainings(options_.directory));
  for (const shared_place::Training& training : trainings) {
    const bool is_expected = options_.ranks.empty() ||
                             std::ranges::find(options_.ranks, training.rank) != options_.ranks.end();
    if (!is_expected) continue;
    {
      const std::scoped_lock lock(mutex_);
      (void)SessionOf(training.rank, training.session);
      // Beyond it files wait where they are.
      if (spool_bytes_ >= options_.most_spool_bytes) return {};
    }
    PL_TRY_ASSIGN(const std::vector<std::string> paths,
                  shared_place::FramesOf(options_.directory, training));
    for (const std::string& path : paths) {
      if (ends_) return {};
      bool is_new = false;
      PL_TRY(TakeFile(path, is_new));
      if (!is_new) break;  // one before it is still being written
    }
    const std::scoped_lock lock(mutex_);
    if (SessionOf(training.rank, training.session).facts.has_stopped) {
      PL_TRY(RemoveFile(training.mark));
    }
  }
  return {};
}

plumbline::Status Receiver::TakeFile(const std::string& path, bool& is_new) {
  FrameReader::Frame frame;
  PL_TRY_ASSIGN(const std::string text, ReadFile(path));
  const auto bytes = BytesOf(text);
  bool is_frame = false;
  const uint64_t whole = VisitFrames(bytes, [&](const FrameHeader& header, auto) {
    is_frame = true;
    frame.header = header;
  });
  if (!is_frame || whole != text.size()) {
    return Error(ErrorCode::kCorrupt, path + ": is damaged; what follows it is not taken");
  }
  frame.bytes.assign(bytes.begin(), bytes.end());
  {
    const std::scoped_lock lock(mutex_);
    Session& session = SessionOf(frame.header.rank, frame.header.session);
    if (frame.header.sequence > session.last_sequence + 1) return {};
    PL_TRY(Keep(session, frame));
  }
  is_new = true;
  return RemoveFile(path);
}

}  // namespace plumbline::online
