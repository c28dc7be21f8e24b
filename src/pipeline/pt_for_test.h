// Tensor files for tests.

#ifndef PLUMBLINE_PIPELINE_PT_FOR_TEST_H_
#define PLUMBLINE_PIPELINE_PT_FOR_TEST_H_

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/digest.h"
#include "base/file.h"
#include "formats/torch_pt.h"

namespace plumbline {

// A .pt file of four floats.
inline void WritePt(const std::string& path, const std::array<float, 4>& values) {
  const std::span<const std::byte> data = std::as_bytes(std::span(values));
  const int64_t sizes[] = {4};
  const torch_pt::Frame frame =
      torch_pt::MakeFrame(DType::kFloat32, sizes, data.size(), Crc32(data));
  const std::string body(reinterpret_cast<const char*>(data.data()), data.size());
  ASSERT_TRUE(WriteFileAtomically(path, frame.head + body + frame.tail, false));
}

}  // namespace plumbline

#endif  // PLUMBLINE_PIPELINE_PT_FOR_TEST_H_
