// Owns one rank directory of one step while it is recorded: journal in, final files out.

#ifndef PLUMBLINE_STORE_RUN_WRITER_H_
#define PLUMBLINE_STORE_RUN_WRITER_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "plumbline/result.h"
#include "plumbline/run.h"
#include "store/entry_table.h"
#include "store/journal.h"
#include "store/run_layout.h"
#include "store/tensor_channel.h"
#include "store/tensor_writer.h"

namespace plumbline {

// The background threads of one recorder, shared by the run writers of its steps, which must be
// destroyed first. Destroying this waits until everything is on disk.
struct StoreThreads {
  explicit StoreThreads(const TensorLimits& limits = {})
      : tensors(trouble, limits), sync("plumb-sync") {}
  Trouble trouble;
  TensorWriter tensors;
  Worker sync;
};

struct RunOptions {
  RunHeader header;                 // dump_data_dir is filled in by the writer
  std::string dump_path;            // as the user gave it; kept relative
  std::optional<int64_t> step = 0;  // none: one directory for the whole run (level debug)
  std::optional<int> rank;
  bool has_tensors = false;  // create dump_tensor_data and name it in the header
  EntryTable::Files files = EntryTable::Files::kAll;
  std::string run_id;  // one text per process run
  // Not null: everything goes there, and no file is written (online pre-check).
  std::shared_ptr<TensorChannel> channel;
};

// Calls that record never fail outward: a failing disk switches the journal off with one logged
// line, and entries are still kept in memory for Publish(). Until that succeeds they count as lost
// in dump_error_info.log, whose space was taken before. The directory is held open:
// when its path comes to name something else, nothing is written there. A directory that was
// removed is made again by Publish(). Thread-safe.
class RunWriter {
 public:
  // Creates the directories, locks the journal, moves an unfinished journal of an earlier run
  // aside, takes space for the loss record, and writes the JSON files empty. When another process
  // holds the directory, a directory "rank{R}_{pid}" is used and a warning logged. kIo, kNotFound,
  // kInvalidArgument (path is a file).
  static Result<std::unique_ptr<RunWriter>> Open(const RunOptions& options, StoreThreads& threads);
  // Logs when entries were added since the last Publish(), unless that failed: the journal stays
  // for `plumb recover`.
  ~RunWriter();

  // The bytes of EntryPacker::Finish(). A later entry of the same name merges into the first: the
  // value of a known key is replaced where it stands, new keys are appended. An entry without
  // members is listed in stack.json and construct.json only.
  void AddEntry(std::span<const std::byte> packed);
  void RemoveEntry(std::string_view name);
  // Before the first entry that uses the id; ids are this directory's own and start at 1.
  void AddStack(uint32_t id, std::span<const std::string> frames);
  void AddLoss(std::string_view counter, uint64_t count, std::string_view sentence);

  // Values that come after the entry they belong to, from a device (record/value.h, LateTable).
  // A tensor of an entry that is about to be added.
  struct LateTensor {
    DType dtype = DType::kFloat32;
    bool is_scalar = false;
    std::string file_name;  // reserved for its elements; empty: none
  };
  void AwaitValues(uint64_t number, LateTensor tensor);
  // What is awaited under that number, if it is here.
  [[nodiscard]] std::optional<LateTensor> Awaited(uint64_t number) const;
  // values_of(i, tensor): those of number first + i, if it is awaited here.
  using ValuesOf = std::function<LateValues(uint64_t index, const LateTensor& tensor)>;
  void AddValues(uint64_t first, uint64_t count, const ValuesOf& values_of);
  // Those numbers among the awaited will not be told: counted as lost.
  void DropValues(uint64_t first, uint64_t count, std::string_view why);
  // Waits for nothing, not even for files that another thread is writing.
  [[nodiscard]] bool is_awaiting() const;
  // Runs `then` when nothing is awaited: now, or on the thread that brings the last value. Takes
  // the place of one that waits.
  void WhenComplete(std::function<void(RunWriter&)> then);

  // Tensor files (dump-format 6). `tensor_name` is "{entry}.{part}.{path}". Returns the file name
  // to record as data_name.
  enum class NameUse : uint8_t { kNew, kReplace };
  std::string ReserveTensorName(std::string_view tensor_name, NameUse use = NameUse::kNew);
  // If these contents were given to SaveTensor before in this directory, makes `file_name` a link
  // of that file and returns true: no data needed.
  bool LinkIfKnown(const ContentKey& key, std::string_view file_name);
  // Memory to copy the elements into; invalid: skip the tensor with CountLostTensor().
  TensorBuffer AcquireBuffer(size_t bytes);
  // The same, but invalid too when there is none without waiting for files to be written.
  TensorBuffer TryAcquireBuffer(size_t bytes) {
    return channel_ ? threads_.tensors.AcquireWithin(bytes) : threads_.tensors.TryAcquire(bytes);
  }
  struct SaveRequest {
    std::string_view file_name;
    DType dtype = DType::kFloat32;
    std::span<const int64_t> sizes;
    uint32_t crc32 = 0;
    ContentKey key;
  };
  // Queues the file. The contents count as known from here on.
  void SaveTensor(const SaveRequest& request, TensorBuffer buffer);
  void CountLostTensor();

