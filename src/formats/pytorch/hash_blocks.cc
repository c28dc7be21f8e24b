#include "formats/pytorch/hash_blocks.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/text/json.h"
#include "base/text/text_parts.h"
#include "formats/pytorch/log_lines.h"
#include "formats/pytorch/printed_value.h"

namespace plumbline::debug_mode {

namespace {

class BlockReader {
 public:
  BlockReader(LoggedCalls& calls, RunLoss& loss, bool of_hashes, bool salvage)
      : calls_(calls), loss_(loss), of_hashes_(of_hashes), salvage_(salvage) {}

  Status Read(std::string_view text) {
    Lines lines(text);
    if (!lines.Next()) return At(1, "an empty file");
    const std::string_view head = of_hashes_ ? kHashCount : kActivationCount;
    const auto announced =
        ParseNatural(lines.line().substr(std::min(head.size(), lines.line().size())));
    if (!announced) return At(1, "no number of blocks");
    Status status;
    int64_t blocks = 0;
    while (status && lines.Next()) {
      number_ = lines.number();
      if (lines.line().starts_with('[')) {
        status = Flush();
        if (!status) break;
        complete_ = lines.begin();
        ++blocks;
        status = Begin(lines.line());
      } else if (!has_block_) {
        status = Head(lines.line());
      } else if (!lines.line().empty()) {
        status = Member(lines.line());
      }
    }
    if (status && blocks == *announced) status = Flush();
    if (status && blocks == *announced) return {};
    const bool is_cut = lines.is_last() || blocks < *announced;
    if (is_cut && salvage_ && (!status || blocks != *announced)) {
      loss_.truncated = true;
      loss_.byte_offset = complete_;
      return {};
    }
    if (!status) return status;
    return At(lines.number(),
              fmt::format("{} blocks, but the first line says {}{}", blocks, *announced,
                          blocks < *announced ? "; the dump may be cut" : ""));
  }

 private:
  [[nodiscard]] Error Bad(std::string_view what) const { return At(number_, what); }

  // "Excluded ops dispatched: t, view", the rule below.
  Status Head(std::string_view line) {
    constexpr std::string_view kExcluded = "Excluded ops dispatched: ";
    if (line.starts_with(kExcluded)) {
      const std::string_view list = line.substr(kExcluded.size());
      loss_.unseen.push_back(fmt::format(
          "operators that torchtitan leaves out, and so does the dump: {}; nor has it tensors of "
          "less than its least size",
          list));
      return {};
    }
    if (line.empty() || line.find_first_not_of('=') == std::string_view::npos) return {};
    return Bad(fmt::format("no line of a dump of {}", of_hashes_ ? "hashes" : "numerics"));
  }

  // "[layers.0.wq/op_3_aten::mm]"
  Status Begin(std::string_view line) {
    constexpr std::string_view kOp = "/op_";
    const size_t at = line.rfind(kOp);
    const size_t digits = at == std::string_view::npos ? at : at + kOp.size();
    const size_t end = digits == std::string_view::npos ? digits : line.find('_', digits);
    if (end == std::string_view::npos || !IsDigits(line.substr(digits, end - digits)) ||
        !line.ends_with(']')) {
      return Bad("no block (expected [MODULE/op_NUMBER_OPERATOR])");
    }
    block_ = {};
    has_block_ = true;
    block_.module = line.substr(1, at - 1);
    block_.name = line.substr(end + 1, line.size() - end - 2);
    return {};
  }

  Status Member(std::string_view line) {
    const size_t colon = line.find(':');
    if (!line.starts_with("  ") || colon == std::string_view::npos) {
      return Bad(fmt::format("no line of a dump of {}", of_hashes_ ? "hashes" : "numerics"));
    }
    const std::string_view key = line.substr(2, colon - 2), value = Trimmed(line.substr(colon + 1));
    if (key == "Call type") {
      block_.is_kernel = value == "triton kernel";
    } else if (key == "Phase") {
      block_.is_backward = value == "backward";
    } else if (key == "Location") {
      const size_t last = value.rfind(':');
      const bool has_line = last != std::string_view::npos;
      block_.stack = Frames(std::vector<std::string>{
          fmt::format("File {}, line {}", value.substr(0, last),
                      has_line ? value.substr(last + 1) : std::string_view("?"))});
    } else if (key == "Input hashes" || key == "Output hashes" || key == "Output hash") {
      std::vector<HashedLeaf>& leaves = key == "Input hashes" ? block_.inputs : block_.outputs;
      return of_hashes_ ? NamedLeaves(value, key == "Input hashes", leaves)
                        : PlainLeaves(value, key == "Input hashes", leaves);
    } else if (key == "Shape") {
      return ShapeLine(value);
    } else if (Statistic* statistic = StatisticOf(key); statistic != nullptr) {
      const auto number = ParseReal(value);
      if (!number) return Bad(fmt::format("{} is no number", value));
      *statistic = *number;
    } else if (key == "L1 norm" && block_.outputs.empty()) {
      // Older releases: the number that is the hash in newer ones.
      block_.outputs.push_back({"0", {Printed::Kind::kWord, std::string(value)}});
    }
    return {};
  }

