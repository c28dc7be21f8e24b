#include "view/serve/page_server.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "base/file/file.h"
#include "base/memory/bytes.h"
#include "base/memory/digest.h"
#include "base/text/json.h"
#include "base/text/json_members.h"
#include "base/text/text_parts.h"
#include "report/page_files.h"
#include "view/serve/gzip_text.h"
#include "view/serve/layer_rules.h"
#include "view/serve/recording_entries.h"
#include "view/serve/result_export.h"
#include "view/serve/source_lines.h"
#include "view/trends/layout_picture.h"

namespace plumbline::view {
namespace {

constexpr std::string_view kApiStart = "/api/";
// Comparisons use all cores themselves.
constexpr size_t kJobThreads = 2;

HttpResponse JsonResponse(std::string text) {
  HttpResponse response;
  response.SetBody(std::move(text), kJsonType);
  return response;
}

// Whether `path` has the form of a route; fills what the first two stars stand for.
bool FitsRoute(std::string_view route, std::string_view path, std::string_view& first,
               std::string_view& second) {
  const std::vector<std::string_view> wanted = SplitAt(route, '/'), parts = SplitAt(path, '/');
  std::string_view* free[] = {&first, &second};
  size_t stars = 0;
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (i >= parts.size()) return false;
    if (wanted[i] == "**") {
      *free[stars] = path.substr(static_cast<size_t>(parts[i].data() - path.data()));
      return !free[stars]->empty();
    }
    if (wanted[i] == "*" && stars < std::size(free) && !parts[i].empty()) {
      *free[stars++] = parts[i];
    } else if (wanted[i] != parts[i]) {
      return false;
    }
  }
  return wanted.size() == parts.size();
}

// A file name for a header: what is no plain ASCII is percent-encoded in a second form.
std::string AttachmentHeader(std::string_view name) {
  std::string plain, encoded;
  for (const char c : name) {
    const auto byte = static_cast<unsigned char>(c);
    const bool is_plain = std::isalnum(byte) != 0 || c == '.' || c == '_' || c == '-';
    plain += is_plain ? c : '_';
    encoded += is_plain ? std::string(1, c) : fmt::format("%{:02X}", byte);
  }
  return fmt::format("attachment; filename=\"{}\"; filename*=UTF-8''{}", plain, encoded);
}

bool IsPackable(std::string_view type) {
  return type.starts_with("text/") || type.starts_with("application/json") ||
         type.starts_with("application/javascript") || type.starts_with("image/svg");
}

Result<json::Value> ObjectOf(std::string_view body) {
  PL_TRY_ASSIGN(json::Value value, json::Value::Parse(body));
  if (value.is_object()) return value;
  return Error(ErrorCode::kInvalidArgument, "the body is no JSON object");
}

// The answer "meta" with what the list of datasets says of it.
Result<std::string> WithNote(std::string_view meta, const DatasetFacts& facts) {
  PL_TRY_ASSIGN(json::Value value, json::Value::Parse(meta));
  json::Value::List notes;
  const json::Value* known = value.Find("notes");
  if (known != nullptr && known->AsList() != nullptr) notes = *known->AsList();
  notes.insert(notes.begin(), json::Value(facts.note));
  value.Put("notes", json::Value(std::move(notes)));
  value.Put("etag", json::Value(facts.etag()));
  return value.Text();
}

}  // namespace

PageServer::PageServer(PageServerOptions options)
    : options_(std::move(options)),
      gate_(options_.access),
      datasets_(options_.open, jobs_, signal_),
      events_({{"datasets", [this] { return DatasetsAnswer(); }},
               {"jobs", [this] { return JobsText(jobs_.Facts()); }}},
              signal_),
      jobs_(kJobThreads, signal_) {}

