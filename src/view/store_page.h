// The page with its data inside, of what a store holds: of files for viewers, where there are no
// recordings to compare.

#ifndef PLUMBLINE_VIEW_STORE_PAGE_H_
#define PLUMBLINE_VIEW_STORE_PAGE_H_

#include <string>

#include "plumbline/result.h"
#include "view/store/result_store.h"

namespace plumbline::view {

// Levels, values and the answer are those of the store. The answer, each line ended by '\n'. kIo;
// kCorrupt of a damaged store; kUnsupported when this build has no page.
Result<std::string> WriteStorePage(const ResultStore& store, const std::string& path);

}  // namespace plumbline::view

#endif  // PLUMBLINE_VIEW_STORE_PAGE_H_
