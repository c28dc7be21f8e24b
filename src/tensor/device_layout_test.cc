#include "tensor/device_layout.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <functional>
#include <numeric>
#include <string>
#include <vector>

namespace plumbline {
namespace {

using Bytes = std::vector<std::byte>;

int64_t Count(const Shape& sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), int64_t{1}, std::multiplies<>());
}

int64_t Blocks(int64_t size, int64_t block) { return (size + block - 1) / block; }

// Elements that differ from each other in every byte that can tell them apart.
Bytes Elements(int64_t count, size_t element_bytes) {
  Bytes bytes(static_cast<size_t>(count) * element_bytes);
  for (size_t i = 0; i < bytes.size(); ++i) {
    const uint64_t element = i / element_bytes + 1;
    bytes[i] = static_cast<std::byte>((element * 0x9E3779B97F4A7C15u) >> (8 * (i % 8)));
  }
  return bytes;
}

// One index per axis, in the order of BlockedAxes().
using Index = std::vector<int64_t>;
using Place = std::function<int64_t(const Index&)>;

// Calls `body` with every index below `sizes`, in row-major order.
void ForEach(const Shape& sizes, const std::function<void(const Index&)>& body) {
  Index index(sizes.size(), 0);
  for (int64_t left = Count(sizes); left > 0; --left) {
    body(index);
    for (size_t i = sizes.size(); i-- > 0;) {
      if (++index[i] < sizes[i]) break;
      index[i] = 0;
    }
  }
}

// The device tensor, element by element; padding is zero.
Bytes Packed(const Bytes& host, const Shape& sizes, const Shape& device, size_t element_bytes,
             const Place& place) {
  Bytes packed(static_cast<size_t>(Count(device)) * element_bytes);
  size_t from = 0;
  ForEach(sizes, [&](const Index& index) {
    const auto to = static_cast<size_t>(place(index)) * element_bytes;
    std::memcpy(&packed.at(to), &host[from], element_bytes);
    from += element_bytes;
  });
  return packed;
}

Result<Bytes> Convert(const LayoutRequest& request, const Bytes& from, size_t element_bytes) {
  PL_TRY_ASSIGN(const LayoutPlan plan, PlanLayout(request));
  EXPECT_EQ(plan.FromElements() * element_bytes, from.size());
  Bytes to(plan.ToElements() * element_bytes, std::byte{0xAB});
  plan.Run(element_bytes, from, to);
  return to;
}

struct LayoutCase {
  DeviceFormat format;
  DeviceFormat plain;
  Shape host;
  Shape device;
  int64_t c0;
  Place place;
  int64_t groups = 1;
};

// Both directions, for elements of every size, and the device shape.
void ExpectBothWays(const LayoutCase& c) {
  SCOPED_TRACE(DeviceFormatName(c.format) + " " + ShapeText(c.host) + " groups " +
               std::to_string(c.groups));
  const Result<Shape> device = DeviceShape(c.format, c.host, c.c0, c.groups);
  ASSERT_TRUE(device) << device.error().message();
  ASSERT_EQ(*device, c.device);
  for (const size_t bytes : {1U, 2U, 4U, 8U, 16U}) {
    const Bytes host = Elements(Count(c.host), bytes);
    const Bytes packed = Packed(host, c.host, c.device, bytes, c.place);
    const auto to_host = Convert({{c.format, c.device}, c.plain, c.host, c.groups}, packed, bytes);
    ASSERT_TRUE(to_host) << to_host.error().message();
    ASSERT_EQ(*to_host, host) << bytes;
    const auto to_device = Convert({{c.plain, c.host}, c.format, {}, c.groups, c.c0}, host, bytes);
    ASSERT_TRUE(to_device) << to_device.error().message();
    ASSERT_EQ(*to_device, packed) << bytes;
  }
}

constexpr std::array<int64_t, 5> kSizes = {1, 15, 16, 17, 33};
constexpr std::array<std::array<int64_t, 2>, 3> kPlanes = {{{1, 1}, {3, 2}, {5, 13}}};

