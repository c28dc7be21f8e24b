#include "watch/live/step_files.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <chrono>
#include <cmath>
#include <map>
#include <mutex>
#include <span>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "base/text/csv.h"
#include "base/text/json.h"
#include "base/text/number_text.h"
#include "formats/table/event_file.h"
#include "watch/live/heat_map.h"

namespace plumbline::watch {
namespace {

double SecondsSince1970() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

bool HasMicroStep(MonitorKind kind, const CsvForm& form) {
  return InfoOf(kind).has_micro_step ||
         (kind == MonitorKind::kUnreducedGradient && form.micro_batch_gradients);
}

// Held while somebody of this process looks for a file and makes it.
std::mutex& FilesInUse() {
  static std::mutex files;
  return files;
}

std::string ShapeText(const Shape& shape) {
  return fmt::format("\"[{}]\"", fmt::join(shape, ", "));
}

void AppendOp(Op op, const Row& row, const CsvForm& form, std::string& out) {
  const TensorValues& values = row.values;
  if (op == Op::kShape) {
    out += values.dtype ? ShapeText(values.shape) : "nan";
  } else if (op == Op::kDType) {
    out += values.dtype ? InfoOf(*values.dtype).torch_name : "nan";
  } else {
    AppendCell(values.of(op), form.digits, out);
  }
}

// One csv file after the other, each extended by whole steps.
class BlockFiles {
 public:
  // `block`: the number of the file at `path`, ascending. A new file appears with its first step.
  Status Append(const std::string& path, int64_t block, const std::string& header,
                const std::string& rows) {
    // A second optimizer with a monitor of its own adds to the file of the step.
    const std::scoped_lock lock(FilesInUse());
    bytes_ += rows.size();
    if (block_ != block && KindOf(path) == PathKind::kMissing) {
      return WriteFileAtomically(path, header + rows, /*durable=*/false);
    }
    uint64_t size = 1;
    if (block_ != block) {
      PL_TRY(Close());
      PL_TRY_ASSIGN(file_, File::OpenAppend(path));
      block_ = block;
      PL_TRY_ASSIGN(size, FileSize(path));
    }
    return file_.Write(size == 0 ? header + rows : rows);
  }

  Status Close() { return file_.is_open() ? file_.Close() : Status(); }
  [[nodiscard]] uint64_t bytes() const { return bytes_; }

 private:
  File file_;
  int64_t block_ = -1;
  uint64_t bytes_ = 0;
};

// Of the files of one sink.
Status CloseAll(std::span<BlockFiles> files) {
  for (BlockFiles& one : files) PL_TRY(one.Close());
  return {};
}
uint64_t BytesOf(std::span<const BlockFiles> files) {
  uint64_t bytes = 0;
  for (const BlockFiles& one : files) bytes += one.bytes();
  return bytes;
}

class CsvSink : public StepSink {
 public:
  CsvSink(std::string directory, CsvForm form)
      : directory_(std::move(directory)), form_(std::move(form)) {}

  Status Write(const StepRows& rows) override {
    for (const MonitorKindInfo& info : kMonitorKinds) {
      if (!rows.of(info.kind).empty()) PL_TRY(WriteKind(info.kind, rows));
    }
    return {};
  }
  [[nodiscard]] uint64_t bytes() const override { return BytesOf(files_); }
  Status Close() override { return CloseAll(files_); }

 private:
  Status WriteKind(MonitorKind kind, const StepRows& rows) {
    const int64_t block = rows.step / form_.steps_per_file;
    const int64_t first = block * form_.steps_per_file;
    const std::string path = JoinPath(
        directory_,
        fmt::format("{}_{}-{}.csv", InfoOf(kind).file, first, first + form_.steps_per_file - 1));
    return files_[static_cast<size_t>(kind)].Append(path, block, Header(kind), RowsOf(kind, rows));
  }

  [[nodiscard]] std::span<const Op> OpsOf(MonitorKind kind) const {
    const std::span<const Op> own = FeatureOps(kind);
    return own.empty() ? std::span(form_.ops) : own;
  }

