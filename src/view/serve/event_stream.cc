#include "view/serve/event_stream.h"

#include <chrono>
#include <memory>
#include <thread>

#include "view/serve/access_gate.h"

namespace plumbline::view {
namespace {

using Clock = std::chrono::steady_clock;
// How long one piece is waited for: that a reader has gone is seen in between.
constexpr std::chrono::milliseconds kWait{250};
constexpr std::chrono::seconds kSilence{15};

}  // namespace

struct EventStreams::Stream {
  explicit Stream(EventStreams& all) : streams(all) {}
  ~Stream() { --streams.open_; }

  std::string Next() {
    seen = streams.signal_.Await(seen, kWait);
    std::string piece;
    sent.resize(streams.texts_.size());
    for (size_t i = 0; i < sent.size(); ++i) {
      std::string text = streams.texts_[i].second();
      if (text == sent[i]) continue;
      piece += "event: " + streams.texts_[i].first + "\ndata: " + text + "\n\n";
      sent[i] = std::move(text);
    }
    const Clock::time_point now = Clock::now();
    if (piece.empty() && now - last >= kSilence) piece = ": still here\n\n";
    if (!piece.empty()) last = now;
    return piece;
  }

  EventStreams& streams;
  uint64_t seen = 0;
  std::vector<std::string> sent;
  Clock::time_point last = Clock::now();
};

HttpResponse EventStreams::Open() {
  if (++open_ > kMost) {
    --open_;
    return ErrorResponse(503, "busy", "too many pages listen. Close one of them");
  }
  HttpResponse response;
  response.type = "text/event-stream";
  response.stream = [stream = std::make_shared<Stream>(*this)](std::string& piece) {
    piece = stream->Next();
    return true;
  };
  return response;
}

}  // namespace plumbline::view
