#include "record/graph_name.h"

#include <fmt/format.h>

#include "base/text_parts.h"

namespace plumbline {

GraphName ParseGraphName(std::string_view data_name, size_t directories) {
  const size_t colon = data_name.find(':');
  if (colon == std::string_view::npos) return {0, data_name};
  const auto number = ParseNatural(data_name.substr(0, colon));
  if (!number || static_cast<uint64_t>(*number) >= directories) return {0, data_name};
  return {static_cast<size_t>(*number), data_name.substr(colon + 1)};
}

std::string GraphNamePrefix(size_t directory) {
  return directory == 0 ? std::string() : fmt::format("{}:", directory);
}

std::string MangledKernel(std::string_view full_name) {
  std::string text(full_name);
  for (char& c : text) {
    if (c == '/' || c == '\\' || c == '.' || c == ' ') c = '_';
  }
  return text;
}

}  // namespace plumbline
