// The numbers and names of the memory formats that Ascend devices give a tensor.
// Thread-safe: static tables only.

#ifndef PLUMBLINE_TENSOR_DEVICE_FORMAT_H_
#define PLUMBLINE_TENSOR_DEVICE_FORMAT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace plumbline {

// A format as it is numbered in dump files (the aclFormat numbers). Files may hold numbers that
// have no enumerator here; they are kept as they are. Only formats that code names are listed.
enum class DeviceFormat : int32_t {
  kNCHW = 0,
  kNHWC = 1,
  kND = 2,
  kNC1HWC0 = 3,
  kFractalZ = 4,
  kNHWC1C0 = 6,
  kC1HWNC0 = 9,
  kNC1HWC0C04 = 12,
  kFractalZC04 = 13,
  kCHWN = 14,
  kHWCN = 16,
  kFilterHWCK = 19,
  kC1HWNCoC0 = 25,
  kNDHWC = 27,
  kFractalNZ = 29,
  kNCDHW = 30,
  kDHWCN = 31,
  kNDC1HWC0 = 32,
  kFractalZ3D = 33,
  kCN = 34,
  kNC = 35,
  kDHWNC = 36,
  kFractalZnLstm = 38,
  kReserved = 40,
  kNCL = 47,
  kC1HWC0 = 49,
};

// "NC1HWC0"; "FORMAT_77" for a number without a name.
std::string DeviceFormatName(DeviceFormat format);

// The format spelled `name` in upper case; both spellings where the command line of the device's
// own tool differs from its header ("LOOKUP_KEYS", "HASHTABLE_LOOKUP_KEYS"). Nothing if unknown.
std::optional<DeviceFormat> ParseDeviceFormat(std::string_view name);

// The axes of a format without blocks or padding, outermost first: "NCHW", "CN". Empty for ND,
// whose axes have no names, for blocked formats and for unknown ones.
std::string_view PlainAxes(DeviceFormat format);

}  // namespace plumbline

#endif  // PLUMBLINE_TENSOR_DEVICE_FORMAT_H_
