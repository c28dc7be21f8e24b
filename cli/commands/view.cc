// plumb view PATH [PATH]: recordings and results in a page of the browser.

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <array>
#include <chrono>
#include <cstdio>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/file/file.h"
#include "base/file/lost_mapping.h"
#include "base/file/scratch_directory.h"
#include "base/process/log.h"
#include "browser.h"
#include "commands.h"
#include "help_page.h"
#include "module_loader.h"
#include "report/page_files.h"
#include "terminal.h"
#include "view/one_file.h"
#include "view/serve/page_files.h"
#include "view/serve/page_server.h"
#include "view/serve/result_export.h"
#include "view/serve/result_opener.h"
#include "view/store_page.h"
#include "view_functions.h"
#include "vocabulary.h"

namespace plumbline::cli {
namespace {

using Clock = std::chrono::steady_clock;

// How long a comparison is waited for before the address is told.
constexpr std::chrono::seconds kPatience{2};
constexpr const char* kServer = "the page: the part of plumb that serves it";
// Who may show the page in a frame when nobody else is named: notebooks on this machine.
constexpr const char* kNotebooks =
    "'self' http://localhost:* http://127.0.0.1:* https://localhost:* https://127.0.0.1:* "
    "vscode-webview:";

struct ViewArguments {
  std::vector<std::string> paths, roots;
  std::string host = "127.0.0.1", token, html;
  int port = 0;
  std::vector<std::string> frames;
  bool is_framed = false, is_read_only = false, opens = false, only_builds = false;
  bool has_no_cache = false, ends_with_input = false;
  view::OpenerOptions opener;
};

Result<const ViewFunctions*> LoadViewFunctions() {
#ifdef PLUMBLINE_WITHOUT_VIEWER
  return NotInThisBuild(kServer, "PLUMBLINE_VIEWER");
#else
  PL_TRY_ASSIGN(const void* functions,
                LoadModule({.file = "plumb_view",
                            .symbol = kViewSymbol,
                            .subject = kServer,
                            .library = "the library cpp-httplib"}));
  return static_cast<const ViewFunctions*>(functions);
#endif
}

Result<std::vector<view::PathPair>> RealPairs(const ViewArguments& arguments) {
  std::vector<std::string> real;
  for (const std::string& path : arguments.paths) {
    PL_TRY_ASSIGN(std::string one, RealPath(path));
    real.push_back(std::move(one));
  }
  return view::PairPaths(real);
}

std::string SizeText(uint64_t bytes) {
  return bytes < 1'000'000 ? fmt::format("{:.1f} KB", static_cast<double>(bytes) / 1e3)
                           : fmt::format("{:.1f} MB", static_cast<double>(bytes) / 1e6);
}

void PrintAnswer(const view::Dataset& dataset, const std::string& title) {
  const std::vector<std::string> lines = dataset.AnswerLines();
  if (dataset.store() == nullptr) {
    const std::string answer = lines.empty() ? std::string() : ", " + OneLine(lines.front());
    return Print(fmt::format("{}: {}{}\n", OneLine(title), dataset.kind(), answer));
  }
  for (const std::string& line : lines) Print(line + "\n");
}

// --build-only.
Result<int> BuildOnly(const ViewArguments& arguments, const std::vector<view::PathPair>& pairs) {
  const view::ResultOpener opener(arguments.opener);
  view::ChangeSignal signal;
  for (const view::PathPair& pair : pairs) {
    const Clock::time_point start = Clock::now();
    view::JobControl job(signal);
    PL_TRY_ASSIGN(const std::shared_ptr<const view::Dataset> dataset,
                  opener.Open(pair.target, pair.golden, job));
    const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
    PrintAnswer(*dataset, view::DatasetTitle(pair.target, pair.golden));
    const auto* graph = dynamic_cast<const view::GraphDataset*>(dataset.get());
    if (graph == nullptr) continue;
    const view::FoundStore& found = graph->found();
    Print(fmt::format("  store: {} ({}, {} in {:.1f} s)\n", OneLine(found.path),
                      SizeText(found.bytes), found.was_there ? "found" : "made", seconds));
  }
  return 0;
}

Result<view::PageServerOptions> ServerOptions(const ViewArguments& arguments,
                                              const view::ResultOpener& opener,
                                              const std::string& scratch) {
  view::PageServerOptions options;
  options.access.host = arguments.host;
  options.access.token = arguments.token;
  if (options.access.token.empty()) {
    PL_TRY_ASSIGN(options.access.token, view::MakeToken());
  }
  PL_TRY(view::CheckToken(options.access.token));
  if (arguments.is_framed) {
    options.access.frames = kNotebooks;
    for (const std::string& frame : arguments.frames) options.access.frames += " " + frame;
  }
  for (const auto* paths : {&arguments.paths, &arguments.roots}) {
    for (const std::string& path : *paths) PL_TRY(options.paths.Add(path));
  }
  options.is_read_only = arguments.is_read_only;
  options.page = view::BuiltPage();
  options.open = [&opener](const std::string& target, const std::string& golden,
                           view::JobControl& job) { return opener.Open(target, golden, job); };
  options.export_dataset = [compare = arguments.opener.compare](
                               const view::DatasetFacts& dataset, const json::Value& body,
                               const std::string& directory, view::JobControl& job) {
    return view::ExportResult(dataset, body, directory, compare, job);
  };
  options.matches_path = [&opener](const view::DatasetFacts& facts) {
    return opener.MatchesPath(facts.id, facts.target);
  };
  options.scratch_directory = scratch;
  return options;
}

// Where a browser reaches the server.
std::string AddressOf(const ViewArguments& arguments, int port, const std::string& token) {
  std::string host = arguments.host;
  if (host == "0.0.0.0" || host == "::") {
    std::array<char, 256> name{};
    host = ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "localhost";
  }
  if (host.find(':') != std::string::npos) host = fmt::format("[{}]", host);
  return fmt::format("http://{}:{}/?token={}", host, port, token);
}

void PrintAddress(const ViewArguments& arguments, int port, const std::string& address) {
  Print(fmt::format("  {}\n", address));
  const std::string line = SshLine(port);
  if (!line.empty() && view::IsLoopback(arguments.host)) {
    Print(fmt::format("  from the machine you sit at, first: {}\n", OneLine(line)));
  }
  if (view::BuiltPage().empty()) {
    PrintNote("view", report::kPageNotBuilt);
  }
  Print("  Ctrl-C ends it\n");
  (void)std::fflush(stdout);
}

// Tells the answers as they come, and the address behind the first or after a while. The error of
// what was named when nothing of it could be opened.
class Teller {
 public:
  Teller(const ViewArguments& arguments, view::PageServer& server, int port, std::string address)
      : arguments_(arguments), server_(server), port_(port), address_(std::move(address)) {}

