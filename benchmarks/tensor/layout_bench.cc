// Times layout conversions of 64 MiB tensors on one thread next to memcpy of the same bytes, and
// checks a round trip of each before it is timed.

#include <benchmark/benchmark.h>

#include <cstddef>
#include <cstring>
#include <string>
#include <vector>

#include "base/process/parallel.h"
#include "tensor/device_layout.h"

namespace {

using plumbline::DeviceFormat;
using plumbline::LayoutPlan;
using plumbline::LayoutRequest;
using plumbline::Result;
using plumbline::Shape;

using Bytes = std::vector<std::byte>;

struct Case {
  const char* name;
  DeviceFormat device;
  DeviceFormat plain;
  Shape host;
  size_t element_bytes;
};

Bytes Numbered(size_t size) {
  Bytes bytes(size);
  for (size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>(i * 2654435761U >> 13);
  return bytes;
}

void Copy(benchmark::State& state) {
  const Bytes from = Numbered(size_t{64} << 20);
  Bytes to(from.size());
  for (auto _ : state) {
    std::memcpy(to.data(), from.data(), from.size());
    benchmark::DoNotOptimize(to.data());
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations() * from.size()));
}
BENCHMARK(Copy);

void TimePlan(benchmark::State& state, const LayoutPlan& plan, const Bytes& from, size_t bytes) {
  Bytes to(plan.ToElements() * bytes);
  plumbline::RunWithThreads(1, [&] {
    for (auto _ : state) {
      plan.Run(bytes, from, to);
      benchmark::ClobberMemory();
    }
  });
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations() * from.size()));
}

void Convert(benchmark::State& state, const Case& c, bool to_device) {
  const Result<LayoutPlan> pack = plumbline::PlanLayout({{c.plain, c.host}, c.device, {}, 1, 16});
  if (!pack) return state.SkipWithError(pack.error().message().c_str());
  const Result<LayoutPlan> unpack =
      plumbline::PlanLayout({{c.device, pack->result()}, c.plain, c.host});
  if (!unpack) return state.SkipWithError(unpack.error().message().c_str());
  const Bytes host = Numbered(pack->FromElements() * c.element_bytes);
  Bytes device(pack->ToElements() * c.element_bytes);
  Bytes again(host.size());
  pack->Run(c.element_bytes, host, device);
  unpack->Run(c.element_bytes, device, again);
  if (again != host) return state.SkipWithError("the round trip changed elements");
  TimePlan(state, to_device ? *pack : *unpack, to_device ? host : device, c.element_bytes);
}

const Case kCases[] = {
    {"NC1HWC0_to_NCHW_f16", DeviceFormat::kNC1HWC0, DeviceFormat::kNCHW, {8, 256, 128, 128}, 2},
    {"NC1HWC0_to_NCHW_13x13_f16",
     DeviceFormat::kNC1HWC0,
     DeviceFormat::kNCHW,
     {388, 512, 13, 13},
     2},
    {"NC1HWC0_to_NHWC_f16", DeviceFormat::kNC1HWC0, DeviceFormat::kNHWC, {8, 256, 128, 128}, 2},
    {"NC1HWC0_to_NCHW_f32", DeviceFormat::kNC1HWC0, DeviceFormat::kNCHW, {4, 256, 128, 128}, 4},
    {"FRACTAL_Z_to_NCHW_f16", DeviceFormat::kFractalZ, DeviceFormat::kNCHW, {2048, 1820, 3, 3}, 2},
    {"FRACTAL_NZ_to_ND_f16", DeviceFormat::kFractalNZ, DeviceFormat::kND, {8192, 4096}, 2},
    {"FRACTAL_NZ_to_ND_odd_f16", DeviceFormat::kFractalNZ, DeviceFormat::kND, {8191, 4090}, 2},
    {"FRACTAL_NZ_to_ND_f32", DeviceFormat::kFractalNZ, DeviceFormat::kND, {4096, 4096}, 4},
};

const int kRegistered = [] {
  for (const Case& c : kCases) {
    benchmark::RegisterBenchmark(c.name, Convert, c, false);
    benchmark::RegisterBenchmark((std::string(c.name) + "_back").c_str(), Convert, c, true);
  }
  return 0;
}();

}  // namespace
