// Objects of a store, "s3://bucket/run/step0/rank0": where they stand on this machine.
//
// A program beside this one (python/plumbline/objects.py) lays out a directory in which each object
// has a file of its name and size that takes no space, brings the bytes when they are asked for,
// and stores what was written below. The directory is named by the environment variable
// PLUMBLINE_OBJECTS; without it, no path is one of an object.

#ifndef PLUMBLINE_BASE_FILE_OBJECT_STORE_H_
#define PLUMBLINE_BASE_FILE_OBJECT_STORE_H_

#include <string>
#include <string_view>

#include "plumbline/result.h"

namespace plumbline {

class Directory;  // base/file/directory.h

}  // namespace plumbline

namespace plumbline::object_store {

inline constexpr const char* kDirectory = "PLUMBLINE_OBJECTS";
// Environment: the paths below which the directory has objects, a line each.
inline constexpr const char* kListed = "PLUMBLINE_OBJECTS_LISTED";

// The path of a store in a word of a command line: the word, or what follows "--option=" or "-o".
// Empty: there is none.
std::string_view NamedBy(std::string_view word);

// Whether the environment names the directory.
bool IsOpen();

// Whether the directory has what is below `path`, one of a store.
bool IsListed(std::string_view path);

// The path that system calls take for `path`; that itself, where it is none of a store.
class LocalPath {
 public:
  // Keeps a reference to `path`, which must live as long.
  explicit LocalPath(const std::string& path);
  LocalPath(const LocalPath&) = delete;
  LocalPath& operator=(const LocalPath&) = delete;

  [[nodiscard]] const char* c_str() const { return text().c_str(); }
  [[nodiscard]] const std::string& text() const { return is_stored_ ? stored_ : path_; }
  // Whether `path` names an object.
  [[nodiscard]] bool is_stored() const { return is_stored_; }

 private:
  const std::string& path_;
  std::string stored_;
  bool is_stored_ = false;
};

// Before the file is opened to be read: its bytes, where they have not come yet. Whether it may be an
// object, whose bytes may be dropped again; not so: it is none, or does not exist. kIo: the store
// did not give them.
Result<bool> Fetch(const LocalPath& path);
Result<bool> FetchInside(const Directory& directory, std::string_view name);
// Whether what is open is an object whose bytes are not there. To be asked before it is read.
bool LacksBytes(int fd);

}  // namespace plumbline::object_store

#endif  // PLUMBLINE_BASE_FILE_OBJECT_STORE_H_
