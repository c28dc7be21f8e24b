// Parts of a call's name, and the forms of it under which two calls can be found to be the same.

#ifndef PLUMBLINE_MATCH_CALL_KEY_H_
#define PLUMBLINE_MATCH_CALL_KEY_H_

#include <optional>
#include <string>
#include <string_view>

namespace plumbline::match {

// "Functional.linear.3.forward" -> "Functional.linear.forward";
// "Module.fc.Linear.forward.3" -> "Module.fc.Linear.forward"; the number behind "parameters_grad",
// which releases after 1.2.2 write, goes too. A name without number stays as it is.
std::string WithoutCallNumber(std::string_view call_name);

// The name as a model without wrappers would give it: segments that DDP, FSDP, torch.compile and
// activation checkpointing put into module paths are left out, FSDP2's class names lose their
// prefix, and MindSpore's "Cell" is "Module". Names of APIs stay as they are.
// "Module.module._orig_mod.fc.Linear.forward.0" -> "Module.fc.Linear.forward.0".
std::string UnwrappedName(std::string_view call_name);

// What a call does, whatever it is called: class and direction of a module's call, API and
// direction of another one without its owner ("Tensor.__add__.3.forward", "Torch.add.0.forward" and
// "Aten.add.Tensor.1.forward" -> "add.forward"). For calls at the same place of two recordings.
std::string KindName(std::string_view call_name);

// Whether the name belongs to a module (or MindSpore cell) or its parameters' gradients.
bool IsModuleCall(std::string_view call_name);

// Whether the name says forward, backward or parameters_grad, as every name of a call does.
bool HasDirection(std::string_view call_name);

// What `item_name` says beyond the name of its call: "input.0", "kwargs.dim" as "input.dim".
// Empty for an item with the name of the call, nothing where it is not named after the call.
std::optional<std::string_view> ItemPart(std::string_view item_name, std::string_view call_name);
// Equal parts, keyword tensors spelled either way.
bool SamePart(std::string_view a, std::string_view b);

}  // namespace plumbline::match

#endif  // PLUMBLINE_MATCH_CALL_KEY_H_