// Runs `test` with N, C, H, W and C0.
using WeightTest = std::function<void(int64_t, int64_t, int64_t, int64_t, int64_t)>;
void ForAllWeights(const WeightTest& test) {
  for (const int64_t c0 : {16, 32}) {
    for (const int64_t n : kSizes) {
      for (const int64_t c : kSizes) {
        for (const auto& [h, w] : kPlanes) test(n, c, h, w, c0);
      }
    }
  }
}

TEST(DeviceLayout, NC1HWC0) {
  ForAllWeights([](int64_t n, int64_t c, int64_t h, int64_t w, int64_t c0) {
    const int64_t c1 = Blocks(c, c0);
    ExpectBothWays({DeviceFormat::kNC1HWC0,
                    DeviceFormat::kNCHW,
                    {n, c, h, w},
                    {n, c1, h, w, c0},
                    c0,
                    [=](const Index& i) {
                      return (((i[0] * c1 + i[1] / c0) * h + i[2]) * w + i[3]) * c0 + i[1] % c0;
                    }});
  });
}

TEST(DeviceLayout, NC1HWC0C04) {
  for (const int64_t c : {1, 3, 4}) {
    ExpectBothWays({DeviceFormat::kNC1HWC0C04,
                    DeviceFormat::kNCHW,
                    {2, c, 7, 5},
                    {2, 1, 7, 5, 4},
                    16,
                    [](const Index& i) { return ((i[0] * 7 + i[2]) * 5 + i[3]) * 4 + i[1]; }});
  }
}

TEST(DeviceLayout, FractalZ) {
  ForAllWeights([](int64_t n, int64_t c, int64_t h, int64_t w, int64_t c0) {
    const int64_t c1 = Blocks(c, c0);
    const int64_t n1 = Blocks(n, 16);
    ExpectBothWays({DeviceFormat::kFractalZ,
                    DeviceFormat::kNCHW,
                    {n, c, h, w},
                    {c1 * h * w, n1, 16, c0},
                    c0,
                    [=](const Index& i) {
                      return ((i[1] / c0 * h + i[2]) * w + i[3]) * n1 * 16 * c0 + i[0] * c0 +
                             i[1] % c0;
                    }});
  });
}

// The grouped form of the layout, from the definition of each of its sizes.
LayoutCase GroupedCase(int64_t groups, int64_t cin, int64_t cout, int64_t h, int64_t w) {
  constexpr int64_t kC0 = 16;
  const int64_t e =
      std::min(std::lcm(std::lcm(cin, kC0) / cin, std::lcm(cout, kC0) / cout), groups);
  const int64_t c1 = Blocks(e * cin, kC0);
  const int64_t cout_opt = Blocks(e * cout, 16) * 16;
  const Place place = [=](const Index& i) {
    const int64_t group = i[0] / cout;
    const int64_t ci = group % e * cin + i[1];
    const int64_t co = group % e * cout + i[0] % cout;
    return group / e * c1 * h * w * cout_opt * kC0 + ci / kC0 * h * w * cout_opt * kC0 +
           (i[2] * w + i[3]) * cout_opt * kC0 + co * kC0 + ci % kC0;
  };
  return {DeviceFormat::kFractalZ,
          DeviceFormat::kNCHW,
          {groups * cout, cin, h, w},
          {Blocks(groups, e) * c1 * h * w, cout_opt / 16, 16, kC0},
          kC0,
          place,
          groups};
}

TEST(DeviceLayout, FractalZOfGroups) {
  for (const int64_t groups : {2, 3, 16, 32}) {
    for (int64_t cin = 1; cin <= 20; ++cin) {
      for (const int64_t cout : {1, 3, 16}) ExpectBothWays(GroupedCase(groups, cin, cout, 2, 3));
    }
  }
}

