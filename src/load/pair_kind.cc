#include "load/pair_kind.h"

#include "formats/hdf5/hdf5_dump.h"
#include "formats/pytorch/debug_mode_log.h"
#include "load/atb_dump.h"
#include "load/checkpoint.h"
#include "load/detect.h"
#include "load/graph_dump.h"
#include "load/operator_dumps.h"
#include "load/rank_directories.h"
#include "load/run_reader.h"
#include "load/torchair_dump.h"

namespace plumbline::load {

PairKind KindOfPair(const std::string& target, const std::string& golden, bool has_data_mapping) {
  if (debug_mode::FormOfLog(target) || debug_mode::FormOfLog(golden)) return PairKind::kRecording;
  if (load::IsMixedDump(target) && load::IsMixedDump(golden)) return PairKind::kMixed;
  if (load::IsAtbDump(target) && load::IsAtbDump(golden)) return PairKind::kAtb;
  if (hdf5::IsHdf5(target) || hdf5::IsHdf5(golden)) return PairKind::kHdf5;
  if (load::LooksLikeTorchair(target)) return PairKind::kTorchair;
  const int graphs = load::IsGraphDump(target) + load::IsGraphDump(golden);
  if (graphs == 1 && has_data_mapping) return PairKind::kRecording;
  if (graphs > 0) {
    return IsSoleGraphPair(target, golden, {}) ? PairKind::kRecording : PairKind::kRanks;
  }
  const Result<OperatorTrees> trees = FindOperatorTrees(target, golden);
  if (trees && !trees->pairs.empty()) return PairKind::kDeviceDumps;
  if (load::LooksLikeCheckpoint(target) && load::LooksLikeCheckpoint(golden)) {
    return PairKind::kCheckpoints;
  }
  if (DumpNameOf(target) && DumpNameOf(golden)) return PairKind::kDeviceDumps;
  return HoldRanks(target, golden, 2) ? PairKind::kRanks : PairKind::kRecording;
}

std::string_view PairKindText(PairKind kind) {
  switch (kind) {
    case PairKind::kRecording:
      return "a recording";
    case PairKind::kRanks:
      return "recordings of several ranks or steps";
    case PairKind::kCheckpoints:
      return "arrays or checkpoints";
    case PairKind::kAtb:
      return "dumps of ATB";
    case PairKind::kHdf5:
      return "operator dumps in HDF5 files";
    case PairKind::kTorchair:
      return "dumps of torchair";
    case PairKind::kDeviceDumps:
      return "dump files of devices";
    case PairKind::kMixed:
      return "calls and static graphs side by side";
  }
  return "";
}

}  // namespace plumbline::load
