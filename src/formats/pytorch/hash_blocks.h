// The two forms of logs that are blocks of lines: DebugMode.dump_tensor_hashes() and torchtitan's
// rank_0_activations.log (docs/formats/debug_mode_log.md).

#ifndef PLUMBLINE_FORMATS_PYTORCH_HASH_BLOCKS_H_
#define PLUMBLINE_FORMATS_PYTORCH_HASH_BLOCKS_H_

#include <string_view>

#include "formats/pytorch/logged_calls.h"
#include "plumbline/result.h"
#include "plumbline/run.h"

namespace plumbline::debug_mode {

// What the first line begins with, before the number of blocks.
inline constexpr std::string_view kHashCount = "Total captured tensor hash ops: ";
inline constexpr std::string_view kActivationCount = "Total captured activations: ";

// Adds the calls of `text`, and to `loss` what torchtitan says that it leaves out. kCorrupt with
// the line of what is no part of such a dump, and where blocks are missing; with `salvage` the
// blocks before that are added, and loss.truncated is set.
Status ReadBlocks(std::string_view text, bool salvage, LoggedCalls& calls, RunLoss& loss);

}  // namespace plumbline::debug_mode

#endif  // PLUMBLINE_FORMATS_PYTORCH_HASH_BLOCKS_H_
