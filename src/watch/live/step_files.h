// The files of a monitor: csv as upstream writes it, or event files of TensorBoard.

#ifndef PLUMBLINE_WATCH_LIVE_STEP_FILES_H_
#define PLUMBLINE_WATCH_LIVE_STEP_FILES_H_

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/file/file.h"
#include "watch/live/monitor_config.h"
#include "watch/live/step_rows.h"

namespace plumbline::watch {

// How numbers and columns of the csv files are written.
struct CsvForm {
  std::vector<Op> ops;
  std::optional<int> digits = 6;  // see MonitorConfig
  int64_t steps_per_file = 1;
  bool micro_batch_gradients = false;  // grad_unreduced has a column micro_step
};

// Files "{kind}_{first}-{last}.csv" in `directory`, which are extended by whole steps alone: what a
// killed process leaves is complete but for, at most, the last line. A file of one step appears
// when it is complete. kIo.
std::unique_ptr<StepSink> NewCsvSink(std::string directory, CsvForm form);

// The files of a TrainerMonitorV2, "{part}_step{first}-{last}.csv" in `directory`, likewise. Lines
// end with CRLF, numbers are not rounded; `config` has a second form.
std::unique_ptr<StepSink> NewSecondSink(std::string directory, const MonitorConfig& config,
                                        int64_t rank);
// "{output}/rank_{rank}", or the next free one of "rank_{rank}_2", ... where another run has
// written csv files: `warning` says so. kIo.
Result<std::string> MakeSecondDirectory(const std::string& output, int64_t rank,
                                        std::string* warning);

// One event file in `directory`, for rank `rank`; tags "{TagOf()}_{op}". Histograms of Adam are
// pictures of the last kHeatMapColumns steps (watch/live/heat_map.h), tags
// "{stage}:{name}/rank{R}/adam_update" and "/adam_ratio". kIo, kInternal (no memory for a picture).
Result<std::unique_ptr<StepSink>> NewEventSink(const std::string& directory, std::vector<Op> ops,
                                               int64_t rank);

// Appends a value as in a cell of the csv files.
void AppendCell(double value, std::optional<int> digits, std::string& out);

// What a printed name stands for.
struct FullName {
  std::string kind;     // "module" or "parameter"
  std::string printed;  // "0:fc1.weight", with the stage
  std::string full;
};

// Of MonitorConfig::digits where they are "auto": those of float32.
inline constexpr int kSignificantDigits = 9;
// Beside the csv files: what names stand for, and how numbers are printed.
inline constexpr std::string_view kNamesFile = "names.json";
inline constexpr std::string_view kDigitsMember = "ndigits";
// {kind: {printed: full}, "ndigits": 6 or "auto"}. Adds to a file that is there; one whose numbers
// are printed in two ways says of none. kIo.
Status WriteNames(const std::string& path, const std::vector<FullName>& names,
                  std::optional<int> digits);

// The rows of one kind in the order of their file: groups as they came first, in them by micro
// step.
std::vector<const Row*> InFileOrder(const std::vector<Row>& rows);

// Appends whole lines to a csv file, with the header where it begins. kIo.
Status AppendToTable(const std::string& path, const std::string& header, const std::string& rows);

// A small csv file, at once, unless it is there. kIo.
Status WriteRows(const std::string& path, const std::vector<std::vector<std::string>>& rows);

// Removes the rows of steps from `step` on from all csv files of a directory to which a resumed
// training appends. kIo.
Status TrimSteps(const std::string& directory, int64_t step);

}  // namespace plumbline::watch

#endif  // PLUMBLINE_WATCH_LIVE_STEP_FILES_H_
