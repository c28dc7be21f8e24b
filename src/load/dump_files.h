// Which files of a directory are device dumps.

#ifndef PLUMBLINE_LOAD_DUMP_FILES_H_
#define PLUMBLINE_LOAD_DUMP_FILES_H_

#include <string>
#include <vector>

#include "plumbline/result.h"

namespace plumbline::load {

struct DumpPath {
  std::string path;
  std::string name;       // of the file, or what mapping.csv says for a name of digits
  std::string directory;  // below the one that was searched, "" at its top
};

struct DumpFiles {
  std::vector<DumpPath> files;        // by directory and name
  std::vector<std::string> left_out;  // paths of other files; hidden ones do not count
  std::vector<Error> unreadable;      // directories below that could not be listed
  std::vector<std::string> notes;     // about tables of names
};

struct DumpSearch {
  bool recursive = false;  // also directories below; links to directories are not followed
  bool takes_atb = false;  // tensor files of ATB too (formats/acl/atb_bin.h)
};

// The regular files whose names are those of dumps (formats/acl/acl_file_name.h), and links to
// nothing of such names. kNotFound, kIo: of `directory` itself.
Result<DumpFiles> FindDumpFiles(const std::string& directory, const DumpSearch& search);

}  // namespace plumbline::load

#endif  // PLUMBLINE_LOAD_DUMP_FILES_H_
