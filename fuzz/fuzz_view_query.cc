// Any text is a query or has a fault within it; what a query finds on both sides is what it finds
// on each.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>

#include "base/text/text_parts.h"
#include "input_file.h"
#include "small_store.h"
#include "view/query/query_hits.h"
#include "view/query/query_language.h"

namespace {

using plumbline::view::ResultStore;

const ResultStore& SmallStore() {
  static const std::shared_ptr<const ResultStore> store = [] {
    const std::string& text = plumbline::fuzz::SmallStoreText();
    auto opened =
        ResultStore::Open(InputFile(reinterpret_cast<const uint8_t*>(text.data()), text.size()));
    if (!opened) std::abort();
    return *opened;
  }();
  return *store;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  namespace view = plumbline::view;
  const std::string query(reinterpret_cast<const char*>(data), size);
  const view::ParsedQuery parsed = view::ParseQuery(query);
  if (parsed.fault) {
    const bool is_within = parsed.fault->at <= query.size() || !plumbline::IsUtf8(query);
    if (!parsed.terms.empty() || !is_within) std::abort();
    return 0;
  }
  const auto count = [&](int64_t place, uint32_t sides) {
    return view::HitsOf(SmallStore(), query, parsed.terms, {place, sides})->total();
  };
  const uint32_t all = count(-1, view::kSideTarget | view::kSideGolden);
  if (all != count(-1, view::kSideTarget) + count(-1, view::kSideGolden)) std::abort();
  if (all != count(0, view::kSideTarget | view::kSideGolden) +
                 count(1, view::kSideTarget | view::kSideGolden)) {
    std::abort();
  }
  view::Parameters parameters;
  parameters.Set("q", query);
  if (!view::Answer(SmallStore(), "find", parameters)) std::abort();
  return 0;
}
