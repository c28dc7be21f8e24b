// Takes a directory away.

#ifndef PLUMBLINE_BASE_FILE_REMOVE_DIRECTORY_H_
#define PLUMBLINE_BASE_FILE_REMOVE_DIRECTORY_H_

#include <string>

#include "plumbline/result.h"

namespace plumbline {

// With the files in it; a directory in it is an error. Absent is success. kIo.
Status RemoveDirectory(const std::string& path);

}  // namespace plumbline

#endif  // PLUMBLINE_BASE_FILE_REMOVE_DIRECTORY_H_