TEST(DeviceLayout, FractalNZ) {
  for (const int64_t c0 : {16, 32}) {
    for (const int64_t h : kSizes) {
      for (const int64_t w : kSizes) {
        for (const int64_t batch : {1, 3}) {
          const int64_t w1 = Blocks(w, c0);
          const int64_t h1 = Blocks(h, 16);
          ExpectBothWays({DeviceFormat::kFractalNZ,
                          DeviceFormat::kND,
                          {batch, 2, h, w},
                          {batch, 2, w1, h1, 16, c0},
                          c0,
                          [=](const Index& i) {
                            return (i[0] * 2 + i[1]) * w1 * h1 * 16 * c0 +
                                   i[3] / c0 * h1 * 16 * c0 + i[2] * c0 + i[3] % c0;
                          }});
        }
      }
    }
  }
}

TEST(DeviceLayout, FiveAxes) {
  for (const int64_t n : {1, 17}) {
    for (const int64_t c : kSizes) {
      const int64_t c1 = Blocks(c, 16);
      const int64_t n1 = Blocks(n, 16);
      ExpectBothWays({DeviceFormat::kNDC1HWC0,
                      DeviceFormat::kNCDHW,
                      {n, c, 3, 2, 5},
                      {n, 3, c1, 2, 5, 16},
                      16,
                      [=](const Index& i) {
                        return ((((i[0] * 3 + i[2]) * c1 + i[1] / 16) * 2 + i[3]) * 5 + i[4]) * 16 +
                               i[1] % 16;
                      }});
      ExpectBothWays({DeviceFormat::kFractalZ3D,
                      DeviceFormat::kNCDHW,
                      {n, c, 3, 2, 5},
                      {3 * c1 * 2 * 5, n1, 16, 16},
                      16,
                      [=](const Index& i) {
                        return (((i[2] * c1 + i[1] / 16) * 2 + i[3]) * 5 + i[4]) * n1 * 256 +
                               i[0] * 16 + i[1] % 16;
                      }});
    }
  }
}

TEST(DeviceLayout, Diagonal) {
  for (const int64_t c : kSizes) {
    ExpectBothWays({DeviceFormat::kC1HWNCoC0,
                    DeviceFormat::kNCHW,
                    {3, c, 2, 5},
                    {Blocks(c, 16), 2, 5, 3, 16, 16},
                    16,
                    [](const Index& i) {
                      return (((i[1] / 16 * 2 + i[2]) * 5 + i[3]) * 3 + i[0]) * 256 +
                             i[1] % 16 * 16 + i[1] % 16;
                    }});
  }
}

TEST(DeviceLayout, FourChannelWeight) {
  for (const auto& [h, w] : kPlanes) {
    for (const int64_t n : kSizes) {
      for (const int64_t c : {1, 3, 4}) {
        const int64_t n1 = Blocks(n, 16);
        ExpectBothWays({DeviceFormat::kFractalZC04,
                        DeviceFormat::kNCHW,
                        {n, c, h, w},
                        {Blocks(4 * h * w, 16), n1, 16, 16},
                        16,
                        [n1, width = w](const Index& i) {
                          const int64_t v = (i[2] * width + i[3]) * 4 + i[1];
                          return v / 16 * n1 * 256 + i[0] * 16 + v % 16;
                        }});
      }
    }
  }
}

TEST(DeviceLayout, RecurrentWeight) {
  for (const int64_t hidden : {1, 16, 17}) {
    for (const int64_t inputs : {1, 15, 33}) {
      const int64_t h16 = Blocks(hidden, 16);
      const int64_t i16 = Blocks(inputs, 16);
      ExpectBothWays({DeviceFormat::kFractalZnLstm,
                      DeviceFormat::kCN,
                      {inputs + hidden, 4 * hidden},
                      {i16 + h16, 4 * h16, 16, 16},
                      16,
                      [=](const Index& i) {
                        const int64_t row = i[0] < inputs ? i[0] : i[0] - inputs + i16 * 16;
                        const int64_t column = i[1] / hidden * h16 * 16 + i[1] % hidden;
                        return (row / 16 * 4 * h16 + column / 16) * 256 + column % 16 * 16 +
                               row % 16;
                      }});
    }
  }
}

