/* The C interface (C99) of libplumbline: read recordings, compare two, record from any program. And
   the version of plumbline (the one place it is written; CMake and pyproject.toml read it from
   here). cxx_api.h wraps it for C++; docs/reference/c_api.md lists everything with examples.

   What holds for all functions:
   - Handles (plumb_run*, ...) are opaque. Who opens one closes it; closing null does nothing.
   - A function that can fail returns PLUMB_OK or the code of what went wrong, and then writes code
     and message into `error`, which the caller owns and may be null. A handle that it should have
     opened is null then. None throws, aborts, or calls back.
   - Texts are UTF-8 and end in NUL. Texts, shapes and views that come from a handle live as long as
     that handle. Paths and names given are read before the call returns. Null is an error unless
     said otherwise.
   - Structs start with `size`, which the caller sets to sizeof of what was compiled (the _INIT
     macros do): a newer library fills no more, and reads no more, than there is.
   - Sizes and counts are uint64_t, truth values int32_t (0 or 1).
   - Different handles may be used by different threads at once. A plumb_run and a plumb_comparison
     may be read by several threads, and a plumb_recorder be told by several; a plumb_call by one at a
     time. Handles of a recorder must not be used in a forked child.
   - A library of the same SOVERSION has all functions of older ones, with the same meaning.

   Size caps: whoever includes it expects one header. */

#ifndef PLUMBLINE_C_API_H_
#define PLUMBLINE_C_API_H_

#include <stddef.h>
#include <stdint.h>

#define PLUMBLINE_VERSION_MAJOR 0
#define PLUMBLINE_VERSION_MINOR 1
#define PLUMBLINE_VERSION_PATCH 0
#define PLUMBLINE_VERSION "0.1.0"

#define PLUMBLINE_EXPORT __attribute__((visibility("default")))
#ifdef __cplusplus
#define PLUMBLINE_NOEXCEPT noexcept
#else
#define PLUMBLINE_NOEXCEPT
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Errors */

enum {
  PLUMB_OK = 0,
  PLUMB_INVALID_ARGUMENT = 1, /* what was asked makes no sense */
  PLUMB_NOT_FOUND = 2,        /* a named file, directory or call is missing */
  PLUMB_UNSUPPORTED = 3,      /* valid, but plumbline cannot do it */
  PLUMB_CORRUPT = 4,          /* the bytes contradict their own format */
  PLUMB_IO = 5,               /* the operating system refused */
  PLUMB_INTERNAL = 6          /* a bug in plumbline, or no memory left */
};

typedef struct plumb_error {
  uint64_t size;
  int32_t code;
  char message[1012]; /* one line, cut if it is longer */
} plumb_error;
#define PLUMB_ERROR_INIT \
  { sizeof(plumb_error), PLUMB_OK, { 0 } }

/* Of the library that is loaded, as PLUMBLINE_VERSION. */
PLUMBLINE_EXPORT const char* plumb_version(void) PLUMBLINE_NOEXCEPT;

/* ---- Tensors: DLPack's structs under names of their own. A DLTensor* or DLManagedTensor* of
   dlpack.h (0.2 to 1.x) may be cast to these. */

typedef struct plumb_dltensor {
  void* data;
  struct {
    int32_t device_type; /* 1: the CPU */
    int32_t device_id;
  } device;
  int32_t ndim;
  struct {
    uint8_t code; /* DLDataTypeCode: 0 int, 1 unsigned, 2 float, 4 bfloat, 5 complex, 6 bool, ... */
    uint8_t bits;
    uint16_t lanes; /* 1 */
  } dtype;
  int64_t* shape;
  int64_t* strides; /* in elements; null: row-major */
  uint64_t byte_offset;
} plumb_dltensor;

typedef struct plumb_dlmanaged {
  plumb_dltensor dl_tensor;
  void* manager_ctx;
  void (*deleter)(struct plumb_dlmanaged* self); /* may be null */
} plumb_dlmanaged;

/* ---- Recordings */

typedef struct plumb_run plumb_run;

