// What `convert` is asked for, checked as upstream's program checks it.

#ifndef PLUMBLINE_OPERATORS_CONVERT_OPTIONS_H_
#define PLUMBLINE_OPERATORS_CONVERT_OPTIONS_H_

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "operators/host_tensor.h"
#include "operators/output_names.h"
#include "operators/user_code.h"
#include "record/run_files.h"

namespace plumbline::operators {

// The texts of the command line; empty: not given.
struct ConvertRequest {
  std::string dump_path;  // a file, files between commas, or a directory
  std::string output_directory;
  std::string format, shape;
  std::string output_index, input_index;
  std::string custom_script_path;
  bool recursive = false;
  bool by_operator = false;  // recursive; the outputs of a dump into {op_name}/{timestamp}
  bool takes_atb = false;    // also tensor files of ATB, by their names; kNpy and kPt only
  // Name in the output directory of the list of failures.
  std::string failure_list{run_files::kConvertFailures};
  OutputKind kind = OutputKind::kNpy;
  int threads = 0;  // 0: one per core
  // Called from any thread, one at a time; bytes of dumps and their number.
  struct Progress {
    size_t files = 0, all_files = 0;
    uint64_t bytes = 0, all_bytes = 0;
  };
  std::function<void(const Progress& progress)> on_progress;
};

// What is to happen with each tensor.
struct ConvertOptions {
  std::optional<WantedLayout> layout;
  std::optional<size_t> only_output, only_input;  // at most one of them
  OutputKind kind = OutputKind::kNpy;
  bool takes_atb = false;
  std::shared_ptr<UserCode> own;  // converters of the user; null: none
};

// kInvalidParameter: an option without the one it belongs to, both indices, a format that nobody
// knows, an index that is no number. kInvalidShape: a shape of one dimension or with a size of 0.
// Errors of UserCode::Load().
DumpResult<ConvertOptions> CheckConvert(const ConvertRequest& request);

}  // namespace plumbline::operators

#endif  // PLUMBLINE_OPERATORS_CONVERT_OPTIONS_H_
