#include "base/file/text_file.h"

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

Status TextFile::Write(std::string_view piece) {
  if (text_.size() + piece.size() < kFlushBytes) {
    text_ += piece;
    return {};
  }
  PL_TRY(WriteOut());
  return file_.Write(piece);
}

Status TextFile::Close() {
  PL_TRY(WriteOut());
  return file_.Commit(/*durable=*/false);
}

}  // namespace plumbline
