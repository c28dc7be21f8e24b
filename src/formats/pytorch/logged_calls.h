// From the entries of a log to calls: names, numbers, modules, and what the log cannot show.

#ifndef PLUMBLINE_FORMATS_PYTORCH_LOGGED_CALLS_H_
#define PLUMBLINE_FORMATS_PYTORCH_LOGGED_CALLS_H_

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/text/text_hash.h"
#include "formats/pytorch/debug_mode_log.h"
#include "formats/pytorch/printed_value.h"

namespace plumbline::debug_mode {

using Frames = Shared<std::vector<std::string>>;

// A tensor of which nothing else is known yet.
TensorRecord NewTensor(std::string_view dtype = "unknown", Shape shape = {});

// One entry: a call of an operator, or the launch of a Triton kernel.
struct Entry {
  std::string_view name;  // "aten::add.Tensor", or that of the kernel
  bool is_kernel = false;
  std::vector<Argument> arguments = {};
  std::optional<Printed> output = std::nullopt;  // as printed; of kernels none
  // Trees of hashes as log_tensor_hashes() leaves them: of ((arguments), {keywords}), of the
  // result; of kernels by the names of arguments, before and behind the launch.
  std::optional<Printed> input_hash = std::nullopt, hash = std::nullopt;
  Frames stack = {};
};

// A tensor of a dump that gives hashes alone, by its place: "0", "1.2" or "value".
struct HashedLeaf {
  std::string part;
  Printed hash;
};
// A call in such a dump.
struct HashBlock {
  std::string module;  // its path; "<none>": none
  std::string name;    // "aten::mm", "mm" of torchtitan, or that of a kernel
  bool is_kernel = false, is_backward = false;
  std::vector<HashedLeaf> inputs, outputs;
  std::optional<TensorRecord> result;  // what is known besides the hashes; gets those of `outputs`
  Frames stack;
};

// Collects the calls of one log, in its order. Single-threaded; `keep` and `out` outlive it.
class LoggedCalls {
 public:
  LoggedCalls(const dump_json::KeepEntry& keep, LogFile& out);

  // A module is entered: calls at a greater depth that follow are inside of it.
  void EnterModule(int64_t depth, std::string_view path);
  void Add(int64_t depth, const Entry& entry);
  void Add(const HashBlock& block);
  // A call that has no hash of its own: of a function above the dispatcher.
  void SkipFunction() { ++functions_; }
  // A line about tensors that are spread over ranks.
  void SkipRedistribution() { ++redistributed_; }
  // The end: what the header and the losses say. `digits`: how exactly the log writes numbers,
  // where it does not write them as they are.
  void Finish(std::string_view log_form, std::string_view digits);

 private:
  struct OpenModule {
    int64_t depth;
    std::string name;  // of its call
  };

  std::string NextName(const std::string& base);
  std::string ModuleCall(std::string_view path, bool is_backward);
  void Keep(Call call, std::string_view parent, const Frames& stack);
  [[nodiscard]] Value ValueOf(const Printed& value, const Printed* hash, bool is_hashed);
  [[nodiscard]] Value TensorOf(const PrintedTensor& tensor, const Printed* hash, bool is_hashed);
  void SetDigest(const Printed& hash, TensorRecord& tensor);
  void AppendDigest(const Printed& hash, std::string& text, TensorRecord& tensor);
  [[nodiscard]] Value HashTree(const Printed& hash);
  void AddInputs(const Entry& entry, Call& call);
  void AddKernelTensors(const Entry& entry, Call& call);
  void AddOutput(const Entry& entry, Call& call);
  void AddLeaves(std::string_view member, const std::vector<HashedLeaf>& leaves,
                 const std::optional<TensorRecord>& known, Call& call);
  void NoteUnseen();

  const dump_json::KeepEntry& keep_;
  LogFile& out_;
  std::vector<OpenModule> modules_;  // around what comes next
  std::unordered_map<std::string, uint64_t> numbers_;
  TextSet module_calls_;  // of blocks
  std::set<std::string, std::less<>> hash_kinds_;
  uint64_t digests_ = 0, hashed_inputs_ = 0;
  uint64_t functions_ = 0, redistributed_ = 0, kernels_ = 0, spread_ = 0, in_place_ = 0;
  std::string first_kernel_, first_in_place_;
};

}  // namespace plumbline::debug_mode

#endif  // PLUMBLINE_FORMATS_PYTORCH_LOGGED_CALLS_H_
