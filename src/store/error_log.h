// dump_error_info.log: what a recording lost, beside the dump.json that lacks it.

#ifndef PLUMBLINE_STORE_ERROR_LOG_H_
#define PLUMBLINE_STORE_ERROR_LOG_H_

#include <span>
#include <string_view>

#include "base/directory.h"
#include "store/journal.h"

namespace plumbline::error_log {

// Counter of tensors whose file is not there.
inline constexpr std::string_view kTensorsDropped = "tensors_dropped";
// Counter of records that only the final files hold: none is missing in them.
inline constexpr std::string_view kNotJournaled = "records_not_journaled";

// Replaces the file: one line "[time] [ERROR] counter: N (sentence)" per loss.
Status Write(const Directory& directory, std::span<const Loss> losses);

}  // namespace plumbline::error_log

#endif  // PLUMBLINE_STORE_ERROR_LOG_H_
