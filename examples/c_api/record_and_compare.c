/* Records two runs of a tiny network from C, the second one with a wrong epsilon, and asks which
   call goes wrong first.

     cc record_and_compare.c $(pkg-config --cflags --libs plumbline) -lm -o record_and_compare
     ./record_and_compare DIRECTORY */

#include <math.h>
#include <plumbline/c_api.h>
#include <stdio.h>
#include <stdlib.h>

enum { ROWS = 8, COLUMNS = 32 };

static plumb_error error = PLUMB_ERROR_INIT;

static void must(int32_t code) {
  if (code == PLUMB_OK) return;
  fprintf(stderr, "plumbline: %s\n", error.message);
  exit(2);
}

/* A row-major float matrix as DLPack describes it; `shape` must live as long. */
static plumb_dltensor matrix(float* values, int64_t* shape) {
  plumb_dltensor tensor = {0};
  tensor.data = values;
  tensor.device.device_type = 1;
  tensor.ndim = 2;
  tensor.dtype.code = 2;
  tensor.dtype.bits = 32;
  tensor.dtype.lanes = 1;
  tensor.shape = shape;
  return tensor;
}

static void normalise(float* values, float epsilon) {
  for (int row = 0; row < ROWS; ++row) {
    float* const x = values + row * COLUMNS;
    float squares = 0;
    for (int i = 0; i < COLUMNS; ++i) squares += x[i] * x[i];
    const float scale = 1 / sqrtf(squares / COLUMNS + epsilon);
    for (int i = 0; i < COLUMNS; ++i) x[i] *= scale;
  }
}

static void activate(float* values) {
  for (int i = 0; i < ROWS * COLUMNS; ++i) values[i] = values[i] / (1 + expf(-values[i]));
}

/* One call of the network: its input is told before it runs, its output behind it. */
static void call(plumb_recorder* recorder, const char* name, float* values, float epsilon) {
  int64_t shape[2] = {ROWS, COLUMNS};
  const plumb_dltensor tensor = matrix(values, shape);
  plumb_call* told = NULL;
  must(plumb_call_begin(recorder, name, NULL, &told, &error));
  must(plumb_call_add(told, PLUMB_INPUT, NULL, &tensor, &error));
  epsilon > 0 ? normalise(values, epsilon) : activate(values);
  must(plumb_call_add(told, PLUMB_OUTPUT, NULL, &tensor, &error));
  must(plumb_call_end(told, &error));
}

static void record(const char* directory, float epsilon) {
  plumb_recorder_options options = PLUMB_RECORDER_OPTIONS_INIT;
  options.dump_path = directory;
  options.task = "tensor";
  plumb_recorder* recorder = NULL;
  must(plumb_recorder_begin(&options, &recorder, &error));
  must(plumb_step_begin(recorder, NULL, &error));
  float values[ROWS * COLUMNS];
  for (int i = 0; i < ROWS * COLUMNS; ++i) values[i] = 0.01F * sinf((float)i);
  call(recorder, "Functional.silu", values, 0);
  call(recorder, "Functional.rms_norm", values, epsilon);
  call(recorder, "Functional.silu", values, 0);
  must(plumb_step_end(recorder, &error));
  plumb_recorder_finish(recorder);
}

int main(int argc, char** argv) {
  if (argc != 2) {
    fprintf(stderr, "usage: record_and_compare DIRECTORY\n");
    return 2;
  }
  char golden[1024], target[1024];
  snprintf(golden, sizeof(golden), "%s/golden", argv[1]);
  snprintf(target, sizeof(target), "%s/target", argv[1]);
  record(golden, 1e-6F);
  record(target, 1e-5F);

  plumb_comparison* comparison = NULL;
  must(plumb_compare(target, golden, NULL, &comparison, &error));
  plumb_verdict verdict = {0};
  verdict.size = sizeof(verdict);
  must(plumb_comparison_verdict(comparison, &verdict, &error));
  printf("%s\n", verdict.answer);
  if (verdict.first_wrong != NULL) {
    printf("cause: %s (%s)\n", verdict.cause_text, verdict.confidence);
  }
  const int state = verdict.exit_state;
  plumb_comparison_close(comparison);
  return state;
}
