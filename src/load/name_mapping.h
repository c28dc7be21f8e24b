// mapping.csv of MindSpore's dumps: files whose names would have been too long.

#ifndef PLUMBLINE_LOAD_NAME_MAPPING_H_
#define PLUMBLINE_LOAD_NAME_MAPPING_H_

#include <map>
#include <string>

#include "plumbline/result.h"

namespace plumbline::load {

// The full name of each file of a directory that has a number for a name, "4711.npy". A name is
// everything behind the first comma: MindSpore does not quote. Rows of files that are not there are
// kept. Empty without the table.
Result<std::map<std::string, std::string>> ReadNameMapping(const std::string& directory);

}  // namespace plumbline::load

#endif  // PLUMBLINE_LOAD_NAME_MAPPING_H_