std::span<const PageServer::Route> PageServer::Routes() {
  static constexpr Route kRoutes[] = {
      {"GET", "datasets", &PageServer::ListDatasets},
      {"GET", "recordings", &PageServer::ListRecordings},
      {"POST", "open", &PageServer::OpenPaths},
      {"GET", "jobs", &PageServer::ListJobs},
      {"DELETE", "jobs/*", &PageServer::CancelJob},
      {"GET", "jobs/*/file", &PageServer::GiveJobFile},
      {"GET", "events", &PageServer::OpenEvents},
      {"GET", "layout", &PageServer::DrawLayout},
      {"GET", "d/*/source", &PageServer::ShowSource},
      {"GET", "d/*/matches", &PageServer::ShowMatches},
      {"GET", "d/*/mapping", &PageServer::ShowMapping},
      {"POST", "d/*/match", &PageServer::ChangeMatches},
      {"POST", "d/*/unmatch", &PageServer::ChangeMatches},
      {"POST", "d/*/undo", &PageServer::ChangeMatches},
      {"POST", "d/*/export", &PageServer::StartExport},
      {"GET", "d/*/**", &PageServer::AskDataset},
  };
  return kRoutes;
}

std::optional<HttpResponse> PageServer::Refuse(const HttpRequest& request) {
  std::optional<HttpResponse> refusal = gate_.Check(request);
  if (refusal) gate_.AddHeaders(*refusal);
  return refusal;
}

HttpResponse PageServer::Answer(const HttpRequest& request) {
  HttpResponse response =
      request.path.starts_with(kApiStart)
          ? AnswerApi(request, std::string_view(request.path).substr(kApiStart.size()))
          : PageFor(request.path);
  FitToRequest(request, response);
  gate_.AddHeaders(response);
  return response;
}

HttpResponse PageServer::PageFor(std::string_view path) const {
  HttpResponse response;
  if (options_.page.empty()) {
    response.status = 503;
    response.SetBody(
        fmt::format("plumb view: {}. The questions below {} are answered all the same\n",
                    report::kPageNotBuilt, kApiStart),
        kPlainType);
    return response;
  }
  // The page refers to its files relative to where it stands, which may be a deep link.
  const auto named = [&](std::string_view name) {
    return std::ranges::find_if(options_.page, [&](const PageFile& f) { return f.name == name; });
  };
  auto file = named(BaseName(path));
  const bool is_link = path == "/" || path.starts_with("/g/") || path == "/index.html";
  if (file == options_.page.end() && is_link) file = named("index.html");
  if (file == options_.page.end()) {
    return ErrorResponse(404, "not-found", "there is no such page. Open the address /");
  }
  response.type = file->type;
  response.body = file->text;
  return response;
}

HttpResponse PageServer::AnswerApi(const HttpRequest& request, std::string_view path) {
  bool has_other_method = false;
  for (const Route& route : Routes()) {
    Asked asked{request, {}, {}};
    if (!FitsRoute(route.path, path, asked.id, asked.question)) continue;
    if (route.method != request.method) {
      has_other_method = true;
      continue;
    }
    if (asked.question.empty()) asked.question = BaseName(path);
    Result<HttpResponse> response = (this->*route.answer)(asked);
    return response ? *std::move(response) : ErrorResponse(response.error());
  }
  if (has_other_method) {
    return ErrorResponse(405, "invalid-argument",
                         fmt::format("{}: cannot be asked with {}", path, request.method));
  }
  return ErrorResponse(404, "not-found", fmt::format("{}: there is no such question", path));
}

std::string PageServer::DatasetsAnswer() const {
  std::string text = R"({"datasets":)" + DatasetsText(datasets_.Facts());
  text += fmt::format(R"(,"read_only":{},"roots":)", options_.is_read_only);
  text += json::Value(options_.paths.roots()).Text();
  return text + "}";
}

Result<HttpResponse> PageServer::ListDatasets(const Asked& /*asked*/) {
  return JsonResponse(DatasetsAnswer());
}

Result<HttpResponse> PageServer::ListRecordings(const Asked& asked) {
  PL_TRY_ASSIGN(std::string text,
                RecordingsAnswer(options_.paths, asked.request.parameters.Text("path")));
  return JsonResponse(std::move(text));
}

