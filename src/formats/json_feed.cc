#include "formats/json_feed.h"

#include <algorithm>

namespace plumbline {

Status JsonFeed::LoadMore() {
  constexpr size_t kStep = size_t{4} << 20;
  const size_t ahead = text_.size() - in_.offset();
  PL_TRY(file_->LoadUntil(text_.size() + std::max(kStep, ahead)));
  text_ = file_->view();
  in_.Extend(text_);
  return {};
}

Status JsonFeed::ReadEnd() {
  for (;;) {
    json::Reader there = in_;
    const bool is_end = there.ReadEnd();
    if (is_whole() || !is_end) {
      in_ = there;
      if (!is_end) return in_.error();
      return {};
    }
    // Blanks up to the end of the loaded part.
    in_.Peek();
    Release(in_.offset());
    PL_TRY(LoadMore());
  }
}

}  // namespace plumbline
