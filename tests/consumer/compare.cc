// compare TARGET GOLDEN: prints the first wrong call and its cause, then what was recorded of it.
// Exits with 1 if there is one, with 2 after an error.

#include <plumbline/cxx_api.h>

#include <iostream>

namespace {

namespace api = plumbline::api;

void Show(const api::Run& run, const char* name) {
  const uint64_t call = run.Find(name);
  for (uint64_t i = 0; i < run.call(call).slot_count; ++i) {
    const plumb_slot slot = run.slot(call, i);
    plumb_dltensor view{};
    const api::Tensor tensor = run.Read(call, i);
    api::Check(plumb_tensor_view, tensor.get(), &view);
    std::cout << slot.name << " of " << slot.dtype << " max " << slot.max.real << " first "
              << *static_cast<const float*>(view.data) << '\n';
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  try {
    const api::Comparison comparison(argv[1], argv[2]);
    const plumb_verdict verdict = comparison.verdict();
    if (verdict.first_wrong == nullptr) {
      std::cout << verdict.answer << '\n';
    } else {
      std::cout << verdict.first_wrong << ": " << verdict.cause << '\n';
      Show(api::Run(argv[1]), verdict.first_wrong);
    }
    return verdict.exit_state;
  } catch (const api::Failure& failure) {
    std::cerr << failure.what() << '\n';
    return 2;
  }
}
