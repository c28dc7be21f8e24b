// The members of a RankScan, for processes that hand scans to each other (base/text/json_record.h).

#ifndef PLUMBLINE_LOAD_RANK_SCAN_RECORD_H_
#define PLUMBLINE_LOAD_RANK_SCAN_RECORD_H_

#include "base/text/json_record.h"
#include "load/rank_scan.h"

namespace plumbline {

namespace load {

void VisitRecord(auto& archive, json::RecordOf<RankDirectory> auto& directory) {
  archive(directory.path, directory.name, directory.rank);
}

}  // namespace load

void VisitRecord(auto& archive, json::RecordOf<BadValue> auto& bad) {
  archive(bad.path, bad.what, bad.max, bad.min, bad.only_negative);
}

void VisitRecord(auto& archive, json::RecordOf<EntryPlace> auto& place) {
  archive(place.index, place.sub_layer, place.calls_before, place.begin, place.end, place.previous);
}

void VisitRecord(auto& archive, json::RecordOf<Suspect> auto& suspect) {
  archive(suspect.name, suspect.place);
  archive.Choice(suspect.reason, OverflowReason::kFlagged);
  archive(suspect.value, suspect.argument, suspect.harmless, suspect.recompute, suspect.encloses);
}

void VisitRecord(auto& archive, json::RecordOf<PeerTransfer> auto& transfer) {
  archive.Choice(transfer.direction, Transfer::kReceive);
  archive(transfer.peer, transfer.tag, transfer.is_object);
}

void VisitRecord(auto& archive, json::RecordOf<CommCall> auto& call) {
  archive(call.name, call.api, call.place, call.group, call.root, call.transfers, call.waits,
          call.has_output, call.given, call.flagged, call.bad_input, call.bad_output);
}

void VisitRecord(auto& archive, json::RecordOf<CommGroup> auto& group) {
  archive(group.id, group.ranks, group.name, group.in_order);
}

void VisitRecord(auto& archive, json::RecordOf<RankScan> auto& scan) {
  archive(scan.directory, scan.calls, scan.suspects, scan.groups, scan.entries, scan.bad_entries,
          scan.tensors, scan.tensors_not_judged, scan.outputs_missing, scan.flags,
          scan.calls_searched, scan.flags_unknown, scan.hits_origin, scan.hits_propagated,
          scan.hits_unknown, scan.hits_saturated, scan.task, scan.truncated, scan.notes);
}

}  // namespace plumbline

#endif  // PLUMBLINE_LOAD_RANK_SCAN_RECORD_H_
