// Entries of debug.json: one value each, and gradients that arrive after it.

#ifndef PLUMBLINE_STORE_DEBUG_ENTRY_H_
#define PLUMBLINE_STORE_DEBUG_ENTRY_H_

#include "plumbline/record.h"

namespace plumbline::debug_entry {

// A recorded debug entry is a member with an empty key, the value, and one member per part that
// arrived later, whose key is its place in that value: the positions of list items and map members
// from the top, joined by dots ("1.0"; positions, because keys may hold dots).
//
// Puts the parts in their places and leaves the first member alone. Parts without such a place are
// dropped. Members that do not start with an empty key are left as they are.
void Compose(ValueMap& members);

}  // namespace plumbline::debug_entry

#endif  // PLUMBLINE_STORE_DEBUG_ENTRY_H_
