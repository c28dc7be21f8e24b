// Many small files of one directory, each read with three system calls and no allocation.

#ifndef PLUMBLINE_BASE_SMALL_FILE_H_
#define PLUMBLINE_BASE_SMALL_FILE_H_

#include <cstddef>
#include <span>
#include <string_view>

#include "base/directory.h"
#include "plumbline/result.h"

namespace plumbline {

// Reads a file into `buffer` at once. Returns its bytes, a part of `buffer`, or an empty span when
// the file is empty or does not fit: read it in another way. Some network file systems may give
// fewer bytes than there are: what is cut is to be read in another way, too. kNotFound, kIo.
Result<std::span<const std::byte>> ReadSmallFile(const Directory& directory, std::string_view name,
                                                 std::span<std::byte> buffer);

}  // namespace plumbline

#endif  // PLUMBLINE_BASE_SMALL_FILE_H_
