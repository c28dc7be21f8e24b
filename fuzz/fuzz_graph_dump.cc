// The first byte says what the rest is: the statistic.csv of MindSpore or of ATB, the name of a
// kernel's file, a compiled graph, a dump configuration, a table of execution order, or a graph's
// text. It is read or refused.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/file/file.h"
#include "config/graph_dump/dump_settings.h"
#include "formats/acl/graph_pb.h"
#include "graphs/source_lines.h"
#include "load/atb_dump.h"
#include "load/graph_dump.h"
#include "load/graph_index.h"

namespace {

void ReadOrder(std::string_view text) {
  static const std::string rank = "/tmp/fuzz_graph_dump/rank_0";
  static const bool made = plumbline::MakeDirectories(rank + "/execution_order").has_value();
  const std::string path = rank + "/execution_order/ms_execution_order_graph_0.csv";
  if (!made || !plumbline::WriteFileAtomically(path, text, /*durable=*/false)) return;
  (void)plumbline::load::ReadExecutionOrders(rank);
}

// Every name of the text is looked up, whole and without its ends.
void ReadText(std::string_view text) {
  static const std::string directory = "/tmp/fuzz_graph_dump";
  const std::string path = plumbline::JoinPath(directory, "graph.ir");
  if (!plumbline::WriteFileAtomically(path, text, /*durable=*/false)) return;
  plumbline::graphs::SourceLines lines;
  const auto graph = plumbline::graph_ir::Parse(text);
  if (!lines.AddFile(path) || !graph) return;
  for (const plumbline::graph_ir::Node& node : graph->nodes) {
    (void)lines.Find(node.full_name);
    if (node.full_name.size() > 2) (void)lines.Find(node.full_name.substr(1));
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const std::string directory = "/tmp/fuzz_graph_dump";
  static const bool made = plumbline::MakeDirectories(directory).has_value();
  if (!made || size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data + 1), size - 1);
  const int kind = data[0] % 7;
  if (kind == 2) {
    (void)plumbline::load::ParseKernelFile(text);
  } else if (kind == 3) {
    (void)plumbline::graph_pb::Parse(std::as_bytes(std::span(text)));
  } else if (kind == 4) {
    (void)plumbline::graph_dump::CheckDumpSettings(text,
                                                   plumbline::graph_dump::DeviceKind::kAscend);
  } else if (kind == 5) {
    ReadOrder(text);
  } else if (kind == 6) {
    ReadText(text);
  }
  const std::string path = plumbline::JoinPath(directory, "statistic.csv");
  if (kind > 1 || !plumbline::WriteFileAtomically(path, text, /*durable=*/false)) return 0;
  if (kind == 0) {
    (void)plumbline::load::ReadGraphDump({directory});
  } else {
    (void)plumbline::load::ReadAtbDump(directory);
  }
  return 0;
}