  [[nodiscard]] std::string Header(MonitorKind kind) const {
    std::string header =
        HasMicroStep(kind, form_) ? "vpp_stage,name,step,micro_step" : "vpp_stage,name,step";
    for (const Op op : OpsOf(kind)) header += fmt::format(",{}", NameOf(op));
    return header + "\n";
  }

  [[nodiscard]] std::string RowsOf(MonitorKind kind, const StepRows& rows) const {
    std::string text;
    const bool has_micro_step = HasMicroStep(kind, form_);
    for (const Row* row : InFileOrder(rows.of(kind))) {
      fmt::format_to(std::back_inserter(text), "{},", row->name->vpp_stage);
      csv::AppendExactly(row->name->text, text);
      fmt::format_to(std::back_inserter(text), ",{}", rows.step);
      if (has_micro_step) fmt::format_to(std::back_inserter(text), ",{}", row->micro_step);
      for (const Op op : OpsOf(kind)) {
        text += ',';
        AppendOp(op, *row, form_, text);
      }
      text += '\n';
    }
    return text;
  }

  std::string directory_;
  CsvForm form_;
  std::array<BlockFiles, kMonitorKindCount> files_;
};

class SecondSink : public StepSink {
 public:
  SecondSink(std::string directory, const MonitorConfig& config, int64_t rank)
      : directory_(std::move(directory)),
        form_(*config.second),
        start_step_(config.start_step),
        steps_per_file_(config.steps_per_file),
        takes_every_gradient_(config.micro_batch_gradients),
        rank_(rank) {}

  Status Write(const StepRows& rows) override {
    for (size_t i = 0; i < kMonitorPartNames.size(); ++i) {
      const auto part = static_cast<MonitorPart>(i);
      std::string text;
      for (const MonitorKindInfo& info : kMonitorKinds) {
        if (info.part == part && !info.scope.empty()) AppendRows(info, rows, text);
      }
      if (!text.empty()) PL_TRY(WritePart(part, rows.step, text));
    }
    return {};
  }

  [[nodiscard]] uint64_t bytes() const override { return BytesOf(files_); }
  Status Close() override { return CloseAll(files_); }

 private:
  Status WritePart(MonitorPart part, int64_t step, const std::string& text) {
    const int64_t block = (step - start_step_) / steps_per_file_;
    const int64_t first = start_step_ + block * steps_per_file_;
    const auto index = static_cast<size_t>(part);
    const std::string path =
        JoinPath(directory_, fmt::format("{}_step{}-{}.csv", kMonitorPartNames[index], first,
                                         first + steps_per_file_ - 1));
    std::string header = "vpp_stage,step,module_name,scope";
    if (HasMicroStepOf(part)) header += ",micro_step";
    for (const Op op : form_.ops[index]) header += fmt::format(",{}", NameOf(op));
    return files_[index].Append(path, block, header + "\r\n", text);
  }

  // Of modules only where rows of several micro-batches could not be told apart.
  [[nodiscard]] bool HasMicroStepOf(MonitorPart part) const {
    return part == MonitorPart::kWeightGradient ||
           (part == MonitorPart::kModule && form_.micro_batches > 1);
  }

  // From 1 on; gradients that were added up have the last one.
  [[nodiscard]] int64_t MicroStepOf(const MonitorKindInfo& info, const Row& row) const {
    const bool is_of_one = info.part == MonitorPart::kModule ||
                           (info.kind == MonitorKind::kUnreducedGradient && takes_every_gradient_);
    return is_of_one ? row.micro_step + 1 : std::max<int64_t>(form_.micro_batches, 1);
  }

  [[nodiscard]] std::string NameIn(const MonitorKindInfo& info, const Row& row) const {
    if (info.kind == MonitorKind::kOther) return TagOf(info.kind, row, rank_);
    std::string name = row.name->vpp_stage < 0 ? "" : fmt::format("{}:", row.name->vpp_stage);
    name += row.name->text;
    if (info.part == MonitorPart::kOptimizer) name += fmt::format(".{}", info.scope);
    return name;
  }

