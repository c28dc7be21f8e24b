// Hash of texts as keys of unordered containers that are asked by views, without a copy.

#ifndef PLUMBLINE_BASE_TEXT_TEXT_HASH_H_
#define PLUMBLINE_BASE_TEXT_TEXT_HASH_H_

#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

namespace plumbline {

struct TextHash : std::hash<std::string_view> {
  using is_transparent = void;
};

template <class T>
using TextMap = std::unordered_map<std::string, T, TextHash, std::equal_to<>>;
using TextSet = std::unordered_set<std::string, TextHash, std::equal_to<>>;

}  // namespace plumbline

#endif  // PLUMBLINE_BASE_TEXT_TEXT_HASH_H_
