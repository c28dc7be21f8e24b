// The arguments of a recorded torch.distributed call: who talks to whom.

#ifndef PLUMBLINE_PIPELINE_RANKS_COMM_CALL_H_
#define PLUMBLINE_PIPELINE_RANKS_COMM_CALL_H_

#include <optional>
#include <string_view>
#include <vector>

#include "pipeline/overflow/overflow_scan.h"
#include "plumbline/record.h"

namespace plumbline {

// The API of a communication entry ("all_reduce" of Distributed.all_reduce.3.forward); nothing for
// every other entry.
std::optional<std::string_view> CommunicationApi(std::string_view call_name);

// Group, root and peers from the arguments of `call`. Groups are added to `groups` once each.
// Ranks given relative to a group are translated where the group's ranks are known.
CommCall ReadCommCall(const Call& call, std::string_view api, std::vector<CommGroup>& groups);

}  // namespace plumbline

#endif  // PLUMBLINE_PIPELINE_RANKS_COMM_CALL_H_
