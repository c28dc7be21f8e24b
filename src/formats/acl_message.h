// The message in the header of a device dump, in protobuf's wire format.

#ifndef PLUMBLINE_FORMATS_ACL_MESSAGE_H_
#define PLUMBLINE_FORMATS_ACL_MESSAGE_H_

#include <cstddef>
#include <span>
#include <string>

#include "formats/acl_dump.h"

namespace plumbline::acl {

// `offset` is where the bytes stand in their file, for the places in errors. A tensor's `data` are
// those inside the message (container version 1). kCorrupt.
Result<Message> ReadMessage(std::span<const std::byte> bytes, size_t offset);

// Without the data; sizes are those of the data.
std::string WriteMessage(const Message& message);

}  // namespace plumbline::acl

#endif  // PLUMBLINE_FORMATS_ACL_MESSAGE_H_
