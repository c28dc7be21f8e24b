/* The C interface of a shared library that brings reference functions for operators that plumbline
   does not know: what a fused operator should have returned, computed on the host. A file that
   $PLUMBLINE_REFERENCES names puts such a library to use (docs/reference/references.md). */

#ifndef PLUMBLINE_REFERENCE_API_H_
#define PLUMBLINE_REFERENCE_API_H_

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A contiguous tensor in host memory, row-major, only to be read. `dtype` is "float32", "float64",
   "float16", "bfloat16", "int64", "int32", "uint8" or "bool". */
typedef struct plumbline_tensor {
  const char* dtype;
  const void* data;
  const int64_t* sizes;
  uint64_t rank;
} plumbline_tensor;

enum plumbline_kind {
  PLUMBLINE_NONE = 0,
  PLUMBLINE_BOOL = 1,    /* integer, 0 or 1 */
  PLUMBLINE_INTEGER = 2, /* integer */
  PLUMBLINE_REAL = 3,    /* real */
  PLUMBLINE_TEXT = 4,    /* text, which ends with NUL */
  PLUMBLINE_TENSOR = 5,  /* tensor */
  PLUMBLINE_LIST = 6     /* count items */
};

/* One argument, or a member of a list. Of the other members only those that `kind` names mean
   anything. */
typedef struct plumbline_argument {
  int32_t kind;     /* of plumbline_kind */
  const char* name; /* of a keyword; NULL: positional, or a member of a list */
  int64_t integer;
  double real;
  const char* text;
  plumbline_tensor tensor;
  const struct plumbline_argument* items;
  uint64_t count;
} plumbline_argument;

/* One call. `size` is sizeof(plumbline_call) of the caller; members are only ever added. */
typedef struct plumbline_call {
  uint64_t size;
  const plumbline_argument* arguments;
  uint64_t count;
  void* state; /* what the functions below want */
  /* Memory of the next result, in the order in which the operator returns them, to be filled before
     the function returns. NULL: no such dtype, or no memory. */
  void* (*add_result)(void* state, const char* dtype, const int64_t* sizes, uint64_t rank);
  /* The next result is None. */
  void (*add_none)(void* state);
  /* Why the function is going to return something else than 0. */
  void (*explain)(void* state, const char* problem);
} plumbline_call;

/* Returns 0, or anything else if it failed. Must not throw; may be called by several threads at
   once. */
typedef int32_t (*plumbline_reference_function)(const plumbline_call* call);

typedef struct plumbline_reference {
  const char* name; /* of the operator, "npu_my_operator" */
  plumbline_reference_function forward;
  /* NULL: no gradient. Gets the gradients of the results (None where one has none), then the
     arguments of the forward; returns the gradients of the tensors among these, in order. */
  plumbline_reference_function backward;
  const char* description; /* may be NULL */
} plumbline_reference;

/* What the library exports by this name: its operators, *count of them. */
typedef const plumbline_reference* (*plumbline_references_function)(uint64_t* count);
#define PLUMBLINE_REFERENCES_SYMBOL "plumbline_references"

#ifdef __cplusplus
}
#endif

#endif /* PLUMBLINE_REFERENCE_API_H_ */
