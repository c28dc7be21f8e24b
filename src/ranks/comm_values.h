// What a communication call recorded of the tensors that it moved, and what the statistics of two
// tensors tell about whether they hold the same numbers.

#ifndef PLUMBLINE_RANKS_COMM_VALUES_H_
#define PLUMBLINE_RANKS_COMM_VALUES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "load/rank_scan.h"
#include "plumbline/record.h"

namespace plumbline::ranks {

constexpr std::string_view kNotComplete = "not known to be complete when the recording ended";

struct NamedTensor {
  std::string path;  // "output.0"
  TensorRecord record;
};

struct CallValues {
  std::vector<NamedTensor> received, sent;  // of a collective
  struct Part {
    std::optional<NamedTensor> before, after;
  };
  std::vector<Part> transfers;  // as CommCall::transfers
  std::string_view unjudged{};  // why the outputs prove nothing; empty: they do
};

// Keywords of what a collective puts its result into, its first argument, and of what is given to
// it; empty: not wanted.
struct TransferArguments {
  std::string_view result{}, given{};
  size_t given_at = 1;
};

// `is_ours`: recorded by plumbline, which says of each call whether it was complete.
CallValues ValuesOf(const Call& call, const CommCall& comm, const TransferArguments& arguments,
                    bool is_ours);

enum class Agreement : uint8_t { kAgree, kDiffer, kUnknown };

struct Mismatch {
  std::string statistic, expected, got;
};

std::string SpelledStatistic(const Statistic& statistic);
std::optional<double> RealOf(const Statistic& statistic);
int64_t ElementsOf(const TensorRecord& record);  // -1: not known
// By how much sums of the same numbers may differ, relative to them: another order on another
// device.
double SumSlackOf(const TensorRecord& record);

// `slack`: by how much they may differ. kUnknown where a value is absent, or both are NaN or the
// same infinity: that tells nothing of the other numbers.
Agreement CompareStatistic(const Statistic& expected, const Statistic& got, double slack = 0);
// The first statistic that differs is put into `mismatch`.
Agreement CompareRecords(const TensorRecord& expected, const TensorRecord& got, Mismatch& mismatch);

// All that is recorded of a tensor's numbers; empty where that could not tell two tensors apart.
std::string TextOfNumbers(const TensorRecord& record);

// Whether another slice of what is reduced may have these statistics too: constants, few elements,
// and whole numbers, such as counts of tokens.
bool MayBeSoByChance(const TensorRecord& record);

}  // namespace plumbline::ranks

#endif  // PLUMBLINE_RANKS_COMM_VALUES_H_
