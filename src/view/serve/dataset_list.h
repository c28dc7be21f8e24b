// The datasets that a server shows.

#ifndef PLUMBLINE_VIEW_SERVE_DATASET_LIST_H_
#define PLUMBLINE_VIEW_SERVE_DATASET_LIST_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "plumbline/result.h"
#include "view/serve/change_signal.h"
#include "view/serve/dataset.h"
#include "view/serve/job_list.h"

namespace plumbline::view {

enum class DatasetState : uint8_t { kBuilding, kReady, kFailed };

struct DatasetFacts {
  std::string id;  // the same for the same paths, so that links stay valid
  std::string kind = "graph";
  DatasetState state = DatasetState::kBuilding;
  std::string title{}, target{}, golden{};
  double progress = 0;
  std::string error{};
  ErrorCode error_code = ErrorCode::kInternal;  // of kFailed
  std::shared_ptr<const Dataset> dataset{};     // of kReady
  std::string note{};                           // why it is not what it is to be made of by now

  // Of what is shown, with its note.
  [[nodiscard]] std::string etag() const;
};

// Thread-safe.
class DatasetList {
 public:
  static constexpr size_t kMost = 200;

  // `jobs` and `signal` must outlive the list; so must the list every job that it starts.
  DatasetList(OpenDataset open, JobList& jobs, ChangeSignal& signal);

  // The dataset of these paths, which is there already or is made by a job from here on; one that
  // failed is tried again. kUnsupported: too many datasets or jobs.
  Result<std::string> Open(const std::string& target, const std::string& golden);

  // Makes a dataset that is ready anew, which stays as it is until then: what it is made of has
  // changed. kNotFound; kUnsupported: too many jobs.
  Status Renew(std::string_view id);

  [[nodiscard]] std::vector<DatasetFacts> Facts() const;
  // kNotFound: there is none, or it is not ready; the message says which.
  [[nodiscard]] Result<DatasetFacts> Find(std::string_view id) const;

 private:
  struct Entry {
    DatasetFacts facts;
    const JobControl* job = nullptr;  // while it runs
    uint64_t version = 0;             // of what it is made of: what an older job makes is dropped
  };

  Status Run(const std::string& id, uint64_t version, JobControl& job);
  Result<std::string> Start(const std::string& id, const std::string& title, uint64_t version);
  Entry* At(std::string_view id);

  OpenDataset open_;
  JobList& jobs_;
  ChangeSignal& signal_;
  mutable std::mutex mutex_;  // of what follows
  std::vector<std::unique_ptr<Entry>> entries_;
};

// The member "datasets" of the answer: [...].
std::string DatasetsText(const std::vector<DatasetFacts>& datasets);

// Follows from the paths.
std::string DatasetId(const std::string& target, const std::string& golden);
// Of a path or a pair of them: "new against good".
std::string DatasetTitle(std::string_view target, std::string_view golden);

}  // namespace plumbline::view

#endif  // PLUMBLINE_VIEW_SERVE_DATASET_LIST_H_