/* `path`: a dump.json or debug.json, or a rank, step or dump directory with exactly one rank, of
   plumbline or of the tools whose recordings it reads. */
PLUMBLINE_EXPORT int32_t plumb_run_open(const char* path, plumb_run** run,
                                        plumb_error* error) PLUMBLINE_NOEXCEPT;
PLUMBLINE_EXPORT void plumb_run_close(plumb_run* run) PLUMBLINE_NOEXCEPT;

typedef struct plumb_run_info {
  uint64_t size;
  const char* path; /* of the dump.json that was read */
  const char* task; /* "statistics", "tensor", ... */
  const char* level;
  const char* framework;
  uint64_t call_count;
  int32_t is_complete; /* nothing was lost by the recorder or cannot be read */
  int32_t reserved;
} plumb_run_info;
PLUMBLINE_EXPORT int32_t plumb_run_describe(const plumb_run* run, plumb_run_info* info,
                                            plumb_error* error) PLUMBLINE_NOEXCEPT;

typedef enum plumb_call_kind {
  PLUMB_FORWARD = 0,
  PLUMB_BACKWARD = 1,
  PLUMB_PARAMETERS_GRAD = 2,
  PLUMB_OTHER = 3
} plumb_call_kind;

typedef struct plumb_call_info {
  uint64_t size;
  const char* name;   /* "Functional.linear.0.forward" */
  const char* parent; /* the module call that it was made in; empty: none, or not recorded */
  int32_t kind;       /* plumb_call_kind */
  int32_t reserved;
  uint64_t slot_count;
} plumb_call_info;
/* Number `call` of plumb_run_info.call_count, in the order of the file. PLUMB_NOT_FOUND: no such. */
PLUMBLINE_EXPORT int32_t plumb_run_call(const plumb_run* run, uint64_t call, plumb_call_info* info,
                                        plumb_error* error) PLUMBLINE_NOEXCEPT;
/* The number of the call of that name. */
PLUMBLINE_EXPORT int32_t plumb_run_find(const plumb_run* run, const char* name, uint64_t* call,
                                        plumb_error* error) PLUMBLINE_NOEXCEPT;

typedef enum plumb_role {
  PLUMB_INPUT = 0,
  PLUMB_PARAMETER = 1,
  PLUMB_OUTPUT = 2,
  PLUMB_BUFFER = 3, /* what the call left in a buffer of its module */
  PLUMB_GRADIENT = 4
} plumb_role;

typedef enum plumb_number_kind {
  PLUMB_NONE = 0, /* not recorded, or not defined */
  PLUMB_BOOL = 1,
  PLUMB_INTEGER = 2,
  PLUMB_REAL = 3,
  PLUMB_TEXT = 4 /* of an argument that is no number */
} plumb_number_kind;

/* A recorded number. `real` is there for all kinds but PLUMB_NONE and PLUMB_TEXT. */
typedef struct plumb_number {
  int32_t kind; /* plumb_number_kind */
  int32_t reserved;
  int64_t integer; /* of PLUMB_BOOL and PLUMB_INTEGER */
  double real;
  const char* text; /* of PLUMB_TEXT; else null */
} plumb_number;

/* One input, output, parameter or gradient of a call. An argument that is no tensor has its value
   four times. */
typedef struct plumb_slot {
  uint64_t size;
  const char* name; /* "Functional.linear.0.forward.input.0" */
  int32_t role;     /* plumb_role */
  int32_t is_tensor;
  const char* dtype; /* as recorded: "torch.float32"; empty: none */
  uint64_t ndim;
  const int64_t* shape;
  plumb_number max, min, mean, norm;
  const char* digest;    /* checksum as recorded, 8 hex digits of a CRC-32 say; empty: none */
  const char* data_name; /* of its tensor file; empty: none */
} plumb_slot;
/* Number `slot` of plumb_call_info.slot_count: inputs, parameters, outputs, gradients. */
PLUMBLINE_EXPORT int32_t plumb_run_slot(const plumb_run* run, uint64_t call, uint64_t slot,
                                        plumb_slot* info, plumb_error* error) PLUMBLINE_NOEXCEPT;