Result<HttpResponse> PageServer::OpenPaths(const Asked& asked) {
  PL_TRY_ASSIGN(const json::Value body, ObjectOf(asked.request.body));
  const std::string target(json::TextAt(body, "target")), golden(json::TextAt(body, "golden"));
  PL_TRY_ASSIGN(const std::string target_path, options_.paths.Resolve(target));
  std::string golden_path;
  if (!golden.empty()) {
    PL_TRY_ASSIGN(golden_path, options_.paths.Resolve(golden));
  }
  PL_TRY_ASSIGN(const std::string id, datasets_.Open(target_path, golden_path));
  json::Value answer = json::Value::Object();
  answer.Put("id", json::Value(id));
  return JsonResponse(answer.Text());
}

Result<HttpResponse> PageServer::ListJobs(const Asked& /*asked*/) {
  return JsonResponse(JobsText(jobs_.Facts()));
}

Result<HttpResponse> PageServer::CancelJob(const Asked& asked) {
  PL_TRY(jobs_.Cancel(std::string(asked.id)));
  return JsonResponse(JobsText(jobs_.Facts()));
}

Result<HttpResponse> PageServer::GiveJobFile(const Asked& asked) {
  PL_TRY_ASSIGN(const JobFile file, jobs_.FileOf(std::string(asked.id)));
  PL_TRY_ASSIGN(const std::shared_ptr<const MappedFile> mapped, MappedFile::Open(file.path));
  HttpResponse response;
  response.type = file.type;
  response.body = AsText(mapped->bytes());
  response.owner = mapped;
  response.headers.emplace_back("Content-Disposition", AttachmentHeader(file.name));
  return response;
}

Result<HttpResponse> PageServer::OpenEvents(const Asked& /*asked*/) { return events_.Open(); }

Result<HttpResponse> PageServer::AskDataset(const Asked& asked) {
  const Parameters& parameters = asked.request.parameters;
  PL_TRY_ASSIGN(const DatasetFacts facts, datasets_.Find(asked.id));
  std::shared_ptr<const Dataset> base;
  for (const std::string_view name : {"base", "against"}) {
    if (parameters.Text(name).empty()) continue;
    PL_TRY_ASSIGN(const DatasetFacts other, datasets_.Find(parameters.Text(name)));
    base = other.dataset;
  }
  const LossWatch watch;
  PL_TRY_ASSIGN(std::string text, facts.dataset->Answer(asked.question, parameters, base.get()));
  PL_TRY(watch.Check());
  if (asked.question == "meta" && !facts.note.empty()) {
    PL_TRY_ASSIGN(text, WithNote(text, facts));
  }
  return JsonResponse(std::move(text));
}

Result<HttpResponse> PageServer::DrawLayout(const Asked& asked) {
  LayoutRequest request;
  const std::pair<std::string_view, int64_t*> sizes[] = {{"world", &request.world_size},
                                                         {"layers", &request.num_layers},
                                                         {"tp", &request.tensor_parallel_size},
                                                         {"pp", &request.pipeline_parallel_size}};
  for (const auto& [name, size] : sizes) {
    PL_TRY_ASSIGN(*size, asked.request.parameters.Number(name, *size, 1, INT32_MAX));
  }
  PL_TRY_ASSIGN(const LayoutGrid grid, LayOutModel(request));
  json::Value answer = json::Value::Object();
  answer.Put("title", json::Value(grid.title()));
  answer.Put("svg", json::Value(LayoutSvg(grid)));
  return JsonResponse(answer.Text());
}

Result<HttpResponse> PageServer::ShowSource(const Asked& asked) {
  PL_TRY(datasets_.Find(asked.id));
  PL_TRY_ASSIGN(std::string text, SourceAnswer(options_.paths, asked.request.parameters));
  return JsonResponse(std::move(text));
}

Result<DatasetFacts> PageServer::GraphAt(std::string_view id) const {
  PL_TRY_ASSIGN(DatasetFacts facts, datasets_.Find(id));
  if (facts.dataset->store() != nullptr && !facts.dataset->store()->places().empty()) return facts;
  return Error(ErrorCode::kUnsupported,
               fmt::format("{}: is no graph, whose nodes could be paired", facts.title));
}

