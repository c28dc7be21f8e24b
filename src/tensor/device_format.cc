#include "tensor/device_format.h"

namespace plumbline {
namespace {

struct FormatRow {
  int32_t number;
  std::string_view name;
  std::string_view other_name;  // another accepted spelling, or empty
  std::string_view axes;        // see PlainAxes()
};

constexpr FormatRow kFormats[] = {
    {0, "NCHW", "", "NCHW"},
    {1, "NHWC", "", "NHWC"},
    {2, "ND", "", ""},
    {3, "NC1HWC0", "", ""},
    {4, "FRACTAL_Z", "", ""},
    {5, "NC1C0HWPAD", "", ""},
    {6, "NHWC1C0", "", ""},
    {7, "FSR_NCHW", "", ""},
    {8, "FRACTAL_DECONV", "", ""},
    {9, "C1HWNC0", "", ""},
    {10, "FRACTAL_DECONV_TRANSPOSE", "", ""},
    {11, "FRACTAL_DECONV_SP_STRIDE_TRANS", "", ""},
    {12, "NC1HWC0_C04", "", ""},
    {13, "FRACTAL_Z_C04", "", ""},
    {14, "CHWN", "", "CHWN"},
    {15, "FRACTAL_DECONV_SP_STRIDE8_TRANS", "DECONV_SP_STRIDE8_TRANS", ""},
    {16, "HWCN", "", "HWCN"},
    {17, "NC1KHKWHWC0", "", ""},
    {18, "BN_WEIGHT", "", ""},
    {19, "FILTER_HWCK", "", "HWCN"},
    {20, "HASHTABLE_LOOKUP_LOOKUPS", "LOOKUP_LOOKUPS", ""},
    {21, "HASHTABLE_LOOKUP_KEYS", "LOOKUP_KEYS", ""},
    {22, "HASHTABLE_LOOKUP_VALUE", "LOOKUP_VALUE", ""},
    {23, "HASHTABLE_LOOKUP_OUTPUT", "LOOKUP_OUTPUT", ""},
    {24, "HASHTABLE_LOOKUP_HITS", "LOOKUP_HITS", ""},
    {25, "C1HWNCoC0", "C1HWNCOC0", ""},
    {26, "MD", "", ""},
    {27, "NDHWC", "", "NDHWC"},
    {28, "FRACTAL_ZZ", "", ""},
    {29, "FRACTAL_NZ", "", ""},
    {30, "NCDHW", "", "NCDHW"},
    {31, "DHWCN", "", "DHWCN"},
    {32, "NDC1HWC0", "", ""},
    {33, "FRACTAL_Z_3D", "", ""},
    {34, "CN", "", "CN"},
    {35, "NC", "", "NC"},
    {36, "DHWNC", "", "DHWNC"},
    {37, "FRACTAL_Z_3D_TRANSPOSE", "", ""},
    {38, "FRACTAL_ZN_LSTM", "", ""},
    {39, "FRACTAL_Z_G", "", ""},
    {40, "RESERVED", "", ""},
    {41, "ALL", "", ""},
    {42, "NULL", "", ""},
    {43, "ND_RNN_BIAS", "", ""},
    {44, "FRACTAL_ZN_RNN", "", ""},
    {45, "YUV", "", ""},
    {46, "YUV_A", "", ""},
    {47, "NCL", "", "NCL"},
    {48, "FRACTAL_Z_WINO", "", ""},
    {49, "C1HWC0", "", ""},
    {255, "MAX", "", ""},
};

const FormatRow* RowOf(DeviceFormat format) {
  for (const FormatRow& row : kFormats) {
    if (row.number == static_cast<int32_t>(format)) return &row;
  }
  return nullptr;
}

}  // namespace

std::string DeviceFormatName(DeviceFormat format) {
  const FormatRow* row = RowOf(format);
  if (row == nullptr) return "FORMAT_" + std::to_string(static_cast<int32_t>(format));
  return std::string(row->name);
}

std::optional<DeviceFormat> ParseDeviceFormat(std::string_view name) {
  if (name.empty()) return std::nullopt;
  for (const FormatRow& row : kFormats) {
    if (row.name == name || row.other_name == name) return static_cast<DeviceFormat>(row.number);
  }
  return std::nullopt;
}

std::string_view PlainAxes(DeviceFormat format) {
  const FormatRow* row = RowOf(format);
  return row == nullptr ? std::string_view() : row->axes;
}

}  // namespace plumbline
