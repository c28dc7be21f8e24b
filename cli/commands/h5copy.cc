// plumb h5copy: single operators of a dump into a small file, as the tool h5copy does it.

#include <fmt/format.h>

#include <CLI/App.hpp>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "base/file/file.h"
#include "base/text/text_parts.h"
#include "commands.h"
#include "commands/value_checks.h"
#include "formats/hdf5/hdf5_dump.h"
#include "hdf5_functions.h"
#include "help_page.h"
#include "terminal.h"
#include "vocabulary.h"

namespace plumbline::cli {
namespace {

struct H5copyArguments {
  std::string input, output, source, destination, list;
  bool makes_parents = false, is_verbose = false;
};

// One object a line; blank lines and comments behind "#" do not count.
Result<std::vector<hdf5::ObjectCopy>> ReadList(const std::string& path) {
  PL_TRY_ASSIGN(const std::string text, ReadFile(path));
  std::vector<hdf5::ObjectCopy> copies;
  for (const std::string_view line : SplitAt(text, '\n')) {
    std::string_view object = line.substr(0, line.find('#'));
    object = object.substr(0, object.find_last_not_of(" \t\r") + 1);
    object.remove_prefix(std::min(object.find_first_not_of(" \t"), object.size()));
    if (!object.empty()) copies.push_back({std::string(object), std::string(object), true});
  }
  if (!copies.empty()) return copies;
  return Error(
      ErrorCode::kInvalidArgument,
      fmt::format("{}: names no object (expected one a line, such as /add_Tensor/7)", path));
}

Status RunCopy(const H5copyArguments& arguments) {
  const bool has_object = !arguments.source.empty() && !arguments.destination.empty();
  if (has_object == !arguments.list.empty()) {
    return Error(ErrorCode::kInvalidArgument, "expected -s and -d, or --list");
  }
  std::vector<hdf5::ObjectCopy> copies;
  if (has_object) {
    copies = {{arguments.source, arguments.destination, arguments.makes_parents}};
  } else {
    PL_TRY_ASSIGN(copies, ReadList(arguments.list));
  }
  PL_TRY_ASSIGN(const Hdf5Functions* hdf5, LoadHdf5Functions());
  PL_TRY(hdf5->copy_objects(arguments.input, arguments.output, copies));
  for (const hdf5::ObjectCopy& copy : copies) {
    if (!arguments.is_verbose) break;
    Print(fmt::format("Copying file <{}> and object <{}> to file <{}> and object <{}>\n",
                      arguments.input, copy.source, arguments.output, copy.destination));
  }
  return {};
}

}  // namespace

void AddH5copyCommand(CLI::App& app, int& exit_status) {
  CLI::App* command = app.add_subcommand(
      "h5copy", "Copy operators of an HDF5 dump into another file, to replay them alone.");
  const auto arguments = std::make_shared<H5copyArguments>();
  command->add_option("-i,--input", arguments->input, "the dump")->required();
  AddOutput(*command, arguments->output, "made when missing; else added to")->required();
  command->add_option("-s,--source", arguments->source, "object, such as /add_Tensor/7/");
  command->add_option("-d,--destination", arguments->destination,
                      "the same object, which a replay looks for by its name");
  command->add_option("--list", arguments->list, "file with one object a line, in place of -s, -d");
  command->add_flag("-p,--parents", arguments->makes_parents, "make missing groups above it");
  command->add_flag("-v,--verbose", arguments->is_verbose, "print what was copied");
  command->footer(
      FooterText("", {"plumb h5copy -i dump.h5 -o one.h5 -s /add_Tensor/7 -d /add_Tensor/7 -p",
                      "plumb h5copy -i dump.h5 -o some.h5 --list operators.txt"}));
  command->callback([arguments, command, &exit_status] {
    if (const std::string empty = EmptyOption(*command); !empty.empty()) {
      exit_status = ReportError("h5copy", Error(ErrorCode::kInvalidArgument, empty));
      return;
    }
    const Result<int> status = RunOnHdf5(arguments->input, [&] {
      const Status copied = RunCopy(*arguments);
      return copied ? 0 : ReportError("h5copy", copied.error());
    });
    exit_status = status ? *status : ReportError("h5copy", status.error());
  });
}

}  // namespace plumbline::cli
