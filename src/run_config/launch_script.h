// Hyperparameters of launch scripts, shell and Python.

#ifndef PLUMBLINE_RUN_CONFIG_LAUNCH_SCRIPT_H_
#define PLUMBLINE_RUN_CONFIG_LAUNCH_SCRIPT_H_

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/text/yaml_file.h"
#include "plumbline/record.h"
#include "plumbline/result.h"

namespace plumbline::run_config {

// Python dictionaries and JSON, given in pieces of which some do not belong to them.

// Takes one value apart into tokens. Texts in single or double quotes (adjacent ones are one),
// numbers, True, False, None and their spellings in JSON, dictionaries with texts as keys, lists,
// and tuples, which become lists.
class LiteralParser {
 public:
  // Whether `piece` continues the value up to its end; if not, nothing of it was taken. What
  // follows the end of the value in the same piece does not count. `failed_at`: where the token
  // begins that does not fit.
  bool Add(std::string_view piece, size_t* failed_at = nullptr);
  [[nodiscard]] bool complete() const { return !tokens_.empty() && open_.empty(); }
  // Requires: complete().
  Value Take();

 private:
  enum class Kind : uint8_t { kOpen, kClose, kColon, kComma, kText, kOther };
  enum class Wants : uint8_t { kFirst, kItem, kColon, kValue, kEnd };
  struct Token {
    Kind kind = Kind::kOther;
    char bracket = 0;  // of kOpen and kClose
    Value value;       // of kText and kOther
  };
  // A container that is not closed yet.
  struct Open {
    char bracket = 0;
    Wants wants = Wants::kFirst;
    bool after_text = false;  // the last token is a text that may go on
  };

  static bool Read(std::string_view& rest, Token& token);
  bool Accept(Token token);
  bool AcceptValue(Token token);
  Value Build(size_t& at) const;

  std::vector<Token> tokens_;
  std::vector<Open> open_;
};

// The arguments of a training, read from the shell script that launches it or from a YAML file.

// Values by name, as JSON texts: "\"8\"", "true", "[1, 2]", "0.1". In the order of first sight.
class LaunchArguments {
 public:
  // The same name with another value becomes {"description": "duplicate_value", "values": [...]}.
  void Add(const std::string& name, const std::string& json);
  [[nodiscard]] bool empty() const { return names_.empty(); }
  // One flat JSON object, four blanks deep.
  [[nodiscard]] std::string Json() const;
  // The values of one name; empty: unknown.
  [[nodiscard]] const std::vector<std::string>& ValuesOf(const std::string& name) const;

 private:
  std::vector<std::string> names_;
  std::map<std::string, std::vector<std::string>> values_;
};

// Options --name value of the first line that runs msrun, torchrun, or Python (with or without
// torch.distributed.launch): $NAME and ${NAME} stand for what the script assigns to them before,
// --name alone is true, --name=value is read too. Comments and text behind "|" do not count.
// kInvalidArgument when nothing is launched.
Status ReadLaunchScript(std::string_view text, LaunchArguments& out);

// The values of a YAML file under dotted names; lists of plain values stay whole. Errors name it.
Status ReadLaunchYaml(const YamlFile& file, LaunchArguments& out);

// By the ending of the name: .sh or .yaml. kInvalidArgument for others; errors name the file.
Status ReadLaunchFile(const std::string& path, LaunchArguments& out);

}  // namespace plumbline::run_config

#endif  // PLUMBLINE_RUN_CONFIG_LAUNCH_SCRIPT_H_
