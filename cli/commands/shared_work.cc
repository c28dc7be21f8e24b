#include "commands/shared_work.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <utility>

#include "base/file/file.h"
#include "python_program.h"
#include "terminal.h"

namespace plumbline::cli {

void AddShareOptions(CLI::App& command, ShareArguments& share, const std::string& when,
                     const std::string& tasks) {
  command
      .add_option("--shard", share.shard, when + ": only part I (from 0) of N, for `plumb merge`")
      ->type_name("I/N")
      ->check(CLI::Validator(
          [](const std::string& text) {
            const auto place = ParseShardPlace(text);
            return place ? std::string() : place.error().message();
          },
          ""));
  const CLI::Validator ray = CLI::IsMember({"ray"});
  command.add_option("--engine", share.engine, when + ": " + tasks)->check(ray);
  command
      .add_option("--address", share.address,
                  "with --engine: of a running cluster (default: RAY_ADDRESS, else one of this "
                  "machine alone)")
      ->type_name("HOST:PORT");
}

Status CheckShare(const ShareArguments& share) {
  if (share.engine.empty() && !share.address.empty()) {
    return Error(ErrorCode::kInvalidArgument, "--address: belongs to --engine");
  }
  if (share.engine.empty() || share.shard.empty()) return {};
  return Error(ErrorCode::kInvalidArgument,
               "--shard: not with --engine, which makes parts of its own");
}

Error RunOnCluster(const SharedWork& work, const ShareArguments& share) {
  const auto self = OwnProgram();
  if (!self) return self.error();
  std::vector<std::string> call = {work.command, "--program", *self, "--stem", work.stem};
  if (!share.address.empty()) call.insert(call.end(), {"--address", share.address});
  if (work.threads > 0) call.insert(call.end(), {"--threads", std::to_string(work.threads)});
  call.insert(call.end(), work.options.begin(), work.options.end());
  call.emplace_back("--");
  call.insert(call.end(), work.words.begin(), work.words.end());
  return BecomePython(
      "",
      {"plumbline.cluster",
       fmt::format("plumb {}: --engine ray needs plumbline and Ray in {{0}} ({{1}}). "
                   "Install them with: pip install 'plumbline-numerics[cluster]'",
                   work.command),
       ExitStatus(ErrorCode::kUnsupported)},
      call);
}

Status LeaveShard(const SharedWork& work, const ShareArguments& share, ShardPart part,
                  std::string_view what) {
  PL_TRY_ASSIGN(const ShardPlace place, ParseShardPlace(share.shard));
  PL_TRY_ASSIGN(const std::string directory, RealPath("."));
  const Shard shard{work.command, place, work.words, directory, std::move(part)};
  const std::string path = ShardPath(work.stem, place);
  PL_TRY(WriteShard(path, shard));
  Print(fmt::format("shard {} of {}: {} of {} {}\nfile: {}\n", place.index, place.count,
                    shard.part.items.size(), shard.part.all, what, path));
  return {};
}

Status ParseShardWords(CLI::App& command, const std::vector<std::string>& words,
                       const std::string& directory, const std::string& path) {
  PL_TRY_ASSIGN(const std::string here, RealPath("."));
  if (here != directory) {
    return Error(ErrorCode::kInvalidArgument,
                 fmt::format("{}: was written by a command that ran in {}. Run plumb merge there",
                             path, directory));
  }
  try {
    command.parse(std::vector<std::string>(words.rbegin(), words.rend()));
  } catch (const CLI::ParseError&) {
    return Error(ErrorCode::kCorrupt,
                 fmt::format("{}: holds no command of this plumbline. Run its shards again", path));
  }
  return {};
}

}  // namespace plumbline::cli
