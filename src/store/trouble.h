// What goes wrong while recording is said once, however many files it costs.

#ifndef PLUMBLINE_STORE_TROUBLE_H_
#define PLUMBLINE_STORE_TROUBLE_H_

#include <cstdint>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "plumbline/result.h"

namespace plumbline {

// What a failure costs. Each is news to the user, also where one full disk is the cause of all.
enum class Harm : uint8_t {
  kPlace,    // the directory was removed, moved or replaced
  kTensors,  // tensor files
  kSync,     // safety from a power failure
  kJournal,  // safety from a kill
  kFiles,    // the final files of a step, said after kJournal
  kSteps,    // whole steps: says all that kJournal and kFiles say
};

// Thread-safe.
class Trouble {
 public:
  // Logs `error` and the sentences `what_now`, unless this harm in the same directory or of the
  // same cause (the text behind the last ": ") was logged before. False: it was. A cause that was
  // held back because of its directory is logged when another directory meets it.
  bool Report(Harm harm, std::string_view directory, const Error& error, std::string_view what_now);

 private:
  using Said = std::set<std::pair<Harm, std::string>>;
  std::mutex mutex_;  // guards what follows
  Said directories_;
  Said causes_;
};

}  // namespace plumbline

#endif  // PLUMBLINE_STORE_TROUBLE_H_
