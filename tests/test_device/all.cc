// One translation unit: nearly all of the compiler's time goes into PyTorch's headers.
#include "c_interface.cc"
#include "defects.cc"
#include "fallback.cc"
#include "faulty_sums.cc"
#include "memory.cc"
#include "runtime.cc"
#include "stand_ins.cc"
#include "streams.cc"
// Last: its registrations look at those of the files above.
#include "operators.cc"
