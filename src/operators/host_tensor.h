// One tensor of a device dump on its way to a file: as it lies on the device, or in a layout that
// was asked for.

#ifndef PLUMBLINE_OPERATORS_HOST_TENSOR_H_
#define PLUMBLINE_OPERATORS_HOST_TENSOR_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "base/memory/pages.h"
#include "formats/acl/acl_dump.h"
#include "operators/msaccucmp_code.h"
#include "operators/user_code.h"
#include "tensor/device_layout.h"

namespace plumbline::operators {

// Stored elements, not decoded. Move-only; `bytes` lie in the dump or in `owned`.
struct HostTensor {
  int32_t data_type = 0;  // of acl::FindType()
  DeviceFormat format = DeviceFormat::kND;
  Shape sizes;
  std::span<const std::byte> bytes;
  KeptBuffer owned;
};

// The tensor as it lies. `slice`: sizes of the part that one thread computed, in place of those of
// the whole. kInvalidDumpData: cut.
DumpResult<HostTensor> AsDumped(const acl::DumpedTensor& tensor, const std::optional<Shape>& slice);

// What the layout is to become.
struct WantedLayout {
  DeviceFormat format = DeviceFormat::kNCHW;
  std::optional<Shape> sizes;  // in place of the original shape
};

// The tensor in that layout, without padding where the shape without it is known. kInvalidParameter
// (FRACTAL_NZ without a shape that fits), kInvalidDumpData, kInvalidDataType, kInvalidFormat (no
// such conversion), kInvalidShape, kConverterFailed. A converter of the user comes before the
// built-in one; its result is cut to the wanted or original shape where it is larger.
DumpResult<HostTensor> InLayout(const acl::DumpedTensor& tensor, const std::optional<Shape>& slice,
                                const WantedLayout& wanted, UserCode* own = nullptr);

}  // namespace plumbline::operators

#endif  // PLUMBLINE_OPERATORS_HOST_TENSOR_H_
