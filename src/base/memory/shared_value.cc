// Text (plumbline/shared_value.h).

#include "plumbline/shared_value.h"

#include <cstring>
#include <new>

namespace plumbline {

Text::Text(std::string_view text) {
  if (text.empty()) return;
  body_ = new (::operator new(sizeof(Body) + text.size()))
      Body{{1}, static_cast<uint32_t>(text.size())};
  std::memcpy(reinterpret_cast<char*>(body_ + 1), text.data(), text.size());
}

void Text::Drop() {
  if (body_->references.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  body_->~Body();
  ::operator delete(body_);
}

const Text& OptionalText::EmptyText() {
  static const Text text = [] {
    Text empty;
    empty.body_ = new (::operator new(sizeof(Text::Body))) Text::Body{{1}, 0};
    return empty;
  }();
  return text;
}

}  // namespace plumbline
