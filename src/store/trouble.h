// What goes wrong while recording is said once, however many files it costs.

#ifndef PLUMBLINE_STORE_TROUBLE_H_
#define PLUMBLINE_STORE_TROUBLE_H_

#include <mutex>
#include <set>
#include <string>
#include <string_view>

#include "plumbline/result.h"

namespace plumbline {

// A full disk fails the journal, the tensor files and the final files of every later step. The user
// needs one line about it. Thread-safe.
class Trouble {
 public:
  // Logs `error` and the sentences `what_now`, unless a failure of the same directory or of the
  // same cause (the text behind the last ": ") was logged before. False: it was. A cause that was
  // held back because of its directory is logged when another directory meets it.
  bool Report(std::string_view directory, const Error& error, std::string_view what_now);

 private:
  std::mutex mutex_;  // guards what follows
  std::set<std::string, std::less<>> directories_;
  std::set<std::string, std::less<>> causes_;
};

}  // namespace plumbline

#endif  // PLUMBLINE_STORE_TROUBLE_H_
