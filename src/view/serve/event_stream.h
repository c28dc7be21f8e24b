// Server-sent events: a page is told when something changed.

#ifndef PLUMBLINE_VIEW_SERVE_EVENT_STREAM_H_
#define PLUMBLINE_VIEW_SERVE_EVENT_STREAM_H_

#include <atomic>
#include <cstddef>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "view/serve/change_signal.h"
#include "view/serve/http_message.h"

namespace plumbline::view {

// One kind of event: its name and the text of the answer that it carries.
using EventTexts = std::vector<std::pair<std::string, std::function<std::string()>>>;

// The streams of one server. Thread-safe; outlives its responses.
class EventStreams {
 public:
  // Each stream holds a thread of the server.
  static constexpr size_t kMost = 32;

  EventStreams(EventTexts texts, ChangeSignal& signal)
      : texts_(std::move(texts)), signal_(signal) {}

  // A stream that begins with the present texts and goes on with those that change; a comment
  // every 15 seconds shows that it lives. 503: there are kMost already.
  HttpResponse Open();

 private:
  struct Stream;

  EventTexts texts_;
  ChangeSignal& signal_;
  std::atomic<size_t> open_ = 0;
};

}  // namespace plumbline::view

#endif  // PLUMBLINE_VIEW_SERVE_EVENT_STREAM_H_
