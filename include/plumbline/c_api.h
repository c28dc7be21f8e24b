/* The C interface: the version of plumbline (the one place it is written; CMake and pyproject.toml
   read it from here), and the receiver of dump files that a device sends in pieces. */

#ifndef PLUMBLINE_C_API_H_
#define PLUMBLINE_C_API_H_

#include <stdint.h>

#define PLUMBLINE_VERSION_MAJOR 0
#define PLUMBLINE_VERSION_MINOR 1
#define PLUMBLINE_VERSION_PATCH 0
#define PLUMBLINE_VERSION "0.1.0"

#define PLUMBLINE_EXPORT __attribute__((visibility("default")))

#ifdef __cplusplus
extern "C" {
#endif

/* A piece of a dump file, as the ACL runtime hands it to the callback of acldumpRegCallback(). Its
   members are those of CANN's header acl/acl_dump.h, which may be included before or behind this
   one; docs/formats/acl_dump.md lists them. */
struct acldumpChunk;

/* Receives files below `dump_path` from now on, until plumbline_dump_close(). Returns 0, or the
   number of an ErrorCode (result.h) + 1; one receiver at a time. */
PLUMBLINE_EXPORT int32_t plumbline_dump_open(const char* dump_path);
/* The callback: acldumpRegCallback(plumbline_dump_chunk, 0). `length` is not used. May be called
   from several threads; returns when the piece is on the disk, and a file that it ends converted.
   Never throws. Returns as above. */
PLUMBLINE_EXPORT int32_t plumbline_dump_chunk(const struct acldumpChunk* chunk, int32_t length);
/* Ends. Returns 0, or the number of files of which something is missing. */
PLUMBLINE_EXPORT int32_t plumbline_dump_close(void);
/* What was wrong in the calls above, a line each, until plumbline_dump_open() is called next while
   no receiver is open. Copies at most `size` - 1 bytes and a NUL; returns the length of the whole
   text. */
PLUMBLINE_EXPORT uint64_t plumbline_dump_problems(char* out, uint64_t size);

#ifdef __cplusplus
}
#endif

#endif /* PLUMBLINE_C_API_H_ */