typedef struct plumb_tensor plumb_tensor;

/* The elements, where they were saved (task tensor). PLUMB_NOT_FOUND: they were not, or the file is
   gone. The handle may outlive that of the run. */
PLUMBLINE_EXPORT int32_t plumb_run_read(const plumb_run* run, uint64_t call, uint64_t slot,
                                        plumb_tensor** tensor, plumb_error* error)
    PLUMBLINE_NOEXCEPT;
/* Fills `view`, whose memory is read-only and that of the handle. */
PLUMBLINE_EXPORT int32_t plumb_tensor_view(const plumb_tensor* tensor, plumb_dltensor* view,
                                           plumb_error* error) PLUMBLINE_NOEXCEPT;
PLUMBLINE_EXPORT void plumb_tensor_close(plumb_tensor* tensor) PLUMBLINE_NOEXCEPT;

/* ---- Comparing two recordings */

typedef struct plumb_comparison plumb_comparison;

typedef struct plumb_compare_options {
  uint64_t size;
  const char* noise_path; /* a third recording that is right; null: none */
  const char* fail_on;    /* as plumb compare --fail-on: "wrong,unjudged", ...; null: "wrong" */
  int32_t fuzzy_match;    /* call numbers do not count */
  int32_t salvage;        /* read a truncated dump.json up to its last complete call */
  int32_t threads;        /* 0 to 4096; 0: one per core */
  int32_t reserved;
} plumb_compare_options;
#define PLUMB_COMPARE_OPTIONS_INIT \
  { sizeof(plumb_compare_options), NULL, NULL, 0, 0, 0, 0 }

/* `target` is the run under test, `golden` the reference; paths as plumb_run_open() takes them.
   Writes nothing. `options` may be null. */
PLUMBLINE_EXPORT int32_t plumb_compare(const char* target, const char* golden,
                                       const plumb_compare_options* options,
                                       plumb_comparison** comparison,
                                       plumb_error* error) PLUMBLINE_NOEXCEPT;
PLUMBLINE_EXPORT void plumb_comparison_close(plumb_comparison* comparison) PLUMBLINE_NOEXCEPT;

typedef struct plumb_verdict {
  uint64_t size;
  int32_t exit_state;       /* of plumb compare --fail-on: 1 if what it names was found, else 0 */
  int32_t is_complete;      /* all could be judged, so that "no wrong call" may be said */
  const char* answer;       /* the first line of the answer */
  const char* first_wrong;  /* the first wrong call; null: none is wrong. The rest belongs to it */
  const char* first_item;   /* the input or output that shows it */
  const char* what;         /* one sentence with the numbers of both sides */
  const char* cause;        /* a code of docs/reference/causes.md: "scale", "permuted", ... */
  const char* cause_text;   /* one sentence with the evidence */
  const char* confidence;   /* in the cause: "high", "medium" or "low" */
  uint64_t rows[5];         /* same, within noise, suspicious, broken, not comparable */
  uint64_t calls;           /* paired */
  uint64_t unmatched[2];    /* calls without a counterpart: of the target, of golden */
} plumb_verdict;
PLUMBLINE_EXPORT int32_t plumb_comparison_verdict(const plumb_comparison* comparison,
                                                  plumb_verdict* verdict,
                                                  plumb_error* error) PLUMBLINE_NOEXCEPT;
/* The whole answer as plumb compare prints it, or as one JSON object (--json). */
PLUMBLINE_EXPORT const char* plumb_comparison_text(const plumb_comparison* comparison)
    PLUMBLINE_NOEXCEPT;
PLUMBLINE_EXPORT const char* plumb_comparison_json(const plumb_comparison* comparison)
    PLUMBLINE_NOEXCEPT;
/* Writes result files into `directory`, made if it is missing. `formats`: "csv,html", ...; null:
   those of plumb compare. */
PLUMBLINE_EXPORT int32_t plumb_comparison_write(plumb_comparison* comparison, const char* directory,
                                                const char* formats,
                                                plumb_error* error) PLUMBLINE_NOEXCEPT;