// A tensor in the order of `axes` from one in the order NCHW.
Bytes Permuted(const Bytes& nchw, const Shape& sizes, const std::string& axes, size_t bytes) {
  const std::string names = "NCHW";
  Shape order;
  for (const char name : axes) order.push_back(static_cast<int64_t>(names.find(name)));
  Shape permuted;
  for (const int64_t axis : order) permuted.push_back(sizes[static_cast<size_t>(axis)]);
  Bytes result;
  ForEach(permuted, [&](const Index& index) {
    Index at(4);
    for (size_t i = 0; i < 4; ++i) at[static_cast<size_t>(order[i])] = index[i];
    const int64_t from = ((at[0] * sizes[1] + at[1]) * sizes[2] + at[2]) * sizes[3] + at[3];
    const auto* start = &nchw[static_cast<size_t>(from) * bytes];
    result.insert(result.end(), start, start + bytes);
  });
  return result;
}

Shape PermutedSizes(const Shape& nchw, const std::string& axes) {
  Shape sizes;
  for (const char name : axes) sizes.push_back(nchw[std::string("NCHW").find(name)]);
  return sizes;
}

TEST(DeviceLayout, PlainFormatsAndTheirBlocks) {
  const Shape nchw = {17, 33, 3, 70};
  const std::vector<DeviceFormat> plain = {DeviceFormat::kNCHW, DeviceFormat::kNHWC,
                                           DeviceFormat::kHWCN, DeviceFormat::kCHWN};
  for (const size_t bytes : {1U, 2U, 4U, 8U, 16U}) {
    const Bytes first = Elements(Count(nchw), bytes);
    for (const DeviceFormat from : plain) {
      const std::string axes(PlainAxes(from));
      const Bytes source = Permuted(first, nchw, axes, bytes);
      for (const DeviceFormat to : plain) {
        const std::string to_axes(PlainAxes(to));
        const auto converted = Convert({{from, PermutedSizes(nchw, axes)}, to, {}}, source, bytes);
        ASSERT_TRUE(converted) << converted.error().message();
        ASSERT_EQ(*converted, Permuted(first, nchw, to_axes, bytes)) << axes << " " << to_axes;
      }
      for (const DeviceFormat blocked : {DeviceFormat::kNC1HWC0, DeviceFormat::kFractalZ,
                                         DeviceFormat::kC1HWNC0, DeviceFormat::kNHWC1C0}) {
        const auto packed =
            Convert({{from, PermutedSizes(nchw, axes)}, blocked, {}}, source, bytes);
        ASSERT_TRUE(packed) << packed.error().message();
        const Shape device = *DeviceShape(blocked, nchw, 16);
        const auto back =
            Convert({{blocked, device}, from, PermutedSizes(nchw, axes)}, *packed, bytes);
        ASSERT_TRUE(back) << back.error().message();
        ASSERT_EQ(*back, source) << axes << " " << DeviceFormatName(blocked);
      }
    }
  }
}

TEST(DeviceLayout, WithoutWantedSizesChannelsKeepTheirPadding) {
  const auto plan = PlanLayout({{DeviceFormat::kNC1HWC0, {2, 2, 3, 4, 16}}, DeviceFormat::kNHWC});
  ASSERT_TRUE(plan) << plan.error().message();
  EXPECT_EQ(plan->result(), (Shape{2, 3, 4, 32}));
}

TEST(DeviceLayout, CropsToTheWantedSizes) {
  const Shape device = {1, 1, 2, 3, 16};
  const Bytes packed = Elements(Count(device), 2);
  const auto cropped =
      Convert({{DeviceFormat::kNC1HWC0, device}, DeviceFormat::kNCHW, {1, 2, 1, 2}}, packed, 2);
  ASSERT_TRUE(cropped) << cropped.error().message();
  for (size_t i = 0; i < 4; ++i) {
    const size_t from = (i % 2) * 16 + i / 2;
    EXPECT_EQ(std::memcmp(&(*cropped)[i * 2], &packed[from * 2], 2), 0) << i;
  }
}