Result<HttpResponse> PageServer::ShowMatches(const Asked& asked) {
  PL_TRY_ASSIGN(const DatasetFacts facts, GraphAt(asked.id));
  PL_TRY_ASSIGN(const HandMatches matches, HandMatches::Read(options_.matches_path(facts)));
  return JsonResponse(matches.AnswerText());
}

Result<HttpResponse> PageServer::ShowMapping(const Asked& asked) {
  PL_TRY_ASSIGN(const DatasetFacts facts, GraphAt(asked.id));
  PL_TRY_ASSIGN(const HandMatches matches, HandMatches::Read(options_.matches_path(facts)));
  return JsonResponse(MappingAnswer(LayerMappingOf(*facts.dataset->store(), matches)));
}

Result<HttpResponse> PageServer::ChangeMatches(const Asked& asked) {
  PL_TRY_ASSIGN(const DatasetFacts facts, GraphAt(asked.id));
  if (options_.is_read_only) {
    return ErrorResponse(403, "read-only", "this server was started with --read-only");
  }
  const ResultStore& store = *facts.dataset->store();
  const std::string path = options_.matches_path(facts);
  const std::lock_guard lock(matches_mutex_);
  PL_TRY_ASSIGN(HandMatches matches, HandMatches::Read(path));
  if (asked.question == "undo") {
    PL_TRY(matches.Undo());
  } else {
    PL_TRY_ASSIGN(const MatchRequest request,
                  ParseMatchRequest(asked.request.body, store.places().size()));
    PL_TRY(asked.question == "match" ? matches.Match(store, request)
                                     : matches.Unmatch(store, request));
  }
  PL_TRY(matches.Write(path));
  PL_TRY(datasets_.Renew(facts.id));
  return JsonResponse(matches.AnswerText());
}

Result<HttpResponse> PageServer::StartExport(const Asked& asked) {
  PL_TRY_ASSIGN(DatasetFacts facts, datasets_.Find(asked.id));
  PL_TRY_ASSIGN(json::Value body, ObjectOf(asked.request.body));
  PL_TRY_ASSIGN(const std::string format, ExportFormatOf(facts, body));
  const std::string what = fmt::format("export {} as {}", facts.title, format);
  const auto work = [this, facts = std::move(facts),
                     body = std::move(body)](JobControl& job) -> Result<std::optional<JobFile>> {
    const LossWatch watch;
    PL_TRY_ASSIGN(JobFile file,
                  options_.export_dataset(facts, body, options_.scratch_directory, job));
    PL_TRY(watch.Check());
    return std::optional<JobFile>(std::move(file));
  };
  PL_TRY_ASSIGN(const std::string id, jobs_.Start(what, work));
  json::Value answer = json::Value::Object();
  answer.Put("job", json::Value(id));
  return JsonResponse(answer.Text());
}

void FitToRequest(const HttpRequest& request, HttpResponse& response) {
  if (response.stream || response.body.empty() || response.status != 200) return;
  const Digest128 digest = Xxh3Of(std::as_bytes(std::span(response.body)));
  // Weak: what is sent may be packed or not.
  const std::string etag = fmt::format("W/\"{:016x}{:016x}\"", digest.high, digest.low);
  response.headers.emplace_back("ETag", etag);
  response.headers.emplace_back("Vary", "Accept-Encoding");
  const std::string_view known = request.Header("if-none-match");
  if (request.method == "GET" && (known == "*" || known.find(etag.substr(2)) != known.npos)) {
    response.status = 304;
    response.body = {};
    return;
  }
  if (!IsPackable(response.type) || !TakesGzip(request.Header("accept-encoding"))) return;
  std::optional<std::string> packed = GzipText(response.body);
  if (!packed) return;
  const std::string type = response.type;
  response.SetBody(*std::move(packed), type);
  response.headers.emplace_back("Content-Encoding", "gzip");
}

}  // namespace plumbline::view
