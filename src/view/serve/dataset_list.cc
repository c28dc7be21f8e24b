#include "view/serve/dataset_list.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "base/file/file.h"
#include "base/memory/digest.h"
#include "base/text/json.h"

namespace plumbline::view {
namespace {

std::string_view StateName(DatasetState state) {
  switch (state) {
    case DatasetState::kBuilding:
      return "building";
    case DatasetState::kReady:
      return "ready";
    case DatasetState::kFailed:
      return "failed";
  }
  return "failed";
}

void AppendMember(std::string_view key, std::string_view value, std::string& out) {
  out += out.back() == '{' ? "\"" : ",\"";
  out += key;
  out += "\":";
  json::AppendString(value, out);
}

}  // namespace

DatasetList::DatasetList(OpenDataset open, JobList& jobs, ChangeSignal& signal)
    : open_(std::move(open)), jobs_(jobs), signal_(signal) {}

DatasetList::Entry* DatasetList::At(std::string_view id) {
  const auto found =
      std::ranges::find_if(entries_, [&](const auto& entry) { return entry->facts.id == id; });
  return found == entries_.end() ? nullptr : found->get();
}

Result<std::string> DatasetList::Open(const std::string& target, const std::string& golden) {
  std::string id = DatasetId(target, golden);
  const std::string title = DatasetTitle(target, golden);
  {
    const std::lock_guard lock(mutex_);
    Entry* entry = At(id);
    if (entry != nullptr && entry->facts.state != DatasetState::kFailed) return id;
    if (entry == nullptr && entries_.size() >= kMost) {
      return Error(ErrorCode::kUnsupported,
                   fmt::format("{}: {} datasets are open. Start plumb view again", title, kMost));
    }
    if (entry == nullptr) entry = entries_.emplace_back(std::make_unique<Entry>()).get();
    entry->facts = {.id = id, .title = title, .target = target, .golden = golden};
  }
  Result<std::string> job = Start(id, title, 0);
  if (!job) {
    const std::lock_guard lock(mutex_);
    std::erase_if(entries_, [&](const auto& entry) { return entry->facts.id == id; });
    return job.error();
  }
  signal_.Raise();
  return id;
}

Result<std::string> DatasetList::Start(const std::string& id, const std::string& title,
                                       uint64_t version) {
  const auto work = [this, id, version](JobControl& control) -> Result<std::optional<JobFile>> {
    PL_TRY(Run(id, version, control));
    return std::optional<JobFile>();
  };
  return jobs_.Start(fmt::format("open {}", title), work);
}

Status DatasetList::Renew(std::string_view id) {
  std::string title;
  uint64_t version = 0;
  {
    const std::lock_guard lock(mutex_);
    Entry* const entry = At(id);
    if (entry == nullptr || entry->facts.dataset == nullptr) {
      return Error(ErrorCode::kNotFound, fmt::format("dataset {}: is not ready", id));
    }
    title = entry->facts.title;
    version = ++entry->version;
  }
  PL_TRY(Start(std::string(id), title, version));
  return {};
}

Status DatasetList::Run(const std::string& id, uint64_t version, JobControl& job) {
  std::string target, golden;
  {
    const std::lock_guard lock(mutex_);
    Entry& entry = *At(id);
    if (entry.version != version) return {};
    entry.job = &job;
    target = entry.facts.target;
    golden = entry.facts.golden;
  }
  Result<std::shared_ptr<const Dataset>> made = open_(target, golden, job);
  {
    const std::lock_guard lock(mutex_);
    Entry& entry = *At(id);
    if (entry.job == &job) entry.job = nullptr;
    if (entry.version != version) return {};
    // What is shown already stays when it cannot be made anew.
    const bool is_shown = entry.facts.dataset != nullptr;
    if (made) {
      entry.facts.state = DatasetState::kReady;
      entry.facts.kind = (*made)->kind();
      entry.facts.dataset = *made;
      entry.facts.note.clear();
    } else if (is_shown) {
      entry.facts.note = fmt::format(
          "with the last change of the pairs made by hand it was not compared again: {}. What is "
          "shown is from before",
          made.error().message());
    } else {
      entry.facts.state = DatasetState::kFailed;
      entry.facts.error = made.error().message();
      entry.facts.error_code = made.error().code();
    }
  }
  signal_.Raise();
  if (!made) return made.error();
  return {};
}

std::vector<DatasetFacts> DatasetList::Facts() const {
  const std::lock_guard lock(mutex_);
  std::vector<DatasetFacts> all;
  for (const auto& entry : entries_) {
    DatasetFacts& facts = all.emplace_back(entry->facts);
    if (entry->job != nullptr) facts.progress = entry->job->progress();
    if (facts.state == DatasetState::kReady) facts.progress = 1;
  }
  return all;
}

Result<DatasetFacts> DatasetList::Find(std::string_view id) const {
  for (DatasetFacts& facts : Facts()) {
    if (facts.id != id) continue;
    if (facts.state == DatasetState::kReady) return std::move(facts);
    if (facts.state == DatasetState::kFailed) return Error(facts.error_code, facts.error);
    return Error(ErrorCode::kNotFound,
                 fmt::format("{}: is being made ({:.0f} % done). Ask again when it is ready",
                             facts.title, facts.progress * 100));
  }
  return Error(
      ErrorCode::kNotFound,
      fmt::format("dataset {}: there is none. Ask for the list of datasets", id.substr(0, 40)));
}

std::string DatasetFacts::etag() const {
  if (dataset == nullptr) return {};
  std::string text(dataset->etag());
  if (!note.empty()) text += fmt::format("-{:x}", Xxh3Of(std::as_bytes(std::span(note))).low);
  return text;
}

std::string DatasetsText(const std::vector<DatasetFacts>& datasets) {
  std::string text = "[";
  for (const DatasetFacts& facts : datasets) {
    if (&facts != datasets.data()) text += ',';
    text += '{';
    AppendMember("id", facts.id, text);
    AppendMember("kind", facts.kind, text);
    AppendMember("state", StateName(facts.state), text);
    AppendMember("title", facts.title, text);
    AppendMember("target", facts.target, text);
    AppendMember("golden", facts.golden, text);
    text += fmt::format(R"(,"progress":{:.4g})", facts.progress);
    AppendMember("error", facts.error, text);
    AppendMember("etag", facts.etag(), text);
    text += '}';
  }
  text += ']';
  return text;
}

std::string DatasetId(const std::string& target, const std::string& golden) {
  const std::string both = target + '\0' + golden;
  return fmt::format("{:010x}", Xxh3Of(std::as_bytes(std::span(both))).low >> 24);
}

std::string DatasetTitle(std::string_view target, std::string_view golden) {
  // Of "new/step0" and "good/step0" the first parts tell more.
  std::string_view a = target, b = golden;
  while (!golden.empty() && BaseName(a) == BaseName(b) && a != b) {
    const std::string_view above_a = DirectoryOf(a), above_b = DirectoryOf(b);
    if (above_a == "." || above_b == "." || above_a == "/" || above_b == "/") break;
    a = above_a;
    b = above_b;
  }
  if (golden.empty()) return std::string(BaseName(target));
  return fmt::format("{} against {}", BaseName(a), BaseName(b));
}

}  // namespace plumbline::view
