// Builds a store, or asks one: what benchmarks and tests of the viewer run without a server.
//
//   ask_store build STORE TARGET [GOLDEN]
//   ask_store ask STORE QUESTION [KEY=VALUE]...      prints the answer
//   ask_store time STORE TIMES QUESTION [KEY=VALUE]...  prints {"ms": [...], "bytes": n}

#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "view/query/answers.h"
#include "view/store/build_store.h"
#include "view/store/result_store.h"

namespace plumbline::view {
namespace {

using Arguments = std::vector<std::string>;

int Fail(const Error& error) {
  fmt::print(stderr, "{}\n", error.message());
  return ExitStatus(error.code());
}

double MillisecondsSince(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin)
      .count();
}

int Build(const Arguments& arguments) {
  const std::string golden = arguments.size() > 2 ? arguments[2] : "";
  const Status built = BuildStore(arguments[1], golden, arguments[0], StoreOptions());
  return built ? 0 : Fail(built.error());
}

Parameters ParametersFrom(const Arguments& arguments, size_t first) {
  Parameters parameters;
  for (size_t i = first; i < arguments.size(); ++i) {
    const size_t equals = arguments[i].find('=');
    if (equals == std::string::npos) continue;
    parameters.Set(arguments[i].substr(0, equals), arguments[i].substr(equals + 1));
  }
  return parameters;
}

int Ask(const Arguments& arguments) {
  const auto store = ResultStore::Open(arguments[0]);
  if (!store) return Fail(store.error());
  const Parameters parameters = ParametersFrom(arguments, 2);
  std::shared_ptr<const ResultStore> base;
  if (parameters.Has("base")) {
    const auto opened = ResultStore::Open(std::string(parameters.Text("base")));
    if (!opened) return Fail(opened.error());
    base = *opened;
  }
  const auto answer = Answer(**store, arguments[1], parameters, base.get());
  if (!answer) return Fail(answer.error());
  fmt::print("{}\n", *answer);
  return 0;
}

// The first time is that of a store that was just opened.
int Time(const Arguments& arguments) {
  const auto begin = std::chrono::steady_clock::now();
  const auto store = ResultStore::Open(arguments[0]);
  if (!store) return Fail(store.error());
  std::string text = fmt::format("{{\"open_ms\": {:.3f}, \"ms\": [", MillisecondsSince(begin));
  const Parameters parameters = ParametersFrom(arguments, 3);
  size_t bytes = 0;
  for (int i = 0; i < std::atoi(arguments[1].c_str()); ++i) {
    const auto asked = std::chrono::steady_clock::now();
    const auto answer = Answer(**store, arguments[2], parameters);
    if (!answer) return Fail(answer.error());
    text += fmt::format("{}{:.3f}", i == 0 ? "" : ", ", MillisecondsSince(asked));
    bytes = answer->size();
  }
  fmt::print("{}], \"bytes\": {}}}\n", text, bytes);
  return 0;
}

int Main(const Arguments& arguments) {
  const std::string_view command = arguments.empty() ? std::string_view() : arguments[0];
  const Arguments rest(arguments.begin() + (arguments.empty() ? 0 : 1), arguments.end());
  if (command == "build" && rest.size() >= 2) return Build(rest);
  if (command == "ask" && rest.size() >= 2) return Ask(rest);
  if (command == "time" && rest.size() >= 3) return Time(rest);
  fmt::print(stderr, "usage: ask_store build|ask|time STORE ...\n");
  return 2;
}

}  // namespace
}  // namespace plumbline::view

int main(int argc, char** argv) { return plumbline::view::Main({argv + 1, argv + argc}); }
