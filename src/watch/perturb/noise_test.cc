// The values themselves: tests/python/test_perturbation.py, against a model in NumPy.

#include "watch/perturb/noise.h"

#include <gtest/gtest.h>

#include <cstring>
#include <thread>
#include <vector>

namespace plumbline::perturb {
namespace {

// A team of threads made for each run.
void RunTeam(int size, void (*body)(void*, int), void* data) {
  std::vector<std::thread> threads;
  for (int i = 0; i < size; ++i) threads.emplace_back(body, data, i);
  for (std::thread& thread : threads) thread.join();
}

TEST(Noise, IsTheSameHoweverManyThreadsShareIt) {
  std::vector<float> source(400'003);
  for (size_t i = 0; i < source.size(); ++i) source[i] = 0.001f * static_cast<float>(i % 977) - 0.4f;
  const int64_t sizes[] = {static_cast<int64_t>(source.size())};
  const int64_t strides[] = {1};
  const TensorView view{DType::kFloat32, reinterpret_cast<const std::byte*>(source.data()), sizes,
                        strides};
  for (const Noise noise : {Noise::kAbsolute, Noise::kNext, Noise::kLowBit, Noise::kSwap}) {
    std::vector<float> alone(source.size()), shared(source.size());
    const auto add = [&](std::vector<float>* out, const kernels::Team* team) {
      return AddNoise(noise, 9, view, {reinterpret_cast<std::byte*>(out->data()), strides}, team);
    };
    const kernels::Team team{.size = 3, .run = RunTeam};
    const Change first = add(&alone, nullptr);
    const Change second = add(&shared, &team);
    EXPECT_EQ(first.changed, second.changed);
    EXPECT_GT(first.changed, 0u);
    EXPECT_EQ(std::memcmp(alone.data(), shared.data(), alone.size() * sizeof(float)), 0);
  }
}

}  // namespace
}  // namespace plumbline::perturb
