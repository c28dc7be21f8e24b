#include "formats/json_feed.h"

#include <limits>

namespace plumbline {

Status JsonFeed::LoadMore() {
  constexpr size_t kStep = size_t{4} << 20;
  PL_TRY(file_->LoadUntil(text_.size() + kStep));
  text_ = file_->view();
  in_.Extend(text_);
  return {};
}

Status JsonFeed::LoadAll() {
  if (is_whole()) return {};
  PL_TRY(file_->LoadUntil(std::numeric_limits<size_t>::max()));
  text_ = file_->view();
  in_.Extend(text_);
  return {};
}

}  // namespace plumbline