  // Everything added so far is safe from the death of the process and of the machine when this
  // returns: tensor files stand under their names, the journal is synced.
  void Secure();
  // Writes dump.json, stack.json and construct.json from everything added so far, after the tensor
  // files of this directory are complete. On return the new files stand under their names; they are
  // synced in the background. Nothing new since the last call, or called in a forked child, whose
  // files they are not: does nothing. On error the previous
  // files are intact and the journal remains.
  Status Publish();
  // The same, if much of what was added is new: for files that grow with the whole run, so that
  // publishing at every step costs in proportion to what is recorded. Up to 1/8 of a file of more
  // than 256 KiB then stands in the journal only, until Finish().
  Status PublishIfGrown();
  // Publish(), then syncs the files and deletes the journal in the background. No calls after it.
  Status Finish();
  // Leaves the loss record to `last`, where later losses may be added. No calls after it.
  void HandOver(LastLossRecord& last);

  [[nodiscard]] const std::string& directory() const { return directory_; }
  [[nodiscard]] const RunHeader& header() const { return header_; }
  // The journal is switched off: a kill now loses what was not published.
  [[nodiscard]] bool failed() const;
  [[nodiscard]] std::vector<Loss> losses() const;

 private:
  RunWriter(StoreThreads& threads, RankPlace place, std::shared_ptr<const Directory> handle,
            RunHeader header, const RunOptions& options);
  // Of an entry, to the channel, with its tensors.
  void SendEntry(std::span<const std::byte> packed);
  [[nodiscard]] bool has_tensors() const { return tensors_ != nullptr; }
  void RunIfComplete();
  // The rest require mutex_.
  void AddLateLocked(std::span<const std::byte> packed);
  void Journaled(const Status& status);
  void AddLossLocked(const Loss& loss);
  // What would be missing for ever if the process ended now.
  [[nodiscard]] std::vector<Loss> LossesNow() const;
  void RecordLosses();
  Status PublishLocked();
  Status WriteFinalFiles();
  [[nodiscard]] std::string MainFile() const;
  Status ReturnToPlace();
  [[nodiscard]] EntryTable::KeepTensor TensorFilter() const;
  void ReportLeftOvers() const;
  [[nodiscard]] std::function<Status()> SyncJob() const;

  StoreThreads& threads_;
  const RankPlace place_;
  const std::string directory_;
  const RunHeader header_;
  const EntryTable::Files files_;
  const pid_t pid_;

  std::shared_ptr<TensorDirectory> tensors_;  // null: none are stored
  const std::shared_ptr<TensorChannel> channel_;
  const int64_t step_;

  mutable std::mutex mutex_;  // guards what follows
  // With a channel: tensors whose entry is not there yet, by "{entry}.{part}.{path}".
  std::map<std::string, ChannelTensor, std::less<>> pending_;
  std::unordered_map<std::string, std::string> pending_of_file_;
  std::shared_ptr<const Directory> handle_;
  Journal journal_;
  LossRecord record_;
  bool journal_failed_ = false;
  std::string journal_problem_;  // why
  EntryTable entries_;
  std::unordered_map<uint64_t, LateTensor> awaited_;
  std::atomic<size_t> awaited_count_ = 0;
  std::function<void(RunWriter&)> when_complete_;
  EntryPacker late_;            // values being added
  std::string values_problem_;  // why some will not come
  std::vector<Loss> losses_;
  run_layout::TensorNames names_;
  std::unordered_map<std::string, ContentKey> key_of_file_;  // files that own contents
  struct KeyHash {
    size_t operator()(const ContentKey& key) const { return static_cast<size_t>(key.low); }
  };
  std::unordered_map<ContentKey, std::string, KeyHash> file_of_key_;
  uint64_t last_ticket_ = 0;
  uint64_t published_bytes_ = 0;  // of entries_, when it was last written
  uint64_t unjournaled_ = 0;      // records since the journal failed
  uint64_t unpublished_ = 0;      // those of them that are in memory alone
  uint64_t values_missing_ = 0;   // that dump.json, as last written, has null for
  uint64_t tensors_missing_ = 0;  // that dump.json, as last written, has no file of
  bool changed_ = false;          // since the last Publish
  bool publish_failed_ = false;   // the last one
};

}  // namespace plumbline

#endif  // PLUMBLINE_STORE_RUN_WRITER_H_
