// The functions of c_api.h that receive dump files: the library libplumbline_receiver.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>

#include "operators/chunk_receiver.h"
#include "plumbline/c_api.h"

// As CANN's header acl/acl_dump.h declares it, which a build of plumbline does not have.
struct acldumpChunk {
  char fileName[4096];   // path of the file, ended by NUL
  uint32_t bufLen;       // bytes in dataBuf
  uint32_t isLastChunk;  // not 0: the file is complete
  int64_t offset;        // of the piece in the file; -1: behind what came before
  int32_t flag;
  uint8_t dataBuf[1];  // bufLen bytes
};
static_assert(offsetof(acldumpChunk, dataBuf) == 4096 + 2 * 4 + 8 + 4);

namespace {

using plumbline::Error;
using plumbline::ErrorCode;
using plumbline::Status;
using plumbline::operators::ChunkReceiver;
using plumbline::operators::ReceiverReport;

// The one receiver of the process, and what was wrong so far. Thread-safe.
class OneReceiver {
 public:
  int32_t Open(const char* dump_path) {
    const std::scoped_lock lock(mutex_);
    if (dump_path == nullptr) return Report(Error(ErrorCode::kInvalidArgument, "no dump path"));
    if (receiver_ != nullptr) {
      return Report(Error(ErrorCode::kInvalidArgument,
                          std::string(dump_path) + ": another receiver is open. Close it first"));
    }
    problems_.clear();
    auto receiver = ChunkReceiver::Open(dump_path);
    if (!receiver) return Report(receiver.error());
    receiver_ = *std::move(receiver);
    return 0;
  }

  int32_t Take(const acldumpChunk* chunk) {
    const Status received = Deliver(chunk);
    if (received) return 0;
    const std::scoped_lock lock(mutex_);
    return Report(received.error());
  }

  int32_t Close() {
    std::shared_ptr<ChunkReceiver> receiver;
    {
      const std::scoped_lock lock(mutex_);
      receiver.swap(receiver_);
    }
    if (receiver == nullptr) return 0;
    const ReceiverReport report = receiver->Close();
    const std::scoped_lock lock(mutex_);
    for (const std::string& problem : report.problems) problems_ += problem + "\n";
    return static_cast<int32_t>(report.failed + report.unended);
  }

  uint64_t CopyProblems(char* out, uint64_t size) {
    const std::scoped_lock lock(mutex_);
    if (out != nullptr && size > 0) {
      const size_t copied = std::min<size_t>(problems_.size(), size - 1);
      std::memcpy(out, problems_.data(), copied);
      out[copied] = '\0';
    }
    return problems_.size();
  }

 private:
  Status Deliver(const acldumpChunk* chunk) {
    std::shared_ptr<ChunkReceiver> receiver;
    {
      const std::scoped_lock lock(mutex_);
      receiver = receiver_;
    }
    if (receiver == nullptr || chunk == nullptr) {
      return Error(ErrorCode::kInvalidArgument, "a chunk without plumbline_dump_open()");
    }
    const size_t name_bytes = ::strnlen(chunk->fileName, sizeof(chunk->fileName));
    if (name_bytes == sizeof(chunk->fileName)) {
      return Error(ErrorCode::kInvalidArgument, "a chunk whose file name has no end");
    }
    const auto* bytes = reinterpret_cast<const std::byte*>(chunk) + offsetof(acldumpChunk, dataBuf);
    return receiver->Receive({{chunk->fileName, name_bytes},
                              {bytes, chunk->bufLen},
                              chunk->offset,
                              chunk->isLastChunk != 0});
  }

  // Requires: mutex_ is held.
  int32_t Report(const Error& error) {
    problems_ += error.message() + "\n";
    return static_cast<int32_t>(error.code()) + 1;
  }

  std::mutex mutex_;
  std::shared_ptr<ChunkReceiver> receiver_;  // null: none is open
  std::string problems_;
};

OneReceiver& Shared() {
  static auto* const shared = new OneReceiver;  // callbacks may come while the process ends
  return *shared;
}

}  // namespace

int32_t plumbline_dump_open(const char* dump_path) { return Shared().Open(dump_path); }

int32_t plumbline_dump_chunk(const struct acldumpChunk* chunk, int32_t /*length*/) {
  return Shared().Take(chunk);
}

int32_t plumbline_dump_close() { return Shared().Close(); }

uint64_t plumbline_dump_problems(char* out, uint64_t size) {
  return Shared().CopyProblems(out, size);
}
