// How names of tensors that are put together from several files begin, and what says that their
// elements stand in order of size (load/gathered_tensor.h).

#ifndef PLUMBLINE_RECORD_GATHERED_NAME_H_
#define PLUMBLINE_RECORD_GATHERED_NAME_H_

#include <string_view>

namespace plumbline {

inline constexpr std::string_view kGatheredName = "gathered;";
inline constexpr std::string_view kAscendingField = "ascending";

// Whether such a name asks for elements in order of size, which says nothing about their places.
inline bool IsInOrderOfSize(std::string_view data_name) {
  if (!data_name.starts_with(kGatheredName)) return false;
  const size_t at = data_name.find(kAscendingField);
  const size_t end = at + kAscendingField.size();
  return at != data_name.npos && data_name[at - 1] == ';' && end < data_name.size() &&
         data_name[end] == ';';
}

}  // namespace plumbline

#endif  // PLUMBLINE_RECORD_GATHERED_NAME_H_
