// Messages about what goes wrong again and again: each is told once, and counted.

#ifndef PLUMBLINE_ONLINE_TROUBLES_H_
#define PLUMBLINE_ONLINE_TROUBLES_H_

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace plumbline::online {

// Messages that differ in numbers alone are the same: ports of connections, frames in the names of
// files. Addresses of machines (10.0.0.7) count as text. Not thread-safe.
class Troubles {
 public:
  // Counts it; whether it is the first of its kind.
  bool IsNew(std::string_view message);
  // What came again, how often and as it was told: "12 times more: ...".
  [[nodiscard]] std::vector<std::string> Repeated() const;

 private:
  struct Told {
    std::string message;  // the first
    uint64_t count = 0;
  };
  std::map<std::string, Told> told_;  // by kind
};

}  // namespace plumbline::online

#endif  // PLUMBLINE_ONLINE_TROUBLES_H_
