// Key texts of dump.json shared by its writer and reader (docs/formats/dump_json.md).

#ifndef PLUMBLINE_FORMATS_DUMP_JSON_KEYS_H_
#define PLUMBLINE_FORMATS_DUMP_JSON_KEYS_H_

#include <string_view>

namespace plumbline::dump_json {

// Header.
inline constexpr std::string_view kTask = "task";
inline constexpr std::string_view kLevel = "level";
inline constexpr std::string_view kFramework = "framework";
inline constexpr std::string_view kDumpDataDir = "dump_data_dir";
inline constexpr std::string_view kData = "data";
// Tensor object.
inline constexpr std::string_view kType = "type";
inline constexpr std::string_view kDType = "dtype";
inline constexpr std::string_view kShape = "shape";
inline constexpr std::string_view kMax = "Max";
inline constexpr std::string_view kMin = "Min";
inline constexpr std::string_view kMean = "Mean";
inline constexpr std::string_view kNorm = "Norm";
inline constexpr std::string_view kRequiresGrad = "requires_grad";
inline constexpr std::string_view kMaxFinite = "Max_except_inf_nan";
inline constexpr std::string_view kMinFinite = "Min_except_inf_nan";
inline constexpr std::string_view kDigest = "md5";
inline constexpr std::string_view kDataName = "data_name";
inline constexpr std::string_view kNanCount = "nan_count";
inline constexpr std::string_view kInfCount = "inf_count";
inline constexpr std::string_view kZeroCount = "zero_count";

}  // namespace plumbline::dump_json

#endif  // PLUMBLINE_FORMATS_DUMP_JSON_KEYS_H_
