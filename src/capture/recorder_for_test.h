// For tests only: a recorder of a program without any framework, whose objects are plain numbers.

#ifndef PLUMBLINE_CAPTURE_RECORDER_FOR_TEST_H_
#define PLUMBLINE_CAPTURE_RECORDER_FOR_TEST_H_

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/file/test_directory.h"
#include "capture/call_recorder.h"

namespace plumbline::capture::testing {

// A reference to an object that counts how many there are.
inline ObjectRef RefTo(int* object) {
  ++*object;
  return {object, [](void* released) { --*static_cast<int*>(released); }};
}

inline ProgramThreads PlainThreads() {
  return {[](const std::function<void()>& work) { work(); }, [] { return kernels::Team{}; }};
}

// What a look at the tensors of a call finds.
struct Look {
  Sight input = {}, output = {};
};

// A program that makes calls of one tensor in and one tensor out. A tensor is packed as its name.
class TestProgram : private KeptTensorPacker {
 public:
  // The window of the first step is open.
  explicit TestProgram(Config config = {})
      : recorder(MakeObserver(std::move(config), dump_.path()), true, PlainThreads(), *this) {
    (void)recorder.observer().Start(0);
  }

  // One call of the API; `body` is what it does itself.
  void Call(std::string_view api, const Look& look = {}, const std::function<void()>& body = {}) {
    if (!recorder.RecordsApi(thread)) return body ? body() : void();
    ApiCall call = recorder.NameApi(recorder.observer().counters().Register(api));
    recorder.Select(call);
    recorder.BeginApi(thread, call, {});
    thread.call_kept.writes = WritesOf(api, {});
    if (recorder.WantsInput(call)) Pack("input_args", "input.0", look.input, call.name);
    ++thread.in_api;
    if (body) body();
    --thread.in_api;
    if (!recorder.StillHasPlace(call.epoch, call.name)) return;
    thread.call_kept.in_output = true;
    if (recorder.WantsOutput(call)) Pack("output", "output.0", look.output, call.name);
    recorder.EndEntry(thread, call.name, thread.call, thread.call_kept, /*is_listed=*/true);
  }

  // A module call up to its end; 0: it is not recorded.
  uint64_t EnterModule(std::string_view prefix) {
    if (!recorder.Records(thread)) return 0;
    ModuleFrame frame = recorder.OpenModule(recorder.observer().counters().Register(prefix));
    const uint64_t token = frame.token;
    thread.modules.push_back(std::move(frame));
    return token;
  }
  void LeaveModule(uint64_t token) {
    if (!CallRecorder::IsOpen(thread, token)) return;
    auto module = recorder.CloseModule(thread, token);
    if (!module) return;
    KeptTensors kept;
    if (recorder.BeginModule(thread, *module, {}, &kept)) {
      thread.event.Key("output");
      thread.event.Null();
    }
    recorder.EndEntry(thread, module->frame.name, thread.event, kept, /*is_listed=*/true);
  }

  // A file of the open step, as it is after stop().
  std::string File(const std::string& name) {
    recorder.observer().Stop();
    return ReadFile(JoinPath(recorder.observer().run_directory(), name)).value_or("missing");
  }
  bool Records(std::string_view text) { return File("dump.json").find(text) != std::string::npos; }

 private:
  plumbline::testing::TestDirectory dump_;  // outlives the recorder

 public:
  ThreadState thread;
  int live_tensors = 0;             // kept and not let go of
  std::vector<std::string> stored;  // places of kept tensors that were stored
  CallRecorder recorder;

 private:
  static std::unique_ptr<Observer> MakeObserver(Config config, const std::string& path) {
    config.dump_path = path;
    return *Observer::Create(std::move(config), "pytorch");
  }

  void Pack(std::string_view key, std::string_view path, Sight sight, std::string_view entry) {
    recorder.NameEntry(thread, entry, &thread.call_kept);
    thread.call.Key(key);
    thread.call.BeginList();
    KeptTensor kept;
    kept.begin = thread.call.size();
    thread.call.String(path);
    kept.end = thread.call.size();
    thread.call.EndList();
    if (thread.kept == nullptr) return;
    thread.kept->Note(sight, path);
    if (!thread.keeps_tensors) return;
    kept.path = path;
    kept.tensor = RefTo(&live_tensors);
    thread.kept->tensors.push_back(std::move(kept));
  }

  void ReadAwaited(KeptTensors& /*kept*/) override {}
  void PackKept(const KeptTensor& kept, EntryPacker& out) override {
    stored.push_back(kept.path);
    out.String("values of " + kept.path);
  }
};

}  // namespace plumbline::capture::testing

#endif  // PLUMBLINE_CAPTURE_RECORDER_FOR_TEST_H_
