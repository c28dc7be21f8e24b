#include "pipeline/device_dump/spared_inputs.h"

#include <fmt/format.h>

#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include "base/file.h"
#include "formats/acl_dump.h"
#include "formats/atb_bin.h"
#include "pipeline/device_dump/output_names.h"

namespace plumbline::pipeline {
namespace {

// A file that is read, where it really lies.
struct Place {
  std::string directory, name;
  const DumpPath* input;
};

// Where `name` may have been put together of the name of a dump and the rest of an output's:
// behind the first of these.
std::vector<size_t> StemEnds(std::string_view name) {
  std::vector<size_t> ends;
  for (const std::string_view word : {".input.", ".output.", ".l1buffer.", ".space."}) {
    for (size_t at = name.find(word); at != std::string_view::npos; at = name.find(word, at + 1)) {
      ends.push_back(at);
    }
  }
  return ends;
}

bool HasEndOf(std::string_view name, OutputKind kind) {
  return name.ends_with(OutputSuffix(kind)) || name.ends_with(".bin") || name.ends_with(".json");
}

// What may be replaced: inputs with names that outputs have.
std::vector<Place> FindPlaces(const std::vector<DumpPath>& files, const ConvertOptions& options) {
  std::vector<Place> places;
  for (const DumpPath& file : files) {
    const Result<PathFacts> facts = Inspect(file.path);
    const auto may_be_output = [&](std::string_view name) {
      return HasEndOf(name, options.kind) && (options.takes_atb || !StemEnds(name).empty());
    };
    if (!facts || (!facts->is_link && !may_be_output(BaseName(file.path)))) continue;
    const Result<std::string> path = RealPath(file.path);
    if (!path || !may_be_output(BaseName(*path))) continue;
    places.push_back({std::string(DirectoryOf(*path)), std::string(BaseName(*path)), &file});
  }
  return places;
}

// The start of the names of a dump's outputs.
std::string StemOf(const DumpPath& file, const ConvertOptions& options) {
  if (options.kind != OutputKind::kMsNpy) return file.name;
  const Result<acl::DumpFile> dump = acl::DumpFile::Open(file.path, file.name);
  return dump ? OutputStem(file.name, dump->message().op_name, options.kind) : file.name;
}

}  // namespace

DumpStatus CheckSparesInputs(const std::vector<DumpPath>& files,
                             const std::string& output_directory, const ConvertOptions& options) {
  const std::vector<Place> places = FindPlaces(files, options);
  if (places.empty()) return {};
  // Directory and start of the names of outputs.
  std::map<std::pair<std::string, std::string>, const DumpPath*> stems;
  std::map<std::string, std::optional<std::string>> directories;
  for (const DumpPath& file : files) {
    const auto [entry, is_new] = directories.try_emplace(file.directory);
    if (is_new) {
      const Result<std::string> path = RealPath(
          file.directory.empty() ? output_directory : JoinPath(output_directory, file.directory));
      if (path) entry->second = *path;
    }
    if (!entry->second) continue;  // nothing can lie there
    stems.try_emplace({*entry->second, StemOf(file, options)}, &file);
    if (options.takes_atb && atb::IsBinFileName(file.name)) {
      stems.try_emplace({*entry->second, file.name + std::string(OutputSuffix(options.kind))},
                        &file);
    }
  }
  for (const Place& place : places) {
    std::vector<size_t> ends = StemEnds(place.name);
    if (options.takes_atb) ends.push_back(place.name.size());
    for (const size_t end : ends) {
      const auto found = stems.find({place.directory, place.name.substr(0, end)});
      if (found == stems.end() || found->second == place.input) continue;
      return DumpFailure{
          DumpCode::kInvalidParameter,
          fmt::format("{}: is one of the inputs, and an output of {} may take its place. Choose "
                      "another output directory",
                      place.input->path, found->second->path)};
    }
  }
  return {};
}

}  // namespace plumbline::pipeline
