// Names of Megatron parameters across its versions, and how tensor parallel ranks share them.

#ifndef PLUMBLINE_LOAD_CHECKPOINT_MEGATRON_H_
#define PLUMBLINE_LOAD_CHECKPOINT_MEGATRON_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace plumbline::load {

// The name that legacy, core and TransformerEngine variants of a parameter have in common.
std::string CommonMegatronName(std::string name);

// How the parts of the tensor parallel ranks belong together.
enum class TensorSplit : uint8_t { kReplicated, kRows, kColumns };
TensorSplit SplitOf(std::string_view common_name);
// The first linear layer of the MLP, which holds two matrices when the model is gated.
bool IsFirstLinear(std::string_view common_name);

// A number inside a name: "7" in "decoder.layers.7.mlp".
struct NumberInName {
  size_t begin = 0, length = 0;
  int64_t value = 0;
};
// Of the layer ("layers.<l>.").
std::optional<NumberInName> LayerIn(std::string_view name);
// Of the expert: "experts.<e>.", "local_experts.<e>.", or the end of
// "experts.linear_fc1.weight<e>".
std::optional<NumberInName> ExpertIn(std::string_view name);
std::string WithNumber(std::string name, const NumberInName& place, int64_t value);

}  // namespace plumbline::load

#endif  // PLUMBLINE_LOAD_CHECKPOINT_MEGATRON_H_