  void AppendRows(const MonitorKindInfo& info, const StepRows& rows, std::string& text) const {
    for (const Row* row : InFileOrder(rows.of(info.kind))) {
      if (info.kind != MonitorKind::kOther) text += std::to_string(row->name->vpp_stage);
      fmt::format_to(std::back_inserter(text), ",{},", rows.step);
      csv::AppendExactly(NameIn(info, *row), text);
      fmt::format_to(std::back_inserter(text), ",{}", info.scope);
      if (HasMicroStepOf(info.part)) {
        fmt::format_to(std::back_inserter(text), ",{}", MicroStepOf(info, *row));
      }
      for (const Op op : form_.ops[static_cast<size_t>(info.part)]) {
        text += ',';
        AppendPythonFloat(row->values.of(op), text);
      }
      text += "\r\n";
    }
  }

  std::string directory_;
  SecondForm form_;
  int64_t start_step_, steps_per_file_;
  bool takes_every_gradient_;
  int64_t rank_;
  std::array<BlockFiles, kMonitorPartNames.size()> files_;
};

class EventSink : public StepSink {
 public:
  EventSink(event_file::LiveWriter writer, std::vector<Op> ops, int64_t rank)
      : writer_(std::move(writer)), ops_(std::move(ops)), rank_(rank) {}

  Status Write(const StepRows& rows) override {
    for (const MonitorKindInfo& info : kMonitorKinds) {
      for (const Row& row : rows.of(info.kind)) {
        const std::string tag = TagOf(info.kind, row, rank_);
        const std::span<const Op> own = FeatureOps(info.kind);
        for (const Op op : own.empty() ? std::span<const Op>(ops_) : own) {
          if (static_cast<size_t>(op) >= kNumberOps) continue;
          writer_.AddScalar(fmt::format("{}_{}", tag, NameOf(op)),
                            static_cast<float>(row.values.of(op)));
        }
      }
    }
    for (const AdamRow& row : rows.adam) {
      const std::string tag =
          fmt::format("{}:{}/rank{}/adam", row.name->vpp_stage, row.name->text, rank_);
      PL_TRY(AddPicture(tag + "_update", rows.step, row.histograms.update));
      PL_TRY(AddPicture(tag + "_ratio", rows.step, row.histograms.ratio));
    }
    return writer_.EndStep(rows.step, SecondsSince1970());
  }
  Status Close() override { return writer_.Close(); }
  [[nodiscard]] uint64_t bytes() const override { return writer_.bytes(); }

 private:
  Status AddPicture(const std::string& tag, int64_t step, const Histogram& counts) {
    std::vector<HeatColumn>& columns = heat_maps_[tag];
    if (columns.size() == kHeatMapColumns) columns.erase(columns.begin());
    columns.push_back({step, counts});
    PL_TRY_ASSIGN(const std::string png, HeatMapOf(columns));
    writer_.AddImage(tag, png, kHeatMapWidth, kHeatMapHeight);
    return {};
  }

  event_file::LiveWriter writer_;
  std::vector<Op> ops_;
  int64_t rank_;
  std::unordered_map<std::string, std::vector<HeatColumn>> heat_maps_;  // by tag
};

// The text of a csv file without the rows of steps from `step` on. The third cell is the step.
std::string Trimmed(std::string_view text, int64_t step) {
  std::string kept;
  bool is_header = true;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    if (end == std::string_view::npos) break;  // a torn line
    const std::string_view line = text.substr(0, end + 1);
    text.remove_prefix(end + 1);
    const auto parsed = csv::Parse(line);
    int64_t number = -1;
    if (parsed && !parsed->empty() && parsed->front().size() > 2) {
      const std::string& cell = parsed->front()[2];
      std::from_chars(cell.data(), cell.data() + cell.size(), number);
    }
    if (is_header || number < step) kept += line;
    is_header = false;
  }
  return kept;
}

}  // namespace

