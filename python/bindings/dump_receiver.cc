// The functions of c_api.h that receive dump files: the library libplumbline_receiver.

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>

#include "pipeline/device_dump/chunk_receiver.h"
#include "plumbline/c_api.h"

namespace {

using plumbline::Error;
using plumbline::ErrorCode;
using plumbline::pipeline::ChunkReceiver;
using plumbline::pipeline::ReceiverReport;

struct State {
  std::mutex mutex;
  std::shared_ptr<ChunkReceiver> receiver;
  std::string problems;
};

State& Shared() {
  static auto* const state = new State;  // callbacks may come while the process ends
  return *state;
}

int32_t Report(const Error& error) {
  State& state = Shared();
  const std::scoped_lock lock(state.mutex);
  state.problems += error.message() + "\n";
  return static_cast<int32_t>(error.code()) + 1;
}

}  // namespace

int32_t plumbline_dump_open(const char* dump_path) {
  State& state = Shared();
  if (dump_path == nullptr) return Report(Error(ErrorCode::kInvalidArgument, "no dump path"));
  {
    const std::scoped_lock lock(state.mutex);
    state.problems.clear();
    if (state.receiver != nullptr) return static_cast<int32_t>(ErrorCode::kInvalidArgument) + 1;
  }
  auto receiver = ChunkReceiver::Open(dump_path);
  if (!receiver) return Report(receiver.error());
  const std::scoped_lock lock(state.mutex);
  state.receiver = *std::move(receiver);
  return 0;
}

int32_t plumbline_dump_chunk(const struct acldumpChunk* chunk, int32_t /*length*/) {
  State& state = Shared();
  std::shared_ptr<ChunkReceiver> receiver;
  {
    const std::scoped_lock lock(state.mutex);
    receiver = state.receiver;
  }
  if (receiver == nullptr || chunk == nullptr) {
    return Report(Error(ErrorCode::kInvalidArgument, "a chunk without plumbline_dump_open()"));
  }
  const size_t name_bytes = ::strnlen(chunk->fileName, sizeof(chunk->fileName));
  if (name_bytes == sizeof(chunk->fileName)) {
    return Report(Error(ErrorCode::kInvalidArgument, "a chunk whose file name has no end"));
  }
  const auto* bytes = reinterpret_cast<const std::byte*>(chunk) + offsetof(acldumpChunk, dataBuf);
  const auto received = receiver->Receive({{chunk->fileName, name_bytes},
                                           {bytes, chunk->bufLen},
                                           chunk->offset,
                                           chunk->isLastChunk != 0});
  return received ? 0 : Report(received.error());
}

int32_t plumbline_dump_close() {
  State& state = Shared();
  std::shared_ptr<ChunkReceiver> receiver;
  {
    const std::scoped_lock lock(state.mutex);
    receiver.swap(state.receiver);
  }
  if (receiver == nullptr) return 0;
  const ReceiverReport report = receiver->Close();
  const std::scoped_lock lock(state.mutex);
  for (const std::string& problem : report.problems) state.problems += problem + "\n";
  return static_cast<int32_t>(report.failed + report.unended);
}

uint64_t plumbline_dump_problems(char* out, uint64_t size) {
  State& state = Shared();
  const std::scoped_lock lock(state.mutex);
  if (out != nullptr && size > 0) {
    const size_t copied = std::min<size_t>(state.problems.size(), size - 1);
    std::memcpy(out, state.problems.data(), copied);
    out[copied] = '\0';
  }
  return state.problems.size();
}
