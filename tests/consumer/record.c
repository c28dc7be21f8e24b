/* record DIRECTORY SCALE: a module with a call inside, in two steps. The call gives SCALE times
   what it should in the second step. */

#include <plumbline/c_api.h>
#include <stdio.h>
#include <stdlib.h>

enum { kRows = 4, kColumns = 6 };

static plumb_error error = PLUMB_ERROR_INIT;

static void must(int32_t code) {
  if (code == PLUMB_OK) return;
  fprintf(stderr, "%s\n", error.message);
  exit(1);
}

static void add(plumb_call* call, int32_t role, float* values) {
  int64_t shape[2] = {kRows, kColumns};
  plumb_dltensor tensor = {0};
  tensor.data = values;
  tensor.device.device_type = 1;
  tensor.ndim = 2;
  tensor.dtype.code = 2;
  tensor.dtype.bits = 32;
  tensor.dtype.lanes = 1;
  tensor.shape = shape;
  must(plumb_call_add(call, role, NULL, &tensor, &error));
}

int main(int argc, char** argv) {
  plumb_recorder_options options = PLUMB_RECORDER_OPTIONS_INIT;
  plumb_recorder* recorder = NULL;
  int step, i;
  if (argc != 3) return 2;
  options.dump_path = argv[1];
  options.level = "mix";
  options.task = "tensor";
  must(plumb_recorder_begin(&options, &recorder, &error));
  for (step = 0; step < 2; ++step) {
    const float scale = step == 1 ? (float)atof(argv[2]) : 1;
    float values[kRows * kColumns];
    plumb_call *module = NULL, *call = NULL;
    must(plumb_step_begin(recorder, NULL, &error));
    for (i = 0; i < kRows * kColumns; ++i) values[i] = (float)(i * i % 17) - 5;
    must(plumb_call_begin(recorder, "Module.head.Linear", NULL, &module, &error));
    add(module, PLUMB_INPUT, values);
    must(plumb_call_begin(recorder, "Functional.linear", module, &call, &error));
    add(call, PLUMB_INPUT, values);
    for (i = 0; i < kRows * kColumns; ++i) values[i] *= 3 * scale;
    add(call, PLUMB_OUTPUT, values);
    must(plumb_call_end(call, &error));
    add(module, PLUMB_OUTPUT, values);
    must(plumb_call_end(module, &error));
    must(plumb_step_end(recorder, &error));
  }
  plumb_recorder_finish(recorder);
  return 0;
}
