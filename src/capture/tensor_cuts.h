// Which part of each tensor is recorded: the slices of the configuration, and the rows of one
// request where a batch holds the tokens of several (continuous batching).

#ifndef PLUMBLINE_CAPTURE_TENSOR_CUTS_H_
#define PLUMBLINE_CAPTURE_TENSOR_CUTS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "config/config.h"
#include "plumbline/tensor.h"

namespace plumbline::capture {

// A box inside a tensor: sizes[i] elements of dimension i from begins[i] on.
struct Cut {
  bool is_whole = true;  // then the rest is empty
  Shape sizes;
  std::vector<int64_t> begins;

  // The part of `whole`, whose memory, and this object's sizes, it borrows.
  [[nodiscard]] TensorView Of(const TensorView& whole) const;
};

// What a batch holds of a request; shares stand in the order of their tokens.
struct BatchShare {
  std::string request;
  int64_t tokens = 0;
};
inline constexpr int64_t kMostTokens = int64_t{1} << 40;  // of one share

// Thread-compatible.
class TensorCuts {
 public:
  TensorCuts(std::vector<TensorSlice> slices, std::string request_id)
      : slices_(std::move(slices)), request_id_(std::move(request_id)) {}

  [[nodiscard]] const std::string& request_id() const { return request_id_; }
  [[nodiscard]] bool are_none() const { return slices_.empty() && !rows_; }

  // From here on tensors hold the tokens of these requests. False: none is of the request that is
  // recorded. Requires: each share has 1 to kMostTokens; request_id() is not empty.
  bool UseBatch(std::span<const BatchShare> shares);
  // From here on nothing is known of requests.
  void ForgetBatch() { rows_.reset(); }

  // The part of a tensor of these sizes. Later slices of a dimension win; the rows of the request
  // come last. Tokens run along dimension 0 or, where that has length 1 in a tensor of two or three
  // dimensions, along dimension 1: where the length is that of the batch. `has_tokens`: false for
  // parameters, which may have that length by chance.
  [[nodiscard]] Cut Of(std::span<const int64_t> sizes, bool has_tokens) const;

 private:
  struct Rows {
    int64_t begin = 0, end = 0, total = 0;
  };
  [[nodiscard]] std::optional<size_t> DimensionOfTokens(std::span<const int64_t> sizes) const;

  std::vector<TensorSlice> slices_;
  std::string request_id_;  // empty: all requests are recorded
  std::optional<Rows> rows_;
};

}  // namespace plumbline::capture

#endif  // PLUMBLINE_CAPTURE_TENSOR_CUTS_H_
