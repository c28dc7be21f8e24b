// A step of 200,000 calls: what step() takes and how much is written.
//
//   long_step_bench [DIRECTORY]
//
// Prints one JSON line; exit status 1 when step() takes more than 1 s, the final files cost more
// than 1.1 times their size in written bytes, or the journal is larger than that.

#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <random>
#include <string>
#include <vector>

#include "base/file/file.h"
#include "record/value.h"
#include "store/run_writer.h"

namespace {

using namespace std::chrono;
using plumbline::EntryPacker;
using plumbline::PackedTensor;
using plumbline::RunWriter;

constexpr int kCalls = 200'000;
constexpr int kStacks = 500;
constexpr int kFrames = 12;
constexpr double kMaxStepSeconds = 1.0;
constexpr double kMaxBytesRatio = 1.1;

std::atomic<uint64_t> written_bytes = 0;
plumbline::SyscallTable real_calls;

ssize_t CountingWrite(int fd, const void* bytes, size_t size) {
  const ssize_t n = real_calls.write(fd, bytes, size);
  if (n > 0) written_bytes += static_cast<uint64_t>(n);
  return n;
}

double SecondsSince(steady_clock::time_point begin) {
  return duration<double>(steady_clock::now() - begin).count();
}

// Of this process: tells a slow step from a busy machine.
double CpuSeconds() {
  timespec now{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

void PackTensor(std::mt19937_64& random, EntryPacker& packer) {
  static const std::vector<int64_t> shape = {2, 128, 512};
  std::normal_distribution<float> normal;
  PackedTensor tensor;
  tensor.type = "torch.Tensor";
  tensor.dtype_text = "torch.float32";
  tensor.shape = shape;
  tensor.max = static_cast<double>(std::fabs(normal(random)));
  tensor.min = static_cast<double>(-std::fabs(normal(random)));
  tensor.mean = static_cast<double>(normal(random) * 1e-6F);
  tensor.norm = static_cast<double>(std::fabs(normal(random)) * 300);
  tensor.requires_grad = true;
  packer.Tensor(tensor);
}

// A call with two tensors, a number and one result.
std::span<const std::byte> Pack(int call, std::mt19937_64& random, EntryPacker& packer) {
  packer.Begin(fmt::format("Functional.scaled_dot_product_attention.{}.forward", call), nullptr,
               static_cast<uint32_t>(call % kStacks) + 1);
  packer.Key("input_args");
  packer.BeginList();
  PackTensor(random, packer);
  PackTensor(random, packer);
  packer.BeginTyped("float");
  packer.Float(0.1);
  packer.EndMap();
  packer.EndList();
  packer.Key("input_kwargs");
  packer.BeginMap();
  packer.EndMap();
  packer.Key("output");
  packer.BeginList();
  PackTensor(random, packer);
  packer.EndList();
  return packer.Finish();
}

void AddStacks(RunWriter& writer) {
  for (uint32_t id = 1; id <= kStacks; ++id) {
    std::vector<std::string> frames;
    for (int f = 0; f < kFrames; ++f) {
      frames.push_back(
          fmt::format("File /site-packages/transformers/models/llama/modeling_llama.py, line {}, "
                      "in forward, \n "
                      "hidden_states = self.layer{}(hidden_states)",
                      id, f));
    }
    writer.AddStack(id, frames);
  }
}

int Measure(const std::string& root) {
  plumbline::StoreThreads threads;
  plumbline::RunOptions options;
  options.header = {"statistics", "L1", "pytorch", ""};
  options.dump_path = root;
  auto opened = RunWriter::Open(options, threads);
  if (!opened) {
    fmt::print(stderr, "{}\n", opened.error().message());
    return 2;
  }
  RunWriter& writer = **opened;
  std::mt19937_64 random(20260103);
  EntryPacker packer;
  const auto begin = steady_clock::now();
  AddStacks(writer);
  double packing = 0;
  for (int i = 0; i < kCalls; ++i) {
    const auto before = steady_clock::now();
    const auto packed = Pack(i, random, packer);
    packing += SecondsSince(before);
    writer.AddEntry(packed);
  }
  const double adding = SecondsSince(begin) - packing;
  const uint64_t journal = plumbline::FileSize(writer.directory() + "/.dump.journal").value_or(0);
  written_bytes = 0;
  const double cpu = CpuSeconds();
  const auto step = steady_clock::now();
  if (!writer.Finish()) return 2;
  const double step_seconds = SecondsSince(step);
  const double step_cpu_seconds = CpuSeconds() - cpu;
  uint64_t files = 0;
  for (const char* name : {"/dump.json", "/stack.json", "/construct.json"}) {
    files += plumbline::FileSize(writer.directory() + name).value_or(0);
  }
  const double ratio = static_cast<double>(written_bytes) / static_cast<double>(files);
  const double journal_ratio = static_cast<double>(journal) / static_cast<double>(files);
  fmt::print(
      "{{\"benchmark\": \"long_step\", \"calls\": {}, \"add_us_per_call\": {:.2f}, \"step_s\": "
      "{:.3f}, \"step_cpu_s\": {:.3f}, \"final_bytes\": {}, \"written_ratio\": {:.4f}, "
      "\"journal_ratio\": {:.4f}}}\n",
      kCalls, 1e6 * adding / kCalls, step_seconds, step_cpu_seconds, files, ratio, journal_ratio);
  const bool good =
      step_seconds <= kMaxStepSeconds && ratio <= kMaxBytesRatio && journal_ratio <= kMaxBytesRatio;
  return good ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  std::string root = argc > 1 ? argv[1] : std::filesystem::temp_directory_path().string();
  root += fmt::format("/plumbline-long-step-{}", ::getpid());
  real_calls = plumbline::Syscalls();
  plumbline::Syscalls().write = CountingWrite;
  const int status = Measure(root);
  std::error_code ignored;
  std::filesystem::remove_all(root, ignored);
  return status;
}
