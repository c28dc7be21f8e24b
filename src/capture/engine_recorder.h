// Records a program that tells of its calls itself (c_api.h): an inference engine, a simulator, a
// test bench. There is no framework to hook, so nothing is known of a call but what is told.

#ifndef PLUMBLINE_CAPTURE_ENGINE_RECORDER_H_
#define PLUMBLINE_CAPTURE_ENGINE_RECORDER_H_

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "capture/call_recorder.h"
#include "capture/tensor_cuts.h"
#include "capture/tensor_recorder.h"
#include "config/config.h"
#include "plumbline/result.h"
#include "plumbline/tensor.h"

namespace plumbline::capture {

// The members of an entry as the format of the recording spells them; static texts.
struct EntryKeys {
  std::string_view inputs, keywords, outputs, parameters;
};

struct EngineOptions {
  EntryKeys keys;
  std::optional<std::string> config_path;  // a config.json; nothing: the defaults
  ConfigOverrides overrides;               // win over the file
  std::string framework = "pytorch";       // whose spellings and tensor files are written
  std::optional<int> rank;
};

// One call between its begin and its end. Used by one thread at a time; may begin on one thread and
// end on another.
class EngineCall {
 public:
  // Of its entry: "Functional.linear.0.forward".
  [[nodiscard]] const std::string& name() const { return name_; }

 private:
  friend class EngineRecorder;
  // Values as they are told, of one member of the entry.
  struct Side {
    EntryPacker packed;
    uint64_t count = 0;
    bool is_wanted = false;
  };

  bool is_module_ = false;
  bool is_over_ = false;
  std::string name_;
  std::string module_;  // the innermost module call that it is in; empty: none
  ThreadState state_;   // of its own: calls may overlap
  ApiCall api_;
  uint64_t token_ = 0;  // of a module call
  Side inputs_, keywords_, outputs_, parameters_;
  std::set<std::string, std::less<>> names_;  // of keywords and parameters
};

// Tasks statistics, tensor and structure at the levels L0, L1 and mix. Thread-safe; a thread that
// reads a tensor lets others wait. A full or failing disk is logged and counted in the recording, as
// that of a training is.
class EngineRecorder final : private KeptTensorPacker {
 public:
  // Errors of LoadConfig(); kUnsupported for other tasks, levels and searches; kInvalidArgument for
  // another framework than pytorch, mindspore and mindtorch.
  static Result<std::unique_ptr<EngineRecorder>> Create(const EngineOptions& options);

  // Opens the files of the next step. False: its step or rank is not selected; nothing is recorded
  // until it ends. kIo: the directory cannot be written; the same. kInvalidArgument: a step is open.
  Result<bool> BeginStep();
  // Writes the files of the step. Calls that have not ended are counted as lost. kInvalidArgument:
  // no step is open.
  Status EndStep();
  // Ends a step that is open and waits until all is on the disk. Nothing is recorded any more.
  void Finish();

  // `name`: "Functional.linear", or "Module.layers.0.Linear" of a module (Cell. likewise), without a
  // number. `parent`: the call that it is made in, or null. Null: it is not recorded, as no selected
  // step is open or the level or the filters leave it out. kInvalidArgument: no such name.
  Result<std::unique_ptr<EngineCall>> BeginCall(std::string_view name, const EngineCall* parent);
  // The next input or output, or one parameter of a module, read before this returns. Inputs come
  // before the first output. `name`: of a parameter or a keyword argument; empty for others.
  // kInvalidArgument: the call is over, that order is broken, or the name is missing, there already
  // or that of an output.
  enum class Role : uint8_t { kInput, kOutput, kParameter };
  Status AddTensor(EngineCall& call, Role role, std::string_view name, const TensorView& view);
  // Its entry goes to the journal. One whose step has ended is counted as lost. kInvalidArgument: it
  // is over already.
  Status EndCall(EngineCall& call);

  // Directory of the open step, or of the last one; empty before the first.
  [[nodiscard]] std::string directory();

 private:
  EngineRecorder(std::unique_ptr<Observer> observer, const EngineOptions& options);
  void BeginApi(std::string_view name, EngineCall& call);
  void BeginModule(std::string_view name, EngineCall& call);
  // What is wrong with telling this now.
  static Status CheckTold(const EngineCall& call, Role role, std::string_view name);
  static EngineCall::Side& SideOf(EngineCall& call, Role role, std::string_view name);
  // Appends the members of the entry.
  void PackInputs(const EngineCall& call, EntryPacker& out) const;
  void PackOutputs(const EngineCall& call, EntryPacker& out) const;
  void EndApi(EngineCall& call);
  void EndModule(EngineCall& call);
  void CloseStep();
  // Nothing is searched for, so nothing is kept.
  void PackKept(const KeptTensor& /*kept*/, EntryPacker& out) override { out.Null(); }
  void ReadAwaited(KeptTensors& /*kept*/) override {}

  std::mutex mutex_;  // guards what follows
  const EntryKeys keys_;
  const FrameworkTexts texts_;
  const std::optional<int> rank_;
  CallRecorder calls_;
  TensorRecorder tensors_;
  const TensorCuts cuts_;
  bool is_step_begun_ = false;
};

}  // namespace plumbline::capture

#endif  // PLUMBLINE_CAPTURE_ENGINE_RECORDER_H_
