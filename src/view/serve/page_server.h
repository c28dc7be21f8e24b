// What the program answers: the page's files and its questions, by a table.

#ifndef PLUMBLINE_VIEW_SERVE_PAGE_SERVER_H_
#define PLUMBLINE_VIEW_SERVE_PAGE_SERVER_H_

#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/file/lost_mapping.h"
#include "base/text/json.h"
#include "plumbline/result.h"
#include "view/query/parameters.h"
#include "view/serve/access_gate.h"
#include "view/serve/change_signal.h"
#include "view/serve/dataset_list.h"
#include "view/serve/event_stream.h"
#include "view/serve/hand_matches.h"
#include "view/serve/http_message.h"
#include "view/serve/job_list.h"
#include "view/serve/page_files.h"
#include "view/serve/served_paths.h"

namespace plumbline::view {

// Writes what a page asked to have into a file of its own in `directory`, and says which one.
// `body`: the object that was posted.
using ExportDataset =
    std::function<Result<JobFile>(const DatasetFacts& dataset, const json::Value& body,
                                  const std::string& directory, JobControl& job)>;

struct PageServerOptions {
  AccessRules access;
  ServedPaths paths;
  bool is_read_only = false;       // nothing is matched by hand
  std::span<const PageFile> page;  // empty: it was not built
  OpenDataset open;
  ExportDataset export_dataset;
  // Where the pairs made by hand of a dataset are kept.
  std::function<std::string(const DatasetFacts&)> matches_path;
  std::string scratch_directory;  // for files of jobs; exists
};

// Thread-safe. Opens what Datasets().Open() and the page say.
class PageServer : public HttpHandler {
 public:
  explicit PageServer(PageServerOptions options);

  void Listens(int port) override { gate_.SetPort(port); }
  std::optional<HttpResponse> Refuse(const HttpRequest& request) override;
  HttpResponse Answer(const HttpRequest& request) override;

  [[nodiscard]] DatasetList& datasets() { return datasets_; }
  [[nodiscard]] ChangeSignal& signal() { return signal_; }
  // Ends what is being made; what was asked for it fails.
  void CancelJobs() { jobs_.CancelAll(); }

 private:
  // What a request asks about: the parts of its path behind /api/.
  struct Asked {
    const HttpRequest& request;
    std::string_view id, question;  // of "d/{id}/{question}" and "jobs/{id}"
  };
  using Answerer = Result<HttpResponse> (PageServer::*)(const Asked&);
  struct Route {
    std::string_view method;
    std::string_view path;  // "jobs/*/file": a star is one part, "**" the rest
    Answerer answer;
  };
  static std::span<const Route> Routes();

  HttpResponse AnswerApi(const HttpRequest& request, std::string_view path);
  [[nodiscard]] HttpResponse PageFor(std::string_view path) const;

  Result<HttpResponse> ListDatasets(const Asked& asked);
  Result<HttpResponse> ListRecordings(const Asked& asked);
  Result<HttpResponse> OpenPaths(const Asked& asked);
  Result<HttpResponse> ListJobs(const Asked& asked);
  Result<HttpResponse> CancelJob(const Asked& asked);
  Result<HttpResponse> GiveJobFile(const Asked& asked);
  Result<HttpResponse> OpenEvents(const Asked& asked);
  Result<HttpResponse> AskDataset(const Asked& asked);
  Result<HttpResponse> DrawLayout(const Asked& asked);
  Result<HttpResponse> ShowSource(const Asked& asked);
  Result<HttpResponse> ShowMatches(const Asked& asked);
  Result<HttpResponse> ShowMapping(const Asked& asked);
  Result<HttpResponse> ChangeMatches(const Asked& asked);
  Result<HttpResponse> StartExport(const Asked& asked);
  [[nodiscard]] std::string DatasetsAnswer() const;
  [[nodiscard]] Result<DatasetFacts> GraphAt(std::string_view id) const;

  const PageServerOptions options_;
  AccessGate gate_;
  ChangeSignal signal_;
  std::mutex matches_mutex_;  // of the files with pairs
  LossWatch loss_watch_;      // keeps the program alive where a file is cut while it is shown
  DatasetList datasets_;
  EventStreams events_;
  JobList jobs_;  // the last member: its jobs end before what they use
};

// Packs the body where the request takes that, and answers 304 where the reader has it already.
void FitToRequest(const HttpRequest& request, HttpResponse& response);

}  // namespace plumbline::view

#endif  // PLUMBLINE_VIEW_SERVE_PAGE_SERVER_H_
