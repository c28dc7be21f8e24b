// Which calls are under way on which thread, what of each is recorded, and when its entry goes to
// the store.
//
// The framework's side (python/bindings/recorder.h) tells what happens and packs values; every
// decision is made here. A call gets its number and name when it begins, its inputs are packed
// before it runs and its outputs behind it; what is searched for is decided when it has ended.

#ifndef PLUMBLINE_CAPTURE_CALL_RECORDER_H_
#define PLUMBLINE_CAPTURE_CALL_RECORDER_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "capture/observer.h"
#include "capture/reference_calls.h"
#include "capture/thread_state.h"

namespace plumbline::capture {

// What is searched for in every entry.
enum class Search : uint8_t {
  kNothing,
  kNonFinite,   // overflow_check: only entries with NaN or Inf are recorded, with their tensors
  kNanFlag,     // nan_check: every entry is recorded with a flag in place of statistics
  kDifference,  // bench_path: every entry is recorded, those that differ with their tensors
};

// A call stack, as the program's side numbers it.
struct StackInfo {
  uint32_t id = 0;            // from 1; 0: none
  bool is_recompute = false;  // the stack runs inside activation recomputation
};

// Whether an entry tells that it was recomputed, and where.
enum class RecomputeMark : uint8_t { kNone, kBeforeOutput, kBehindOutput };

// An API call between its begin and its end.
struct ApiCall {
  std::string_view api;  // "Functional.linear"; lives as long as the recorder
  std::string name;      // of the entry: "Functional.linear.0.forward"
  uint32_t number = 0;
  uint64_t epoch = 0;  // of the step that it belongs to
  bool is_selected = true;
  RecomputeMark mark = RecomputeMark::kNone;
  bool is_recompute = false;
};

// The entry of the way back of a call.
struct BackwardEntry {
  std::string name;
  std::string parent;  // empty: a root
  bool has_parent = false;
  uint64_t epoch = 0;
};

// Packs tensors that were kept: the one thing that this side cannot do.
class KeptTensorPacker {
 public:
  virtual ~KeptTensorPacker() = default;
  // As if `kept` was met now, but with its values when it was met; stores its file.
  virtual void PackKept(const KeptTensor& kept, EntryPacker& out) = 0;
  // Waits for what `kept` awaits and notes it there: once for a whole call.
  virtual void ReadAwaited(KeptTensors& kept) = 0;
};

// One per process. All methods need the program's lock.
class CallRecorder {
 public:
  // `tells_recompute`: entries have a mark for calls inside activation recomputation.
  CallRecorder(std::unique_ptr<Observer> observer, bool tells_recompute,
               const ProgramThreads& threads, KeptTensorPacker& packer);

  Observer& observer() { return *observer_; }
  [[nodiscard]] const Config& config() const { return observer_->config(); }
  StepGate& gate() { return gate_; }
  [[nodiscard]] const ProgramThreads& threads() const { return threads_; }
  [[nodiscard]] Search search() const { return search_; }
  [[nodiscard]] bool looks_for_non_finite() const {
    return search_ == Search::kNonFinite || search_ == Search::kNanFlag;
  }
  [[nodiscard]] bool wants_stacks() const { return wants_stacks_; }
  [[nodiscard]] bool wants_parents() const { return wants_parents_; }
  [[nodiscard]] bool wants_backward() const {
    return WantsDirection(config().data_mode, CallKind::kBackward);
  }
  // Whether modules tell which of their buffers they changed.
  [[nodiscard]] bool wants_buffers() const;
  // What bench_path compares the open step with; empty: nothing differs.
  void set_reference(ReferenceCalls reference) { reference_ = std::move(reference); }

  // Whether a call that begins now is recorded.
  [[nodiscard]] bool Records(const ThreadState& thread) const {
    return observer_->is_collecting() && thread.in_tool == 0 && !gate_.is_closed() &&
           !is_forked_child_.load(std::memory_order_relaxed);
  }
  // Level L2: an API is only entered, so that its operators know that they are inside one.
  [[nodiscard]] bool OnlyEnters(const ThreadState& thread) const {
    return observer_->config().level == Level::kL2 && !thread.in_operator;
  }
  // The same of an API: only the outermost one is an entry.
  [[nodiscard]] bool RecordsApi(const ThreadState& thread) const {
    return (thread.in_api == 0 || OnlyEnters(thread)) && Records(thread);
  }
  // Whether gradients and results that come late still have a place.
  [[nodiscard]] bool MayRecordLate(const ThreadState& thread) const;
  // Whether a call that began in `epoch` still has its place; counts it as lost if not.
  bool StillHasPlace(uint64_t epoch, std::string_view name);

  // APIs, in this order; Select and later inside InTool.
  ApiCall NameApi(uint32_t api);
  void Select(ApiCall& call);
  // Begins the entry thread.call, whose tensors are kept in thread.call_kept.
  void BeginApi(ThreadState& thread, ApiCall& call, const StackInfo& stack) const;
  [[nodiscard]] bool WantsInput(const ApiCall& call) const;
  [[nodiscard]] bool WantsOutput(const ApiCall& call) const;
  // The entry that the gradients of its first result will make; nothing: none is recorded.
  [[nodiscard]] std::optional<BackwardEntry> BackwardOf(const ThreadState& thread,
                                                        const ApiCall& call) const;
  // Whether that entry is selected, now that its gradients are there.
  bool SelectsBackward(const BackwardEntry& entry);