std::string TagOf(MonitorKind kind, const Row& row, int64_t rank) {
  const MonitorKindInfo& info = InfoOf(kind);
  if (kind == MonitorKind::kOther) {
    const size_t point = row.name->text.rfind('.');
    if (point == std::string::npos) return fmt::format("{}/rank{}", row.name->text, rank);
    return fmt::format("{}/rank{}/{}", row.name->text.substr(0, point), rank,
                       row.name->text.substr(point + 1));
  }
  if (info.has_micro_step) {
    return fmt::format("{}:{}:{}/rank{}/{}", row.name->vpp_stage, row.name->text, row.micro_step,
                       rank, info.tag);
  }
  return fmt::format("{}:{}/rank{}/{}", row.name->vpp_stage, row.name->text, rank, info.tag);
}

std::vector<const Row*> InFileOrder(const std::vector<Row>& rows) {
  std::unordered_map<uint32_t, size_t> first;
  std::vector<const Row*> ordered;
  for (const Row& row : rows) {
    first.emplace(row.name->group, first.size());
    ordered.push_back(&row);
  }
  std::ranges::stable_sort(ordered, {}, [&](const Row* row) {
    return std::pair(first.at(row->name->group), row->micro_step);
  });
  return ordered;
}

std::unique_ptr<StepSink> NewCsvSink(std::string directory, CsvForm form) {
  return std::make_unique<CsvSink>(std::move(directory), std::move(form));
}

std::unique_ptr<StepSink> NewSecondSink(std::string directory, const MonitorConfig& config,
                                        int64_t rank) {
  return std::make_unique<SecondSink>(std::move(directory), config, rank);
}

Result<std::string> MakeSecondDirectory(const std::string& output, int64_t rank,
                                        std::string* warning) {
  const std::string wanted = JoinPath(output, fmt::format("rank_{}", rank));
  std::string path = wanted;
  for (int number = 2;; ++number) {
    PL_TRY(MakeDirectories(path));
    PL_TRY_ASSIGN(const std::vector<std::string> names, ListDirectory(path));
    if (std::ranges::none_of(names, [](const auto& name) { return name.ends_with(".csv"); })) break;
    path = fmt::format("{}_{}", wanted, number);
  }
  if (path != wanted) {
    *warning =
        fmt::format("{} holds the files of another run; this one writes to {}", wanted, path);
  }
  return path;
}

Result<std::unique_ptr<StepSink>> NewEventSink(const std::string& directory, std::vector<Op> ops,
                                               int64_t rank) {
  const double now = SecondsSince1970();
  char host[256] = "localhost";
  (void)::gethostname(host, sizeof(host) - 1);
  static std::atomic<int> files = 0;
  const std::string name = fmt::format("{}{}.{}.{}.{}", event_file::kNameStart,
                                       static_cast<int64_t>(now), host, ::getpid(), files++);
  auto writer = event_file::LiveWriter::Create(JoinPath(directory, name), now);
  if (!writer) return writer.error();
  return std::unique_ptr<StepSink>(
      std::make_unique<EventSink>(std::move(*writer), std::move(ops), rank));
}

namespace {

constexpr int kExactDigits = 15;  // any such decimal number is the shortest text of its double

// `count` / 10^digits as Python writes it. Requires: count < 10^15.
void AppendDecimal(uint64_t count, int digits, std::string& out) {
  if (count == 0) {
    out += "0.0";
    return;
  }
  int places = digits;  // of those behind the point, without zeros at the end
  for (; places > 0 && count % 10 == 0; --places) count /= 10;
  char text[24];
  const std::string_view number(
      text, static_cast<size_t>(std::to_chars(text, text + sizeof(text), count).ptr - text));
  const int length = static_cast<int>(number.size());
  constexpr int kSmallest = -4;  // exponent of the numbers without one in their text
  if (length - 1 - places < kSmallest) {
    out += number[0];
    if (length > 1) out.append(1, '.').append(number.substr(1));
    fmt::format_to(std::back_inserter(out), "e-{:02}", places - length + 1);
  } else if (places == 0) {
    out.append(number).append(".0");
  } else if (length > places) {
    const auto whole = static_cast<size_t>(length - places);
    out.append(number.substr(0, whole)).append(1, '.').append(number.substr(whole));
  } else {
    out.append("0.").append(static_cast<size_t>(places - length), '0').append(number);
  }
}

// AppendCell() of most numbers, ten times as fast. False: it says nothing of this one.
bool AppendQuickly(double value, int digits, std::string& out) {
  if (digits > kExactDigits) return false;
  static const std::array<double, kExactDigits + 1> powers = [] {
    std::array<double, kExactDigits + 1> all{1};
    for (size_t i = 1; i < all.size(); ++i) all[i] = all[i - 1] * 10;
    return all;
  }();
  const double scaled = std::abs(value) * powers[static_cast<size_t>(digits)];
  if (!(scaled < 1e15 - 1)) return false;
  const double below = std::floor(scaled);
  const double rest = scaled - below;
  // Which side of the half the number itself is on, the product does not tell.
  if (std::abs(rest - 0.5) <= scaled * 0x1p-52) return false;
  if (std::signbit(value)) out += '-';
  AppendDecimal(static_cast<uint64_t>(below) + (rest > 0.5 ? 1 : 0), digits, out);
  return true;
}

}  // namespace

