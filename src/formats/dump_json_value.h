// Reads one value of a dump.json entry: the argument tree with its tensor objects.

#ifndef PLUMBLINE_FORMATS_DUMP_JSON_VALUE_H_
#define PLUMBLINE_FORMATS_DUMP_JSON_VALUE_H_

#include <string>
#include <string_view>

#include "base/json.h"
#include "formats/json_feed.h"
#include "plumbline/record.h"

namespace plumbline::dump_json {

// Reads values from `feed`, which must outlive this object. An object with a
// text "type" and a text "dtype" is a tensor. A key that occurs again in one object replaces the
// earlier value, as in Python.
class ValueReader {
 public:
  explicit ValueReader(JsonFeed& feed) : feed_(feed), in_(feed.in()) {}

  // False on failure: either in.failed(), or problem() says which value has the wrong type.
  bool Read(Value& out);
  // The members of the object that comes next. Requires: in.Peek() == kObject.
  bool ReadMembers(ValueMap& out);
  [[nodiscard]] const std::string& problem() const { return problem_; }

 private:
  bool ReadNumber(Value& out);
  bool ReadList(Value& out);
  bool ReadObject(Value& out);
  // Members of a tensor object up to its end, the opening bracket being consumed.
  bool ReadTensor(json::Reader& in, TensorRecord& tensor, bool has_type);
  bool ReadTensorMember(json::Reader& in, std::string_view key, TensorRecord& tensor);
  bool ReadStatistic(json::Reader& in, std::string_view key, Statistic& out);
  bool ReadOptionalStatistic(json::Reader& in, std::string_view key, std::optional<Statistic>& out);
  bool ReadShape(json::Reader& in, Shape& shape);
  bool ReadDigest(json::Reader& in, std::optional<std::string>& out);
  bool ReadOptionalText(json::Reader& in, std::string_view key, std::optional<std::string>& out);
  bool ReadCount(json::Reader& in, std::string_view key, std::optional<int64_t>& out);
  bool ReadGrad(json::Reader& in, std::optional<bool>& out);
  bool WrongType(std::string_view key, std::string_view expected, json::Kind got);

  JsonFeed& feed_;
  json::Reader& in_;
  std::string problem_;
};

}  // namespace plumbline::dump_json

#endif  // PLUMBLINE_FORMATS_DUMP_JSON_VALUE_H_
