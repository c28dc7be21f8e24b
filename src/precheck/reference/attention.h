// Attention as the fused operators of Ascend define it (npu_fusion_attention,
// flash_attention_score), in double, with its gradient: tiles of a few query rows, so that no
// buffer has the size of queries times keys.

#ifndef PLUMBLINE_PRECHECK_REFERENCE_ATTENTION_H_
#define PLUMBLINE_PRECHECK_REFERENCE_ATTENTION_H_

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "precheck/reference/array.h"

namespace plumbline::precheck::reference {

struct AttentionCall {
  Operand query, key, value;
  int64_t head_num = 0;        // of queries; those of keys and values divide it
  std::string input_layout;    // BSH, SBH, BSND, BNSD or TND
  OptionalOperand pse;         // added to the scores; broadcast to (B, N, S1, S2)
  OptionalOperand atten_mask;  // bool or uint8, 1: hidden; (S1, S2) or broadcast to (B, N, S1, S2)
  double scale = 1;
  int64_t pre_tokens = 2147483647, next_tokens = 2147483647;  // of bands, from the lower right
  // 0, 1: the mask as it is. 2: causal from the upper left, 3: from the lower right, 4: band; the
  // mask as it is unless it is the operator's 2048 x 2048 triangle. 5: the mask as it is, 6: as 3,
  // but the first `prefix` keys of a batch are visible to all. 7, 8: TND only, as 3 (as 2) but the
  // last (first) sequence that is not empty is a band. Without a mask 0 to 4 hide nothing.
  int64_t sparse_mode = 0;
  std::vector<int64_t> prefix;  // of mode 6, one of each batch
  // TND: where the sequences end, cumulative.
  std::vector<int64_t> actual_seq_qlen, actual_seq_kvlen;
  // scale Q K^T + pse instead of scale (Q K^T + pse).
  bool adds_pse_after_scale = false;
};

struct AttentionResult {
  Array out;       // float64, in the input layout
  Array max, sum;  // of the softmax: float64, (B, N, S1, 8) or (T, N, 8), each value 8 times
};

// P V, with A = (Q K^T + pse) scale - 40000 mask and P = softmax(A): a row with everything hidden
// is the softmax of its scores. kInvalidArgument names the argument that does not fit. Results do
// not depend on the number of threads. Memory beside the results: a copy in double of the keys and
// values of the heads that are being worked on, and a tile of scores for each thread.
Result<AttentionResult> FusionAttention(const AttentionCall& call);
// Gradients of query, key and value, each of the type of its tensor. P is computed anew.
Result<std::array<Array, 3>> FusionAttentionGrad(const AttentionCall& call, const Operand& dy);

}  // namespace plumbline::precheck::reference

#endif  // PLUMBLINE_PRECHECK_REFERENCE_ATTENTION_H_