void AppendCell(double value, std::optional<int> digits, std::string& out) {
  if (!std::isfinite(value)) {
    out += std::isnan(value) ? "nan" : value > 0 ? "inf" : "-inf";
    return;
  }
  if (digits && AppendQuickly(value, *digits, out)) return;
  double rounded = value;
  // Above, no double has decimals.
  if (digits && std::abs(value) < 0x1p53) {
    const std::string text = fmt::format("{:.{}f}", value, *digits);
    std::from_chars(text.data(), text.data() + text.size(), rounded);
  }
  if (!digits) {
    const std::string text = fmt::format("{:.{}g}", value, kSignificantDigits);
    std::from_chars(text.data(), text.data() + text.size(), rounded);
  }
  AppendPythonFloat(rounded, out);
}

Status WriteNames(const std::string& path, const std::vector<FullName>& names,
                  std::optional<int> digits) {
  json::Value document = json::Value::Object();
  if (auto text = ReadFile(path)) {
    auto known = json::Value::Parse(*text);
    if (known && known->is_object()) document = std::move(*known);
  }
  std::map<std::string, json::Value, std::less<>> kinds;
  for (const FullName& name : names) {
    const json::Value* known = document.Find(name.kind);
    const bool is_known = known != nullptr && known->is_object();
    auto [kind, is_new] = kinds.try_emplace(name.kind, is_known ? *known : json::Value::Object());
    kind->second.Put(name.printed, json::Value(std::string_view(name.full)));
  }
  for (auto& [kind, members] : kinds) document.Put(kind, std::move(members));
  const json::Value form = digits ? json::Value(int64_t{*digits}) : json::Value("auto");
  const json::Value* known = document.Find(kDigitsMember);
  const bool is_mixed = known != nullptr && known->Text() != form.Text();
  document.Put(kDigitsMember, is_mixed ? json::Value() : form);
  return WriteFileAtomically(path, document.Text(1), /*durable=*/false);
}

Status WriteRows(const std::string& path, const std::vector<std::vector<std::string>>& rows) {
  if (KindOf(path) != PathKind::kMissing) return {};
  std::string text;
  for (const std::vector<std::string>& row : rows) csv::AppendRow(row, text);
  return WriteFileAtomically(path, text, /*durable=*/false);
}

Status AppendToTable(const std::string& path, const std::string& header, const std::string& rows) {
  const std::scoped_lock lock(FilesInUse());
  PL_TRY_ASSIGN(File file, File::OpenAppend(path));
  PL_TRY_ASSIGN(const uint64_t size, FileSize(path));
  PL_TRY(file.Write(size == 0 ? header + rows : rows));
  return file.Close();
}

Status TrimSteps(const std::string& directory, int64_t step) {
  PL_TRY_ASSIGN(const std::vector<std::string> names, ListDirectory(directory));
  for (const std::string& name : names) {
    if (!name.ends_with(".csv") || name == "stack_info.csv") continue;
    const std::string path = JoinPath(directory, name);
    PL_TRY_ASSIGN(const std::string text, ReadFile(path));
    const std::string kept = Trimmed(text, step);
    if (kept.size() != text.size()) PL_TRY(WriteFileAtomically(path, kept, /*durable=*/false));
  }
  return {};
}

}  // namespace plumbline::watch
