// Row columns for other libraries of the same process, over Apache Arrow's C interface
// (https://arrow.apache.org/docs/format/CDataInterface.html): no bytes are copied.

#ifndef PLUMBLINE_REPORT_ARROW_STREAM_H_
#define PLUMBLINE_REPORT_ARROW_STREAM_H_

#include <cstdint>
#include <memory>

#include "report/table.h"

// The three structures of the interface; names and members are those of its specification.
extern "C" {
struct ArrowSchema {
  const char* format;
  const char* name;
  const char* metadata;
  int64_t flags;
  int64_t n_children;
  ArrowSchema** children;
  ArrowSchema* dictionary;
  void (*release)(ArrowSchema*);
  void* private_data;
};
struct ArrowArray {
  int64_t length;
  int64_t null_count;
  int64_t offset;
  int64_t n_buffers;
  int64_t n_children;
  const void** buffers;
  ArrowArray** children;
  ArrowArray* dictionary;
  void (*release)(ArrowArray*);
  void* private_data;
};
struct ArrowArrayStream {
  int (*get_schema)(ArrowArrayStream*, ArrowSchema* out);
  int (*get_next)(ArrowArrayStream*, ArrowArray* out);
  const char* (*get_last_error)(ArrowArrayStream*);
  void (*release)(ArrowArrayStream*);
  void* private_data;
};
}

namespace plumbline::report {

// Fills `out` with a stream of one batch: a structure of all columns. The columns live until
// whoever takes the batch releases it. Integers are int64, reals and statistics float64, texts
// large_utf8, words int32 indexes into a dictionary of large_utf8.
void ExportStream(std::shared_ptr<const RowColumns> columns, ArrowArrayStream* out);

}  // namespace plumbline::report

#endif  // PLUMBLINE_REPORT_ARROW_STREAM_H_
