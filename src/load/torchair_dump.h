// What torchair leaves of a compiled model: the graph as text, the dumps of its operators (GE), and
// those of the uncompiled one (FX). docs/reference/torchair.md.

#ifndef PLUMBLINE_LOAD_TORCHAIR_DUMP_H_
#define PLUMBLINE_LOAD_TORCHAIR_DUMP_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "plumbline/result.h"

namespace plumbline::load {

// One operator of a graph text.
struct GraphOperator {
  std::vector<std::string> inputs;      // operators that feed it, in order
  std::vector<std::string> fx_tensors;  // "add_1-aten.add.Tensor", from its outputs
};
using OperatorGraph = std::map<std::string, GraphOperator, std::less<>>;

struct GeFile {
  std::string path, type;
  uint64_t size_bytes = 0;
  int64_t time = 0;
};
using GeOperators = std::map<std::string, GeFile, std::less<>>;
struct FxOperator {
  std::map<int64_t, std::string> inputs, outputs;  // paths of .npy files by position
};
using FxOperators = std::map<std::string, FxOperator, std::less<>>;

// By graph, in the order of the graph texts, and token.
struct GeDump {
  std::vector<std::map<int64_t, GeOperators>> graphs;
  size_t left_out = 0;  // files with a name of another form
};
struct FxDump {
  std::vector<std::map<int64_t, FxOperators>> graphs;
  size_t left_out = 0;  // also those whose position another file has
};

// Whether `path` is a directory with a graph text or directories of ranks directly in it.
bool LooksLikeTorchair(const std::string& path);

// Directories worldsize...rank{n} of `directory`, by rank; of two the last by name. kIo.
Result<std::map<int64_t, std::string>> ListTorchairRanks(const std::string& directory);

// Graph texts at most five directories down, in order of the first number in their names; of one
// rank where one is given. Empty: none. kNotFound without the directory; kIo.
Result<std::vector<std::string>> FindGraphTexts(const std::string& directory,
                                                std::optional<int64_t> rank);

// kCorrupt where brackets do not match (such as of a cut file) and without an operator; kNotFound,
// kIo.
Result<OperatorGraph> ReadGraphText(const std::string& path);

// kNotFound when there is no dump file below `directory`; kIo.
Result<GeDump> ReadGeDump(const std::string& directory);
// `of_rank`: token directories count from 0, else from 1. Errors of ReadGeDump().
Result<FxDump> ReadFxDump(const std::string& directory, bool of_rank);

}  // namespace plumbline::load

#endif  // PLUMBLINE_LOAD_TORCHAIR_DUMP_H_