/* ---- Recording from any program, into files that plumb compare and plumb_run_open() read. What a
   killed process had told until then stays (plumb recover). A disk that fails is logged to stderr
   and counted in the recording, and is no error of the calls below but plumb_step_begin(). */

typedef struct plumb_recorder plumb_recorder;
typedef struct plumb_call plumb_call;

typedef struct plumb_recorder_options {
  uint64_t size;
  const char* dump_path;   /* the directory; null: dump_path of config.json */
  const char* config_path; /* a config.json (docs/reference/config.md); null: its defaults */
  const char* task;        /* "statistics", "tensor", "structure"; null: of config.json */
  const char* level;       /* "L0" modules, "L1" other calls, "mix" both; null: of config.json */
  const char* framework;   /* whose spellings are written; null: "pytorch"; or "mindspore" */
  int32_t rank;            /* -1: there is one process */
  int32_t reserved;
} plumb_recorder_options;
#define PLUMB_RECORDER_OPTIONS_INIT \
  { sizeof(plumb_recorder_options), NULL, NULL, NULL, NULL, NULL, -1, 0 }

PLUMBLINE_EXPORT int32_t plumb_recorder_begin(const plumb_recorder_options* options,
                                              plumb_recorder** recorder,
                                              plumb_error* error) PLUMBLINE_NOEXCEPT;
/* Ends an open step, waits until all is on the disk, and closes the handle. Null: nothing. */
PLUMBLINE_EXPORT void plumb_recorder_finish(plumb_recorder* recorder) PLUMBLINE_NOEXCEPT;

/* Steps are numbered from 0. `is_recorded`, which may be null: whether config.json selects it. */
PLUMBLINE_EXPORT int32_t plumb_step_begin(plumb_recorder* recorder, int32_t* is_recorded,
                                          plumb_error* error) PLUMBLINE_NOEXCEPT;
PLUMBLINE_EXPORT int32_t plumb_step_end(plumb_recorder* recorder,
                                        plumb_error* error) PLUMBLINE_NOEXCEPT;
/* Of the open step or the last one; empty before the first. Copies at most `size` - 1 bytes and a
   NUL; returns the length of the whole text. */
PLUMBLINE_EXPORT uint64_t plumb_recorder_directory(plumb_recorder* recorder, char* out,
                                                   uint64_t size) PLUMBLINE_NOEXCEPT;

/* `name`: "Functional.linear", or "Module.layers.0.Linear" of a module; numbers are given here.
   `parent`: the call that it is made in, or null. *call may be null without an error: it is not
   recorded, and the functions below do nothing with null. */
PLUMBLINE_EXPORT int32_t plumb_call_begin(plumb_recorder* recorder, const char* name,
                                          const plumb_call* parent, plumb_call** call,
                                          plumb_error* error) PLUMBLINE_NOEXCEPT;
/* The next PLUMB_INPUT or PLUMB_OUTPUT, inputs first, or a PLUMB_PARAMETER of a module. `name`: of a
   parameter, or of an input that is a keyword argument; else null. Of the CPU, any strides; read
   before this returns. plumb_call_take() has its deleter called whatever it returns. */
PLUMBLINE_EXPORT int32_t plumb_call_add(plumb_call* call, int32_t role, const char* name,
                                        const plumb_dltensor* tensor,
                                        plumb_error* error) PLUMBLINE_NOEXCEPT;
PLUMBLINE_EXPORT int32_t plumb_call_take(plumb_call* call, int32_t role, const char* name,
                                         plumb_dlmanaged* tensor,
                                         plumb_error* error) PLUMBLINE_NOEXCEPT;
/* Closes the handle. A call whose step has ended is counted as lost. */
PLUMBLINE_EXPORT int32_t plumb_call_end(plumb_call* call, plumb_error* error) PLUMBLINE_NOEXCEPT;

/* ---- Dump files that a device sends in pieces; in libplumbline_receiver of the Python package too.

   A piece of a dump file, as the ACL runtime hands it to the callback of acldumpRegCallback(). Its
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
