// plumb inspect: what this machine can run, and what a recording or one of its files holds.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>

#include "base/process/log.h"
#include "base/text/number_text.h"
#include "commands.h"
#include "config/options.h"
#include "formats/json/json_feed.h"
#include "graphs/graph_sheets.h"
#include "help_page.h"
#include "inspect/inventory.h"
#include "kernels/cpu_target.h"
#include "terminal.h"
#include "view/describe_vis.h"
#include "vocabulary.h"

namespace plumbline::cli {
namespace {

using json::Document;

constexpr const char* kKindNames[] = {"forward", "backward", "parameter gradients", "other"};

// One line of the human form: two blanks and a text that may hold names from the dump.
void PrintFact(const std::string& text) { Print("  " + OneLine(text) + "\n"); }

Status InspectCpu() {
  PL_TRY_ASSIGN(const kernels::CpuTarget chosen, kernels::ChooseTarget());
  std::string usable;
  for (const kernels::CpuTarget target : kernels::UsableTargets()) {
    if (!usable.empty()) usable += ", ";
    usable += kernels::CpuTargetName(target);
  }
  Print(fmt::format("target: {}\nusable: {}\n", kernels::CpuTargetName(chosen), usable));
  return {};
}

std::string Or(const std::string& text, const char* instead) {
  return text.empty() ? instead : text;
}

void PrintJournal(const JournalFacts& facts) {
  const char* state = facts.sealed ? "sealed" : "not sealed";
  PrintFact(fmt::format("journal: {} records, {} of entries, {}{}{}", facts.records, facts.entries,
                        state, facts.in_use ? ", a process is recording" : "",
                        facts.damaged ? ", damaged" : ""));
  if (facts.bytes_dropped > 0) {
    PrintFact(fmt::format("journal: {} bytes at its end are cut", facts.bytes_dropped));
  }
  for (const Loss& loss : facts.losses) {
    PrintFact(fmt::format("journal: lost {} {} ({})", loss.count, loss.counter, loss.sentence));
  }
}

void PrintLosses(const DumpFacts& facts) {
  const RunLoss& loss = facts.loss;
  if (loss.truncated) {
    PrintFact(fmt::format("truncated at byte {}: {} complete entries before it", loss.byte_offset,
                          facts.entries));
  }
  if (loss.duplicate_names > 0) {
    PrintFact(
        fmt::format("{} entries occur again; the last of each name counts", loss.duplicate_names));
  }
  if (loss.recorder_drops > 0) {
    PrintFact(fmt::format("{} losses counted in dump_error_info.log", loss.recorder_drops));
  }
  if (loss.unfinished) PrintFact("unfinished recording: run plumb recover");
  for (const std::string& error : loss.side_files) PrintFact(error);
  for (const std::string& sentence : loss.unseen) PrintFact(sentence);
  for (const std::string& name : facts.missing_files) PrintFact("no " + name);
}

void PrintTensorFiles(const TensorFilesFacts& files) {
  if (files.files == 0 && files.named == 0) return;
  PrintFact(fmt::format("tensor files: {}, {} bytes", files.files, files.bytes));
  if (files.missing > 0) {
    PrintFact(fmt::format("{} tensor files are named and missing: {}{}", files.missing,
                          fmt::join(files.missing_names, ", "),
                          files.missing > files.missing_names.size() ? ", ..." : ""));
  }
  if (files.stale > 0) {
    PrintFact(fmt::format("{} tensor files are not named by any entry (an earlier run?): {}{}",
                          files.stale, fmt::join(files.stale_names, ", "),
                          files.stale > files.stale_names.size() ? ", ..." : ""));
  }
}

void PrintDump(const DumpFacts& facts) {
  Print(OneLine(facts.path) + "\n");
  PrintFact(fmt::format("task {}, level {}, framework {}, written by {}",
                        Or(facts.header.task, "?"), Or(facts.header.level, "?"),
                        Or(facts.header.framework, "?"), facts.dialect));
  PrintFact(fmt::format(
      "{} entries: {} forward, {} backward, {} parameter gradients, {} other; {} with NaN or Inf",
      facts.entries, facts.kinds[0], facts.kinds[1], facts.kinds[2], facts.kinds[3],
      facts.bad_entries));
  PrintFact(fmt::format("{} tensors, {} with checksum; {} stacks, {} parents", facts.tensors,
                        facts.digests, facts.stacks, facts.parents));
  PrintTensorFiles(facts.tensor_files);
  PrintLosses(facts);
  if (facts.journal) PrintJournal(*facts.journal);
}

void PrintTensor(const TensorFacts& facts) {
  Print(OneLine(facts.path) + "\n");
  PrintFact(
      fmt::format("{} [{}], {} bytes", facts.dtype, fmt::join(facts.shape, ", "), facts.bytes));
  std::string statistics;
  for (const auto& [name, value] : facts.statistics) {
    statistics += fmt::format("{}{} {}", statistics.empty() ? "" : ", ", name, value);
  }
  if (!statistics.empty()) PrintFact(statistics);
  PrintFact(fmt::format("{} NaN, {} Inf, {} zero", facts.nans, facts.infs, facts.zeros));
  if (!facts.values.empty()) PrintFact(fmt::format("first: {}", fmt::join(facts.values, ", ")));
}

std::string ShapeOf(const std::optional<Shape>& shape) {
  return shape ? fmt::format("[{}]", fmt::join(*shape, ", ")) : "[?]";
}

void PrintDeviceDump(const DeviceDumpFacts& facts) {
  Print(OneLine(facts.path) + "\n");
  std::string text = fmt::format("operator {}", Or(facts.op_name, "?"));
  if (!facts.op_type.empty()) text += fmt::format(", type {}", facts.op_type);
  if (!facts.container.empty()) text += fmt::format(", {}", facts.container);
  if (!facts.timestamp.empty()) text += fmt::format(", time stamp {}", facts.timestamp);
  if (!facts.time.empty()) text += fmt::format(" ({})", facts.time);
  PrintFact(text);
  for (const DumpedTensorFacts& tensor : facts.tensors) {
    const std::string before =
        tensor.shape_before ? fmt::format(" of {}", ShapeOf(tensor.shape_before)) : "";
    PrintFact(fmt::format("{}: {} {}{}, {}, {} bytes{}", tensor.place, tensor.dtype,
                          ShapeOf(tensor.shape), before, tensor.format, tensor.bytes,
                          tensor.is_cut ? ", cut" : ""));
  }
  if (facts.buffers + facts.spaces > 0) {
    PrintFact(fmt::format("{}, {}, {} bytes", CountText(facts.buffers, "buffer"),
                          CountText(facts.spaces, "workspace"), facts.other_bytes));
  }
  if (facts.surplus_bytes > 0) {
    PrintFact(fmt::format("{} bytes behind the last part", facts.surplus_bytes));
  }
  if (!facts.problem.empty()) PrintFact("damaged: " + facts.problem);
}

void PrintInventory(const Inventory& inventory) {
  for (const DumpFacts& dump : inventory.dumps) PrintDump(dump);
  for (const TensorFacts& tensor : inventory.tensors) PrintTensor(tensor);
  for (const SideFileFacts& file : inventory.side_files) {
    Print(OneLine(file.path) + "\n");
    PrintFact(file.kind);
    for (const auto& [name, count] : file.counts) PrintFact(fmt::format("{}: {}", name, count));
  }
  for (const JournalFacts& journal : inventory.journals) {
    Print(OneLine(journal.path) + "\n");
    PrintJournal(journal);
  }
  for (const DeviceDumpFacts& dump : inventory.device_dumps) PrintDeviceDump(dump);
}

void AddJournal(const JournalFacts& facts, Document& out) {
  out.Open('{');
  out.Member("path", facts.path);
  out.Number("records", facts.records);
  out.Number("entries", facts.entries);
  out.Number("bytes_dropped", facts.bytes_dropped);
  out.Truth("sealed", facts.sealed);
  out.Truth("damaged", facts.damaged);
  out.Truth("in_use", facts.in_use);
  out.Key("losses");
  out.Open('{');
  for (const Loss& loss : facts.losses) out.Number(loss.counter, loss.count);
  out.Close('}');
  out.Close('}');
}

void AddTensorFiles(const TensorFilesFacts& files, Document& out) {
  out.Key("tensor_files");
  out.Open('{');
  out.Number("files", files.files);
  out.Number("bytes", files.bytes);
  out.Number("named", files.named);
  out.Number("missing", files.missing);
  out.Number("stale", files.stale);
  out.Texts("missing_names", files.missing_names);
  out.Texts("stale_names", files.stale_names);
  out.Close('}');
}

void AddDump(const DumpFacts& facts, Document& out) {
  out.Open('{');
  out.Member("path", facts.path);
  out.Member("task", facts.header.task);
  out.Member("level", facts.header.level);
  out.Member("framework", facts.header.framework);
  out.Member("dialect", facts.dialect);
  out.Number("entries", facts.entries);
  out.Key("kinds");
  out.Open('{');
  for (size_t i = 0; i < facts.kinds.size(); ++i) out.Number(kKindNames[i], facts.kinds[i]);
  out.Close('}');
  out.Number("bad_entries", facts.bad_entries);
  out.Number("tensors", facts.tensors);
  out.Number("checksums", facts.digests);
  out.Number("stacks", facts.stacks);
  out.Number("parents", facts.parents);
  out.Texts("missing_files", facts.missing_files);
  AddTensorFiles(facts.tensor_files, out);
  out.Truth("truncated", facts.loss.truncated);
  out.Number("byte_offset", facts.loss.byte_offset);
  out.Number("duplicate_names", facts.loss.duplicate_names);
  out.Number("recorder_losses", facts.loss.recorder_drops);
  out.Truth("unfinished", facts.loss.unfinished);
  out.Texts("damaged_files", facts.loss.side_files);
  out.Texts("unseen", facts.loss.unseen);
  out.Key("journal");
  if (facts.journal) {
    AddJournal(*facts.journal, out);
  } else {
    out.Raw("null");
  }
  out.Close('}');
}

void AddTensor(const TensorFacts& facts, Document& out) {
  out.Open('{');
  out.Member("path", facts.path);
  out.Member("dtype", facts.dtype);
  out.Key("shape");
  out.Raw(fmt::format("[{}]", fmt::join(facts.shape, ",")));
  out.Number("bytes", facts.bytes);
  for (const auto& [name, value] : facts.statistics) out.Member(name, value);
  out.Number("nan_count", facts.nans);
  out.Number("inf_count", facts.infs);
  out.Number("zero_count", facts.zeros);
  out.Texts("values", facts.values);
  out.Close('}');
}

void AddSideFile(const SideFileFacts& facts, Document& out) {
  out.Open('{');
  out.Member("path", facts.path);
  out.Member("kind", facts.kind);
  for (const auto& [name, count] : facts.counts) out.Number(name, count);
  out.Close('}');
}

void AddShape(const char* key, const std::optional<Shape>& shape, Document& out) {
  out.Key(key);
  out.Raw(shape ? fmt::format("[{}]", fmt::join(*shape, ",")) : "null");
}

void AddDeviceDump(const DeviceDumpFacts& facts, Document& out) {
  out.Open('{');
  out.Member("path", facts.path);
  out.Member("op_name", facts.op_name);
  out.Member("op_type", facts.op_type);
  out.Member("container", facts.container);
  out.Member("timestamp", facts.timestamp);
  out.Member("time", facts.time);
  out.Key("tensors");
  out.Open('[');
  for (const DumpedTensorFacts& tensor : facts.tensors) {
    out.Open('{');
    out.Member("place", tensor.place);
    out.Member("dtype", tensor.dtype);
    AddShape("shape", tensor.shape, out);
    AddShape("original_shape", tensor.shape_before ? tensor.shape_before : tensor.shape, out);
    out.Member("format", tensor.format);
    out.Number("bytes", tensor.bytes);
    out.Truth("cut", tensor.is_cut);
    out.Close('}');
  }
  out.Close(']');
  out.Number("buffers", facts.buffers);
  out.Number("workspaces", facts.spaces);
  out.Number("surplus_bytes", facts.surplus_bytes);
  out.Member("problem", facts.problem);
  out.Close('}');
}

template <class T>
void AddList(const char* key, const std::vector<T>& items, void (*add)(const T&, Document&),
             Document& out) {
  out.Key(key);
  out.Open('[');
  for (const T& item : items) add(item, out);
  out.Close(']');
}

Status PrintJson(const Inventory& inventory) {
  Document out;
  out.Open('{');
  AddList("dumps", inventory.dumps, AddDump, out);
  AddList("tensors", inventory.tensors, AddTensor, out);
  AddList("side_files", inventory.side_files, AddSideFile, out);
  AddList("journals", inventory.journals, AddJournal, out);
  AddList("device_dumps", inventory.device_dumps, AddDeviceDump, out);
  out.Close('}');
  PL_TRY_ASSIGN(const std::string text, out.Finish());
  Print(text + "\n");
  return {};
}

// A truncated dump, or a damaged one, is shown, and then an error, unless the user knows.
Status CheckComplete(const Inventory& inventory, bool salvage) {
  for (const DumpFacts& dump : inventory.dumps) {
    if (salvage || !dump.loss.truncated) continue;
    return Error(ErrorCode::kCorrupt,
                 fmt::format("{}: cut or damaged at byte {}, {} complete entries before it. Say "
                             "--salvage to accept that.",
                             dump.path, dump.loss.byte_offset, dump.entries));
  }
  uint64_t damaged = 0;
  const DeviceDumpFacts* last = nullptr;
  for (const DeviceDumpFacts& dump : inventory.device_dumps) {
    if (dump.problem.empty()) continue;
    ++damaged;
    last = &dump;
  }
  if (salvage || damaged == 0) return {};
  if (damaged == 1) {
    return Error(ErrorCode::kCorrupt,
                 fmt::format("{}: {}. Say --salvage to accept that.", last->path, last->problem));
  }
  return Error(ErrorCode::kCorrupt,
               fmt::format("{} of {} cannot be read completely. Say --salvage to accept that.",
                           damaged, CountText(inventory.device_dumps.size(), "device dump")));
}

Status InspectVis(const std::string& path, bool machine) {
  PL_TRY_ASSIGN(const std::string text,
                machine ? view::DescribeVisAsJson(path) : view::DescribeVis(path));
  Print(machine ? text + "\n" : text);
  return {};
}

Status InspectPath(const std::string& path, bool salvage, bool machine) {
  if (view::IsVisName(path)) return InspectVis(path, machine);
  PL_TRY_ASSIGN(const Inventory inventory, TakeInventory(path));
  if (machine) {
    PL_TRY(PrintJson(inventory));
  } else {
    PrintInventory(inventory);
  }
  return CheckComplete(inventory, salvage);
}

Status InspectIndex(const std::string& path, const std::string& file) {
  PL_TRY_ASSIGN(const graphs::WrittenIndex written, graphs::WriteGraphIndex(path, file));
  Print(OneLine(fmt::format("{}: {}", path, CountText(written.rows, "tensor"))) + "\n");
  if (written.unreadable > 0) PrintFact(fmt::format("unreadable: {}", written.unreadable));
  if (written.left_out > 0) PrintFact(fmt::format("other files left out: {}", written.left_out));
  Print(OneLine("file: " + file) + "\n");
  return {};
}

// `level`, or `tensor.list` in a section.
std::string FullName(std::string_view section, std::string_view name) {
  return section.empty() ? std::string(name) : fmt::format("{}.{}", section, name);
}

void PrintOptions() {
  for (const settings::Option& option : settings::Options()) {
    std::string names;
    for (const std::string_view section : settings::NamesOf(option.sections)) {
      names += (names.empty() ? "" : ", ") + FullName(section, option.name);
    }
    Print(fmt::format("{}\n", names));
    PrintFact(fmt::format("{}, default {}", option.type, option.default_value));
    PrintFact(std::string(option.meaning));
  }
}

Status PrintOptionsAsJson() {
  Document out;
  out.Open('{');
  out.Key("options");
  out.Open('[');
  for (const settings::Option& option : settings::Options()) {
    const std::vector<std::string_view> sections = settings::NamesOf(option.sections);
    out.Open('{');
    out.Member("name", option.name);
    out.Texts("sections", {sections.begin(), sections.end()});
    out.Member("type", option.type);
    out.Member("default", option.default_value);
    out.Member("meaning", option.meaning);
    out.Close('}');
  }
  out.Close(']');
  out.Close('}');
  PL_TRY_ASSIGN(const std::string text, out.Finish());
  Print(text + "\n");
  return {};
}

Status InspectConfig(bool machine) {
  if (machine) return PrintOptionsAsJson();
  PrintOptions();
  return {};
}

}  // namespace

void AddInspectCommand(CLI::App& app, int& exit_status) {
  struct Arguments {
    std::string what, index;
    bool salvage = false;
    bool machine = false;
  };
  const auto arguments = std::make_shared<Arguments>();
  CLI::App* command = app.add_subcommand("inspect", "Show what this machine or a recording holds.");
  command
      ->add_option(
          "what", arguments->what,
          "`cpu`, `config`, a dump, step or rank directory, or a file of one; dumps of a device; "
          ".vis and .vis.db")
      ->required();
  command->add_flag("--salvage,--allow-partial", arguments->salvage,
                    "a truncated dump.json is no error");
  AddJson(*command, arguments->machine, "the facts");
  command->add_option("--index", arguments->index,
                      "write the tensors of a static-graph dump as CSV");
  command->footer(FooterText(
      "", {"plumb inspect cpu", "plumb inspect config", "plumb inspect runs/new",
           "plumb inspect runs/new/step0/rank/dump_tensor_data/Torch.add.0.forward.output.0.pt"}));
  command->callback([arguments, &exit_status] {
    SetLogStream(LogStream::kStderr);
    const Status status =
        !arguments->index.empty()  ? InspectIndex(arguments->what, arguments->index)
        : arguments->what == "cpu" ? InspectCpu()
        : arguments->what == "config"
            ? InspectConfig(arguments->machine)
            : InspectPath(arguments->what, arguments->salvage, arguments->machine);
    exit_status = status ? 0 : ReportError("inspect", status.error());
  });
}

}  // namespace plumbline::cli