  Statistic* StatisticOf(std::string_view key) {
    if (key != "L2 norm" && key != "Min" && key != "Max" && key != "Mean") return nullptr;
    if (!block_.result) block_.result = NewTensor();
    TensorRecord& result = *block_.result;
    return key == "L2 norm" ? &result.norm
           : key == "Min"   ? &result.min
           : key == "Max"   ? &result.max
                            : &result.mean;
  }

  // "torch.Size([2, 8]), Dtype: torch.float32"
  Status ShapeLine(std::string_view value) {
    constexpr std::string_view kSize = "torch.Size([", kType = "]), Dtype: ";
    const size_t end = value.find(kType);
    if (!value.starts_with(kSize) || end == std::string_view::npos) return Bad("no shape and type");
    TensorRecord result = NewTensor(value.substr(end + kType.size()));
    const std::string_view sizes = value.substr(kSize.size(), end - kSize.size());
    for (const std::string_view part : SplitAt(sizes, ',')) {
      if (sizes.empty()) break;
      const auto size = ParseNatural(Trimmed(part, " "));
      if (!size) return Bad(fmt::format("{} is no shape", value));
      result.shape.push_back(*size);
    }
    if (!ElementCount(result.shape)) return Bad(fmt::format("{} is no shape", value));
    block_.result = std::move(result);
    return {};
  }

  // "1.5e+00, 2.5e+00"; of a result that is one hash of all its tensors, as the statistics are of
  // the first large one.
  Status PlainLeaves(std::string_view value, bool are_inputs, std::vector<HashedLeaf>& leaves) {
    leaves.clear();
    if (!are_inputs) {
      leaves.push_back({"0", {Printed::Kind::kWord, std::string(value)}});
      if (value.find(", ") != std::string_view::npos) {
        PL_TRY_ASSIGN(Printed tree, ParsePrinted(fmt::format("({})", value)));
        leaves.front().hash = std::move(tree);
      }
      return {};
    }
    Result<Printed> tree = ParsePrinted(fmt::format("[{}]", value));
    if (!tree) return Bad(tree.error().message());
    for (size_t i = 0; i < tree->items.size(); ++i) {
      leaves.push_back({std::to_string(i), std::move(tree->items[i])});
    }
    return {};
  }

  // "[0][1]=1.5, [1]['value']=[1.5, 7], <root>=2.5": paths of a tree, and JSON.
  Status NamedLeaves(std::string_view value, bool are_inputs, std::vector<HashedLeaf>& leaves) {
    leaves.clear();
    while (!value.empty()) {
      const size_t equals = value.find('=');
      if (equals == std::string_view::npos) return Bad("a hash without its place");
      const std::string_view path = value.substr(0, equals);
      value.remove_prefix(equals + 1);
      json::Reader in(value);
      if (!in.SkipValue())
        return Bad(fmt::format("the hash of {}: {}", path, in.error().message()));
      std::string text(value.substr(0, in.offset()));
      value.remove_prefix(in.offset());
      if (!value.empty() && !value.starts_with(", ")) return Bad("no comma between hashes");
      value.remove_prefix(std::min<size_t>(2, value.size()));
      // JSON has no word for these.
      const auto word = [&](std::string_view json, std::string_view python) {
        if (text == json) text = python;
      };
      word("\"NaN\"", "nan");
      word("\"Infinity\"", "inf");
      word("\"-Infinity\"", "-inf");
      Result<Printed> hash = ParsePrinted(text);
      if (!hash) return Bad(hash.error().message());
      leaves.push_back({PartOf(path, are_inputs), *std::move(hash)});
    }
    return {};
  }

  // "1.0" of "[0][1][0]" and "value" of "[1]['value']" among the arguments; "0" of "<root>".
  static std::string PartOf(std::string_view path, bool are_inputs) {
    if (path == "<root>") return "0";
    std::string part;
    const bool is_tree = are_inputs && (path.starts_with("[0]") || path.starts_with("[1]"));
    if (is_tree) path.remove_prefix(3);
    for (const char c : path) {
      if (c == '[') {
        if (!part.empty()) part += '.';
      } else if (c != ']' && c != '\'') {
        part += c;
      }
    }
    return part;
  }

  Status Flush() {
    if (!has_block_) return {};
    has_block_ = false;
    calls_.Add(block_);
    return {};
  }

  LoggedCalls& calls_;
  RunLoss& loss_;
  bool of_hashes_, salvage_;
  bool has_block_ = false;
  HashBlock block_;
  size_t number_ = 1, complete_ = 0;
};

}  // namespace

Status ReadBlocks(std::string_view text, bool salvage, LoggedCalls& calls, RunLoss& loss) {
  return BlockReader(calls, loss, text.starts_with(kHashCount), salvage).Read(text);
}

}  // namespace plumbline::debug_mode
