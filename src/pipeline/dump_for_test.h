// Small dump directories for tests, written as the recorders write them.

#ifndef PLUMBLINE_PIPELINE_DUMP_FOR_TEST_H_
#define PLUMBLINE_PIPELINE_DUMP_FOR_TEST_H_

#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

namespace plumbline {

// Text of a float32 tensor with these statistics and a mean of max / 4; `extra` adds members (",
// \"md5\": ...").
inline std::string TensorJson(double max, double min, double norm, const std::string& shape = "[4]",
                              const std::string& extra = {}) {
  return fmt::format(R"({{"type": "torch.Tensor", "dtype": "torch.float32", "shape": {}, )"
                     R"("Max": {}, "Min": {}, "Mean": {}, "Norm": {}, "requires_grad": false{}}})",
                     shape, max, min, max / 4, norm, extra);
}

inline std::string ScalarJson(const std::string& type, const std::string& value) {
  return fmt::format(R"({{"type": "{}", "value": {}}})", type, value);
}

// One side of a comparison under construction.
class DumpForTest {
 public:
  explicit DumpForTest(std::string directory) : directory_(std::move(directory)) {
    std::filesystem::remove_all(directory_);
    std::filesystem::create_directories(directory_);
  }

  DumpForTest& Add(const std::string& name, const std::string& inputs, const std::string& outputs,
                   const std::string& parent = {}) {
    entries_.push_back(
        fmt::format(R"("{}": {{"input_args": [{}], "input_kwargs": {{}}, "output": [{}]}})", name,
                    inputs, outputs));
    parents_.push_back(
        fmt::format(R"("{}": {})", name, parent.empty() ? "null" : "\"" + parent + "\""));
    return *this;
  }
  DumpForTest& AddEntry(const std::string& text) {
    entries_.push_back(text);
    return *this;
  }

  // Writes the files and returns the directory.
  std::string Write(const std::string& task = "statistics") const {
    std::ofstream(directory_ + "/dump.json")
        << fmt::format(R"({{"task": "{}", "level": "mix", "framework": "pytorch", )"
                       R"("dump_data_dir": null, "data": {{{}}}}})",
                       task, Joined(entries_));
    std::ofstream(directory_ + "/construct.json") << fmt::format("{{{}}}", Joined(parents_));
    return directory_;
  }

 private:
  static std::string Joined(const std::vector<std::string>& parts) {
    std::string text;
    for (const std::string& part : parts) text += (text.empty() ? "" : ",\n") + part;
    return text;
  }

  std::string directory_;
  std::vector<std::string> entries_;
  std::vector<std::string> parents_;
};

}  // namespace plumbline

#endif  // PLUMBLINE_PIPELINE_DUMP_FOR_TEST_H_
