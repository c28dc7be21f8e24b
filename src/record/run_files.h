// Names of the files in one rank's directory, as every release writes them. Who writes which:
// store/run_layout.h; where they lie: docs/formats/dump_json.md.

#ifndef PLUMBLINE_RECORD_RUN_FILES_H_
#define PLUMBLINE_RECORD_RUN_FILES_H_

#include <string_view>

namespace plumbline::run_files {

inline constexpr std::string_view kDumpJson = "dump.json";
inline constexpr std::string_view kDebugJson = "debug.json";  // level debug: saved values
inline constexpr std::string_view kStackJson = "stack.json";
inline constexpr std::string_view kConstructJson = "construct.json";
inline constexpr std::string_view kTensorDirectory = "dump_tensor_data";
inline constexpr std::string_view kErrorLog = "dump_error_info.log";
// Of plumbline alone.
inline constexpr std::string_view kJournal = ".dump.journal";
inline constexpr std::string_view kRunMark = ".run";  // one line of JSON: who recorded this

// Of other recorders: MindSpore's static graphs (both) and ATB (the first).
inline constexpr std::string_view kStatisticCsv = "statistic.csv";
inline constexpr std::string_view kMappingCsv = "mapping.csv";
// Of programs that convert device dumps: the files that failed, in a directory or in place.
inline constexpr std::string_view kConvertFailures = "convert_failed_file_list.txt";
inline constexpr std::string_view kConvertTreeFailures = "convert_failed_files_summary.txt";
// Of plumbline beside statistic.csv: held while it is made from tensors.
inline constexpr std::string_view kFinishLock = ".plumb_finish.lock";

// Whether a file in a directory of dumps or arrays is none of these: hidden, or about the others.
constexpr bool IsAboutDumps(std::string_view name) {
  return name.starts_with('.') || name == kMappingCsv || name == kConvertFailures ||
         name == kConvertTreeFailures;
}

}  // namespace plumbline::run_files

#endif  // PLUMBLINE_RECORD_RUN_FILES_H_