  // Modules. The frame is filled by the caller and pushed onto thread.modules.
  ModuleFrame OpenModule(uint32_t id);
  [[nodiscard]] bool WantsInput(const ModuleFrame& frame) const;
  // Whether the module call is still under way: known to the thread.
  [[nodiscard]] static bool IsOpen(const ThreadState& thread, uint64_t token);
  // Takes its frame, dropping those above it (calls that raised). Nothing if it has no place any
  // more. Requires: IsOpen().
  struct ClosedModule {
    ModuleFrame frame;
    bool is_selected = true;
  };
  std::optional<ClosedModule> CloseModule(ThreadState& thread, uint64_t token);
  // Begins the entry thread.event; with the inputs of the frame, whose tensors go to `kept`, if its
  // values are recorded, which the result tells.
  [[nodiscard]] bool BeginModule(ThreadState& thread, ClosedModule& module, const StackInfo& stack,
                                 KeptTensors* kept) const;
  [[nodiscard]] bool WantsForwardOutput() const {
    return plumbline::WantsOutput(config().data_mode, CallKind::kForward);
  }
  [[nodiscard]] bool wants_recompute() const { return wants_recompute_; }
  // The name of the backward entry that encloses the one of the innermost module call; empty: none.
  [[nodiscard]] static std::string ParentOfBackward(const ThreadState& thread);

  // Begin and end of the backward of a module, for filters only. The end tells whether the entry
  // is selected.
  void EnterBackward(std::string_view name);
  bool LeaveBackward(std::string_view name);
  // Begins the entry thread.event, of gradients or of a call that is complete late, with members
  // that were packed before. `parent` null: not known.
  static void BeginLate(ThreadState& thread, std::string_view name, const std::string* parent,
                        PackedPart before, KeptTensors* kept);
  // {name: [null]} for every parameter, so that the entry has its place and order.
  void ReserveGradients(ThreadState& thread, std::string_view entry,
                        std::span<const std::string_view> parameters);
  // Whether gradients of parameters that arrive now are recorded.
  [[nodiscard]] bool RecordsGradients(const ThreadState& thread) const;
  // Whether those of the entry are selected. False: what was reserved for it is removed.
  bool SelectsGradients(const std::string& entry);

  // Pseudo modules "optimizer" and "clip_grad": parents of the APIs called inside.
  void PushRegion(ThreadState& thread, std::string_view name);
  static void PopRegion(ThreadState& thread, std::string_view name);

  // The entry of a stack's frames comes before the first entry that uses it.
  void UseStack(uint32_t id, std::span<const std::string> frames);
  // Begins to pack values of the entry `name`: their tensors are stored if it is one of those, or
  // searched and put into `kept` when something is searched for.
  void NameEntry(ThreadState& thread, std::string_view name, KeptTensors* kept = nullptr) const;
  // Values of the entry being packed that could not be read.
  void CountUnreadable(const ThreadState& thread, int values);
  // The end of an entry: records what the search asks for. Clears `kept`. `is_listed`: stack.json
  // or construct.json name the entry whether or not it is a hit.
  void EndEntry(ThreadState& thread, std::string_view name, EntryPacker& out, KeptTensors& kept,
                bool is_listed);
  void AppendEntry(std::span<const std::byte> packed) { observer_->writer().AddEntry(packed); }

  // Forgets the calls of the step that ends.
  void EndStep(ThreadState& thread);

 private:
  // Replaces what `out` holds of the kept tensors by full records, and stores them.
  void StoreKept(ThreadState& thread, std::string_view name, EntryPacker& out,
                 const KeptTensors& kept);
  void EndSearched(ThreadState& thread, std::string_view name, EntryPacker& out, KeptTensors& kept,
                   bool is_listed);
  void EndCompared(ThreadState& thread, std::string_view name, EntryPacker& out,
                   const KeptTensors& kept);
  // Whether a hit that does not count is recorded; counts it if not.
  bool TakeAside(std::string_view name);
  void SecureHit();

  // Set in a forked child: nothing of it may reach the parent's files. DataLoader workers fork.
  static inline std::atomic<bool> is_forked_child_ = false;

  std::unique_ptr<Observer> observer_;
  const ProgramThreads threads_;
  KeptTensorPacker& packer_;
  StepGate gate_;
  std::unordered_set<uint32_t> stacks_written_;  // ids known to the open step's journal
  std::unordered_set<std::string> regions_written_;
  // With filters: gradient entries of modules whose backward or an earlier gradient was selected.
  std::unordered_set<std::string> gradients_wanted_;
  uint64_t next_token_ = 1;
  Search search_ = Search::kNothing;
  ReferenceCalls reference_;
  bool wants_stacks_ = true;
  bool wants_recompute_ = true;
  bool wants_parents_ = false;
};

}  // namespace plumbline::capture

#endif  // PLUMBLINE_CAPTURE_CALL_RECORDER_H_