TEST(DeviceLayout, OnesMayBeAddedOrLeftOut) {
  const TensorLayout rows{DeviceFormat::kFractalNZ, {2, 1, 16, 16}};
  for (const Shape& wanted : {Shape{20}, Shape{1, 20}, Shape{1, 1, 1, 20}, Shape{1, 20, 1, 1}}) {
    const auto plan = PlanLayout({rows, DeviceFormat::kNCHW, wanted});
    ASSERT_TRUE(plan) << ShapeText(wanted) << plan.error().message();
    EXPECT_EQ(plan->result(), wanted);
  }
  const TensorLayout plane{DeviceFormat::kNC1HWC0, {4, 2, 1, 1, 16}};
  EXPECT_TRUE(PlanLayout({plane, DeviceFormat::kNCHW, {4, 20}}));
  EXPECT_TRUE(PlanLayout({plane, DeviceFormat::kNC, {4, 20}}));
  EXPECT_TRUE(PlanLayout({plane, DeviceFormat::kNCHW, {4, 20, 1, 1, 1}}));
}

ErrorCode CodeOf(const LayoutRequest& request) {
  const auto plan = PlanLayout(request);
  EXPECT_FALSE(plan);
  return plan ? ErrorCode::kInternal : plan.error().code();
}

TEST(DeviceLayout, SizesThatContradictTheFormat) {
  const TensorLayout five{DeviceFormat::kNC1HWC0, {2, 1, 3, 4, 16}};
  for (const Shape& wanted : {Shape{2, 17, 3, 4}, Shape{3, 16, 3, 4}, Shape{2, 2, 2, 2, 2}}) {
    EXPECT_EQ(CodeOf({five, DeviceFormat::kNCHW, wanted}), ErrorCode::kCorrupt);
  }
  const TensorLayout weight{DeviceFormat::kFractalZ, {9, 1, 16, 16}};
  EXPECT_TRUE(PlanLayout({weight, DeviceFormat::kNCHW, {16, 16, 3, 3}}));
  for (const Shape& wanted :
       {Shape{16, 16, 3, 2}, Shape{17, 16, 3, 3}, Shape{16, 17, 3, 3}, Shape{16, 40, 2, 2}}) {
    EXPECT_EQ(CodeOf({weight, DeviceFormat::kNCHW, wanted}), ErrorCode::kCorrupt);
  }
  const TensorLayout matrix{DeviceFormat::kFractalNZ, {2, 3, 16, 16}};
  for (const Shape& wanted : {Shape{32, 32}, Shape{48, 16}, Shape{49, 32}, Shape{2, 48, 32}}) {
    EXPECT_EQ(CodeOf({matrix, DeviceFormat::kND, wanted}), ErrorCode::kCorrupt);
  }
  EXPECT_EQ(CodeOf({{DeviceFormat::kNC1HWC0, {2, 1, 3, 16}}, DeviceFormat::kNCHW}),
            ErrorCode::kCorrupt);
  EXPECT_EQ(CodeOf({{DeviceFormat::kNC1HWC0, {int64_t{1} << 40, 1 << 20, 3, 4, 16}},
                    DeviceFormat::kNCHW}),
            ErrorCode::kCorrupt);
}

TEST(DeviceLayout, SizesBeyondAllBounds) {
  constexpr int64_t kHuge = INT64_MAX;
  for (const DeviceFormat format :
       {DeviceFormat::kFractalZ, DeviceFormat::kFractalZC04, DeviceFormat::kNC1HWC0}) {
    EXPECT_FALSE(DeviceShape(format, {kHuge, kHuge, kHuge, kHuge}, 16));
    EXPECT_FALSE(DeviceShape(format, {1, 1, 1, kHuge}, 16));
    EXPECT_FALSE(DeviceShape(format, {1, 1, 1, 1}, kHuge));
  }
  EXPECT_FALSE(PlanLayout(
      {{DeviceFormat::kFractalZ, {kHuge, 1, 16, 16}}, DeviceFormat::kNCHW, {16, 16, kHuge, 1}}));
}

