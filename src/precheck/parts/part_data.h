// What the parts of a pre-check that several processes share keep of calls that do not pass, until
// all parts are put together.

#ifndef PLUMBLINE_PRECHECK_PARTS_PART_DATA_H_
#define PLUMBLINE_PRECHECK_PARTS_PART_DATA_H_

#include <cstdint>
#include <string>

#include "base/process/shards.h"
#include "plumbline/result.h"

namespace plumbline::precheck {

// The directory of a part, "<stem>_<of the output directory>_3_of_64": on the file system of
// `stem`, and of no other command's parts. kIo.
Result<std::string> PartDirectory(const std::string& stem, const std::string& output_directory,
                                  const ShardPlace& place);
// Moves its files to `directory`, which is made for them, and takes it away. kNotFound: it is not
// there; kIo.
Status TakePartFiles(const std::string& part_directory, const std::string& directory);

}  // namespace plumbline::precheck

#endif  // PLUMBLINE_PRECHECK_PARTS_PART_DATA_H_
