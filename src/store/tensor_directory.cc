#include "store/tensor_directory.h"

#include <algorithm>

#include "store/run_layout.h"

namespace plumbline {
Result<std::shared_ptr<TensorDirectory>> TensorDirectory::Adopt(Directory directory) {
  auto tensors = std::make_shared<TensorDirectory>(std::move(directory));
  PL_TRY_ASSIGN(const std::vector<std::string> names, tensors->directory_.List());
  for (const std::string& name : names) {
    if (run_layout::IsTemporary(name)) {
      PL_TRY(tensors->directory_.Remove(name));
    } else {
      tensors->old_.insert(name);
    }
  }
  return tensors;
}

void TensorDirectory::Claim(const std::string& name) {
  {
    const std::lock_guard lock(mutex_);
    if (old_.erase(name) == 0) return;
  }
  if (!directory_.Remove(name)) Lose(name);
}

std::vector<std::string> TensorDirectory::LeftOvers() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::string> names(old_.begin(), old_.end());
  std::ranges::sort(names);
  return names;
}

void TensorDirectory::Lose(const std::string& name) {
  const std::lock_guard lock(mutex_);
  lost_.insert(name);
  has_losses_.store(true);
}

void TensorDirectory::Found(const std::string& name) {
  if (!has_losses_.load()) return;
  const std::lock_guard lock(mutex_);
  lost_.erase(name);
}

uint64_t TensorDirectory::LostFiles() const {
  const std::lock_guard lock(mutex_);
  return lost_.size();
}

bool TensorDirectory::HasLost(const std::string& name) const {
  const std::lock_guard lock(mutex_);
  return lost_.contains(name);
}

}  // namespace plumbline