TEST(DeviceLayout, WhatIsMissingOrUnknown) {
  EXPECT_EQ(CodeOf({{DeviceFormat::kFractalZ, {9, 1, 16, 16}}, DeviceFormat::kNCHW}),
            ErrorCode::kInvalidArgument);
  EXPECT_EQ(CodeOf({{DeviceFormat::kFractalNZ, {2, 3, 16, 16}}, DeviceFormat::kND}),
            ErrorCode::kInvalidArgument);
  EXPECT_EQ(
      CodeOf({{DeviceFormat::kFractalZ, {9, 1, 16, 16}}, DeviceFormat::kNCHW, {15, 16, 3, 3}, 2}),
      ErrorCode::kInvalidArgument);
  EXPECT_EQ(CodeOf({{DeviceFormat::kNC1HWC0, {2, 1, 3, 4, 16}}, DeviceFormat::kND}),
            ErrorCode::kUnsupported);
  EXPECT_EQ(CodeOf({{DeviceFormat::kNC1HWC0, {2, 1, 3, 4, 16}}, DeviceFormat::kFractalZ}),
            ErrorCode::kUnsupported);
  EXPECT_EQ(CodeOf({{static_cast<DeviceFormat>(28), {2, 3}}, DeviceFormat::kNCHW}),
            ErrorCode::kUnsupported);
}

TEST(DeviceLayout, TensorsWithoutElements) {
  const auto plan =
      PlanLayout({{DeviceFormat::kNC1HWC0, {0, 1, 3, 4, 16}}, DeviceFormat::kNCHW, {0, 3, 3, 4}});
  ASSERT_TRUE(plan) << plan.error().message();
  EXPECT_EQ(plan->ToElements(), 0U);
  EXPECT_EQ(CodeOf({{DeviceFormat::kNC1HWC0, {0, 1, 3, 4, 16}}, DeviceFormat::kNCHW, {1, 1, 3, 4}}),
            ErrorCode::kCorrupt);
}

TEST(DeviceFormats, NamesAndNumbers) {
  EXPECT_EQ(DeviceFormatName(DeviceFormat::kFractalNZ), "FRACTAL_NZ");
  EXPECT_EQ(DeviceFormatName(static_cast<DeviceFormat>(77)), "FORMAT_77");
  EXPECT_EQ(ParseDeviceFormat("LOOKUP_KEYS"), ParseDeviceFormat("HASHTABLE_LOOKUP_KEYS"));
  EXPECT_EQ(ParseDeviceFormat("FOO"), std::nullopt);
  EXPECT_EQ(ParseDeviceFormat(""), std::nullopt);
  for (int number = 0; number < 50; ++number) {
    const auto format = static_cast<DeviceFormat>(number);
    EXPECT_EQ(ParseDeviceFormat(DeviceFormatName(format)), format) << number;
  }
}

TEST(DeviceFormats, BlocksOfTypes) {
  EXPECT_EQ(BlockChannels(DType::kInt8), 32);
  EXPECT_EQ(BlockChannels(DType::kUInt8), 32);
  EXPECT_EQ(BlockChannels(DType::kFloat16), 16);
}

TEST(DeviceLayout, AxisWithoutAPlaceIsNotDropped) {
  const TensorLayout volume{DeviceFormat::kNDC1HWC0, {2, 3, 1, 4, 5, 16}};
  EXPECT_FALSE(PlanLayout({volume, DeviceFormat::kNCHW}));
  EXPECT_FALSE(PlanLayout({volume, DeviceFormat::kNCHW, {2, 16, 4, 5}}));
  EXPECT_TRUE(PlanLayout({{volume.format, {2, 1, 1, 4, 5, 16}}, DeviceFormat::kNCHW}));
}

}  // namespace
}  // namespace plumbline
