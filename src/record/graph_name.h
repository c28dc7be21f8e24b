// Names of static-graph dumps: of kernels, and a number in front of a tensor's name that says in
// which of several directories it lies.

#ifndef PLUMBLINE_RECORD_GRAPH_NAME_H_
#define PLUMBLINE_RECORD_GRAPH_NAME_H_

#include <cstddef>
#include <string>
#include <string_view>

namespace plumbline {

struct GraphName {
  size_t directory = 0;   // index
  std::string_view name;  // borrowed
};

// "2:file" is in the third directory; "file", and a number that `directories` does not reach, are
// names of the first one.
GraphName ParseGraphName(std::string_view data_name, size_t directories);

// What stands in front of the names of a directory: nothing for the first one.
std::string GraphNamePrefix(size_t directory);

// "Default_net_Conv2D-op1" of "Default/net/Conv2D-op1": a kernel as the names of files and most
// tables have it.
std::string MangledKernel(std::string_view full_name);

}  // namespace plumbline

#endif  // PLUMBLINE_RECORD_GRAPH_NAME_H_