  // False: there is nothing to show, for the reason that was told.
  Result<bool> Tell() {
    const std::vector<view::DatasetFacts> all = server_.datasets().Facts();
    for (size_t i = 0; i < std::min(all.size(), arguments_.paths.size()); ++i) {
      if (all[i].state == view::DatasetState::kBuilding || told_[all[i].id]) continue;
      told_[all[i].id] = true;
      if (all[i].dataset != nullptr) {
        PrintAnswer(*all[i].dataset, all[i].title);
      } else if (all.size() == 1 && !has_address_) {
        return Error(all[i].error_code, all[i].error);
      } else {
        PrintError(fmt::format("plumb view: {}\n", OneLine(all[i].error)));
      }
      is_answered_ = true;
    }
    if (has_address_) return true;
    if (is_answered_) {
      has_address_ = true;
      PrintAddress(arguments_, port_, address_);
    } else if (!is_announced_ && Clock::now() - start_ > kPatience) {
      is_announced_ = true;
      PrintError(fmt::format("plumb view: still at work; the page is there: {}\n", address_));
    }
    return true;
  }

 private:
  const ViewArguments& arguments_;
  view::PageServer& server_;
  const int port_;
  const std::string address_;
  const Clock::time_point start_ = Clock::now();
  std::map<std::string, bool> told_;
  bool is_answered_ = false, has_address_ = false, is_announced_ = false;
};

// Whether nobody holds the other end of standard input any more. What comes from there is dropped.
bool InputHasEnded() {
  pollfd input{STDIN_FILENO, POLLIN, 0};
  std::array<char, 4096> dropped{};
  while (::poll(&input, 1, 0) > 0) {
    if (::read(STDIN_FILENO, dropped.data(), dropped.size()) <= 0) return true;
  }
  return false;
}

Result<int> ServeUntilInterrupted(const ViewArguments& arguments,
                                  const std::vector<view::PathPair>& pairs) {
  AwaitInterrupts();
  LiveOnWithLostMapping();
  PL_TRY_ASSIGN(const ViewFunctions* functions, LoadViewFunctions());
  PL_TRY_ASSIGN(const std::unique_ptr<ScratchDirectory> scratch,
                ScratchDirectory::Make("plumb-view"));
  view::OpenerOptions opening = arguments.opener;
  opening.scratch_directory = scratch->path();
  view::ResultOpener opener(std::move(opening));
  PL_TRY_ASSIGN(view::PageServerOptions options, ServerOptions(arguments, opener, scratch->path()));
  const std::string token = options.access.token;
  view::PageServer server(std::move(options));
  PL_TRY_ASSIGN(const std::unique_ptr<view::HttpServer> http,
                functions->start_http_server(arguments.host, arguments.port, {}, server));
  for (const view::PathPair& pair : pairs) {
    PL_TRY(server.datasets().Open(pair.target, pair.golden));
  }
  const std::string address = AddressOf(arguments, http->port(), token);
  if (arguments.opens) {
    const Status opened = OpenBrowser(address);
    if (!opened) PrintNote("view", opened.error().message());
  }
  Teller teller(arguments, server, http->port(), address);
  uint64_t seen = 0;
  while (!WasInterrupted() && !(arguments.ends_with_input && InputHasEnded())) {
    PL_TRY(teller.Tell());
    seen = server.signal().Await(seen, std::chrono::milliseconds(100));
  }
  server.CancelJobs();
  opener.CancelAnswers();
  http->Stop();
  return 0;
}

Status CheckArguments(const ViewArguments& arguments) {
  if (!view::IsLoopback(arguments.host) && arguments.token.empty()) {
    return Error(ErrorCode::kInvalidArgument,
                 fmt::format("--host {}: is reached from other machines, which needs a --token of "
                             "your own (8 to 128 letters, digits, '-', '_' or '.')",
                             arguments.host));
  }
  return {};
}

// --html.
Result<int> WriteHtmlFile(const ViewArguments& arguments,
                          const std::vector<view::PathPair>& pairs) {
  if (pairs.size() != 1) {
    return Error(
        ErrorCode::kInvalidArgument,
        "--html: expected two recordings to compare, or one of them, or a .vis or .vis.db");
  }
  const auto& [target, golden] = pairs.front();
  std::string answer;
  if (golden.empty()) {
    const view::ResultOpener opener(arguments.opener);
    view::ChangeSignal signal;
    view::JobControl job(signal);
    PL_TRY_ASSIGN(const std::shared_ptr<const view::Dataset> dataset,
                  opener.Open(target, golden, job));
    if (dataset->store() == nullptr) {
      return Error(
          ErrorCode::kUnsupported,
          fmt::format("{}: is no graph (expected recordings, a .vis or a .vis.db)", target));
    }
    PL_TRY_ASSIGN(answer, view::WriteStorePage(*dataset->store(), arguments.html));
  } else {
    PL_TRY_ASSIGN(answer,
                  view::WriteOneFile(target, golden, arguments.opener.compare, arguments.html));
  }
  Print(answer + fmt::format("file: {}\n", OneLine(arguments.html)));
  return 0;
}

Result<int> RunView(ViewArguments& arguments) {
  PL_TRY(CheckArguments(arguments));
  if (arguments.has_no_cache) arguments.opener.cache.directory.clear();
  PL_TRY_ASSIGN(const std::vector<view::PathPair> pairs, RealPairs(arguments));
  if (!arguments.html.empty()) return WriteHtmlFile(arguments, pairs);
  if (arguments.only_builds) return BuildOnly(arguments, pairs);
  return ServeUntilInterrupted(arguments, pairs);
}

void AddServing(CLI::App& command, ViewArguments& arguments) {
  command.add_option("--host", arguments.host, "address to listen at; another one needs a --token")
      ->capture_default_str();
  command.add_option("--port", arguments.port, "0: one that is free")
      ->check(CLI::Range(0, 65535))
      ->capture_default_str();
  command.add_option("--token", arguments.token, "who knows it may look; default: a random one")
      ->type_name("TEXT");
  command
      .add_option("--root", arguments.roots,
                  "a directory that the page may open recordings of, besides the paths")
      ->type_name("DIR");
  command.add_flag("--read-only", arguments.is_read_only, "nothing can be paired by hand");
  command
      .add_option(
          "--frame",
          [&arguments](const std::vector<std::string>& values) {
            arguments.is_framed = true;
            arguments.frames = values;
            return true;
          },
          "pages of notebooks on this machine, and of ORIGIN, may show the page in a frame")
      ->expected(0, 1)
      ->type_name("[ORIGIN]");
  command.add_flag("--open", arguments.opens, "open the browser");
  command.add_flag("--until-eof", arguments.ends_with_input,
                   "end when standard input ends, with the program that started this one");
}

void AddStores(CLI::App& command, ViewArguments& arguments) {
  view::OpenerOptions& opener = arguments.opener;
  command.add_option("--store", opener.store_path, "keep what was found in this file")
      ->type_name("FILE");
  command.add_flag("--no-cache", arguments.has_no_cache, "keep nothing for the next time");
  command.add_flag("--build-only", arguments.only_builds,
                   "compare and keep what was found, and end; nothing is served");
  command
      .add_option(
          "--html", arguments.html,
          "write the page with its data into one file, and end; of two recordings, one, or a "
          ".vis or .vis.db")
      ->type_name("FILE");
}

void AddPairs(CLI::App& command, ViewArguments& arguments) {
  CompareOptions& options = arguments.opener.compare;
  command.add_flag("-f,--fuzzy_match", options.fuzzy_match,
                   "ignore call numbers: the k-th call of a name pairs with the k-th (also -fm)");
  command
      .add_option(
          "--layer_mapping",
          [&options](const std::vector<std::string>& values) {
            options.mappings.layer = values.empty() ? std::string() : values.front();
            return true;
          },
          "YAML: parts of the model that are called otherwise; without FILE: by structure alone "
          "(also -lm)")
      ->expected(0, 1)
      ->type_name("[FILE]");
  command.add_option("--noise", options.noise_path,
                     "a third run that is right: as far as it is from GOLDEN is noise");
  AddThreads(command, options.threads);
}

}  // namespace

void AddViewCommand(CLI::App& app, int& exit_status) {
  const auto arguments = std::make_shared<ViewArguments>();
  CLI::App* command = app.add_subcommand(
      "view", "Look at a recording, at two that are compared, or at results in the browser.");
  command->alias("ui");
  command
      ->add_option("paths", arguments->paths,
                   "a recording, or the run under test and the reference run, or results: .vis, "
                   ".vis.db, .trend.db, tables and directories of them")
      ->required()
      ->type_name("PATH");
  AddServing(*command, *arguments);
  AddStores(*command, *arguments);
  AddPairs(*command, *arguments);
  command->footer(FooterText(
      "Prints the answer of the comparison, then the address of the page. The page is served to "
      "this machine alone, to whoever knows the token in the address, and shows nothing outside of "
      "the paths and roots that are named. Recordings are only read.",
      {"plumb view runs/new runs/good", "plumb view runs/new/step0/rank0 --open",
       "plumb view runs/new runs/good --root runs --port 8600",
       "plumb view runs/new runs/good --build-only --store new.store"}));
  command->callback([arguments, &exit_status] {
    SetLogStream(LogStream::kStderr);
    const Result<int> status = RunView(*arguments);
    exit_status = status ? *status : ReportError("view", status.error());
  });
}

}  // namespace plumbline::cli
