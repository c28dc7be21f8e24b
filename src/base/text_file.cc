#include "base/text_file.h"

#include <utility>

namespace plumbline {

Result<TextFile> TextFile::Create(const std::string& path) {
  PL_TRY_ASSIGN(AtomicFile file, AtomicFile::Create(path));
  return TextFile(std::move(file));
}

Status TextFile::WriteOut() {
  PL_TRY(file_.Write(text_));
  text_.clear();
  return {};
}

Status TextFile::Close() {
  PL_TRY(WriteOut());
  return file_.Commit(/*durable=*/false);
}

}  // namespace plumbline
