// Times the writer and reader of dump.json and the frames of .pt files.
//
//   formats_bench DUMP_JSON
//
// Writes a generated dump (fixed seed, 705 entries, about 2 MB) to DUMP_JSON and prints one JSON
// line per case. run.py compares with Python's json on the same file.

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "base/file/file.h"
#include "formats/json/dump_json.h"
#include "formats/pytorch/torch_pt.h"

namespace {

namespace dump_json = plumbline::dump_json;
using plumbline::Call;
using plumbline::TensorRecord;
using plumbline::Value;
using plumbline::ValueList;
using plumbline::ValueMap;

constexpr int kEntries = 705;
constexpr int kTensorsPerEntry = 9;
constexpr int kSamples = 21;

TensorRecord RandomTensor(std::mt19937_64& random) {
  std::normal_distribution<float> normal;
  TensorRecord tensor;
  tensor.type = "torch.Tensor";
  tensor.dtype_text = "torch.float32";
  tensor.shape = {2, 128, 512};
  tensor.max = static_cast<double>(std::fabs(normal(random)));
  tensor.min = static_cast<double>(-std::fabs(normal(random)));
  tensor.mean = static_cast<double>(normal(random) * 1e-6F);
  tensor.norm = static_cast<double>(std::fabs(normal(random)) * 300);
  tensor.requires_grad = random() % 2 == 0;
  tensor.digest = fmt::format("{:08x}", static_cast<uint32_t>(random()));
  return tensor;
}

dump_json::DumpFile GeneratedDump() {
  std::mt19937_64 random(20260103);
  dump_json::DumpFile file;
  file.header = {"statistics", "mix", "pytorch", "./out/step0/rank/dump_tensor_data"};
  for (int i = 0; i < kEntries; ++i) {
    Call call;
    call.name = fmt::format("Module.model.layers.{}.self_attn.q_proj.Linear.forward.{}", i, i % 7);
    ValueList inputs, outputs;
    for (int t = 0; t < kTensorsPerEntry; ++t) {
      (t % 3 == 0 ? outputs : inputs).emplace_back(RandomTensor(random));
    }
    inputs.emplace_back(ValueMap{{"type", "float"}, {"value", 0.5}});
    call.members.emplace_back("input_args", std::move(inputs));
    call.members.emplace_back("input_kwargs", ValueMap());
    call.members.emplace_back("output", std::move(outputs));
    call.members.emplace_back("is_recompute", false);
    file.calls.push_back(std::move(call));
  }
  return file;
}

void Write(const dump_json::DumpFile& file, std::string& out) {
  out.clear();
  dump_json::DumpWriter writer(out);
  writer.Begin(file.header);
  for (const Call& call : file.calls) writer.Add(call);
  writer.End();
}

// Milliseconds per run of `f`: median and median absolute deviation of kSamples runs after one
// warm-up.
void Report(const char* name, size_t bytes, const std::function<void()>& f) {
  std::vector<double> times;
  f();
  for (int i = 0; i < kSamples; ++i) {
    const auto start = std::chrono::steady_clock::now();
    f();
    const std::chrono::duration<double, std::milli> time = std::chrono::steady_clock::now() - start;
    times.push_back(time.count());
  }
  std::sort(times.begin(), times.end());
  const double median = times[kSamples / 2];
  for (double& time : times) time = std::fabs(time - median);
  std::sort(times.begin(), times.end());
  fmt::print(
      "{{\"case\": \"{}\", \"bytes\": {}, \"median_ms\": {:.4f}, \"mad_ms\": {:.4f}, "
      "\"mb_per_s\": {:.1f}}}\n",
      name, bytes, median, times[kSamples / 2], static_cast<double>(bytes) / 1e3 / median);
}

// Milliseconds of 1000 frames, so that one frame is a microsecond per unit.
void ReportFrames() {
  constexpr int kFrames = 1000;
  size_t total = 0;
  Report("pt_frame_x1000", 0, [&total] {
    for (int i = 0; i < kFrames; ++i) {
      const std::vector<int64_t> sizes = {2, 128, 512};
      total += plumbline::torch_pt::MakeFrame(plumbline::DType::kFloat32, sizes, 2 * 128 * 512 * 4,
                                              static_cast<uint32_t>(i))
                   .head.size();
    }
  });
  if (total % 64 != 0) fmt::print(stderr, "frames are not aligned\n");
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    fmt::print(stderr, "usage: formats_bench DUMP_JSON\n");
    return 2;
  }
  const dump_json::DumpFile file = GeneratedDump();
  std::string text, again;
  Write(file, text);
  const auto parsed = dump_json::ParseDump(text, false);
  if (parsed) Write(*parsed, again);
  if (again != text) {
    fmt::print(stderr, "formats_bench: reading and writing changed the dump\n");
    return 1;
  }
  if (const auto written = plumbline::WriteFileAtomically(argv[1], text, false); !written) {
    fmt::print(stderr, "{}\n", written.error().message());
    return plumbline::ExitStatus(written.error().code());
  }
  Report("dump_json_write", text.size(), [&] { Write(file, again); });
  Report("dump_json_read", text.size(), [&] {
    if (!dump_json::ReadDump(argv[1], false)) std::abort();
  });
  ReportFrames();
  return 0;
}
