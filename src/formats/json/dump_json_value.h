// Reads one value of a dump.json entry: the argument tree with its tensor objects.

#ifndef PLUMBLINE_FORMATS_JSON_DUMP_JSON_VALUE_H_
#define PLUMBLINE_FORMATS_JSON_DUMP_JSON_VALUE_H_

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "base/text/json.h"
#include "formats/json/json_feed.h"
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
  // What of a tensor has been read, and where it begins if its head may be remembered.
  struct Progress {
    bool has_type = false, has_shape = false;
    std::optional<size_t> start;
  };
  // Type, dtype and shape of tensors and the text that spells them, up to behind "Max": a long
  // recording has few of them.
  struct Head {
    std::string text;  // empty: none yet
    std::string type, dtype_text;
    Shape shape;
  };

  // The head that the text goes on with, which is stepped over; null: none.
  const Head* EnterKnownHead();
  void RememberHead(size_t start, const TensorRecord& tensor);
  // Members of a tensor object up to its end, the opening bracket being consumed.
  bool ReadTensor(json::Reader& in, TensorRecord& tensor, Progress progress);
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
  std::array<Head, 8> heads_;
  size_t oldest_head_ = 0;
};

}  // namespace plumbline::dump_json

#endif  // PLUMBLINE_FORMATS_JSON_DUMP_JSON_VALUE_H_
