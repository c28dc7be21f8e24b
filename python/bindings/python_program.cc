#include "python_program.h"

#include <dlfcn.h>

namespace plumbline::python {
namespace {

// Entry points of the OpenMP runtime, looked up instead of linked: which runtime it is, and whether
// there is one, is the framework's choice.
struct Runtime {
  void (*parallel)(void (*body)(void*), void* data, unsigned threads, unsigned flags);
  int (*thread_number)();
  int (*team_size)();
  int (*max_threads)();
  int (*in_parallel)();
};

template <class Function>
bool Find(const char* name, Function* function) {
  *function = reinterpret_cast<Function>(dlsym(RTLD_DEFAULT, name));
  return *function != nullptr;
}

const Runtime* FindRuntime() {
  static Runtime runtime{};
  const bool complete = Find("GOMP_parallel", &runtime.parallel) &&
                        Find("omp_get_thread_num", &runtime.thread_number) &&
                        Find("omp_get_num_threads", &runtime.team_size) &&
                        Find("omp_get_max_threads", &runtime.max_threads) &&
                        Find("omp_in_parallel", &runtime.in_parallel);
  return complete ? &runtime : nullptr;
}

const Runtime* TheRuntime() {
  static const Runtime* const runtime = FindRuntime();
  return runtime;
}

struct Shares {
  int size;
  void (*body)(void* data, int worker);
  void* data;
};

// One thread of the team. The runtime may give fewer threads than asked for.
void RunShares(void* pointer) {
  const auto& shares = *static_cast<const Shares*>(pointer);
  const int step = TheRuntime()->team_size();
  for (int worker = TheRuntime()->thread_number(); worker < shares.size; worker += step) {
    shares.body(shares.data, worker);
  }
}

void Run(int size, void (*body)(void* data, int worker), void* data) {
  Shares shares{size, body, data};
  TheRuntime()->parallel(RunShares, &shares, static_cast<unsigned>(size), 0);
}

// The framework's own OpenMP threads. Between two operators they spin or sleep in their runtime, so
// threads of our own would compete with them for the same cores.
kernels::Team FrameworkTeam() {
  const Runtime* runtime = TheRuntime();
  if (runtime == nullptr || runtime->in_parallel() != 0) return {};
  const int threads = runtime->max_threads();
  return threads > 1 ? kernels::Team{threads, Run} : kernels::Team{};
}

void RunUnlocked(const std::function<void()>& work) {
  Py_BEGIN_ALLOW_THREADS;
  work();
  Py_END_ALLOW_THREADS;
}

// A reference of a thread that ends in the middle of a call, without the interpreter lock, is
// leaked.
void Release(void* object) {
  if (Py_IsInitialized() == 0 || PyGILState_Check() == 0) return;
  Py_DECREF(static_cast<PyObject*>(object));
}

}  // namespace

capture::ProgramThreads PythonThreads() { return {RunUnlocked, FrameworkTeam}; }

capture::ObjectRef TakeRef(PyObject* object) { return {object, Release}; }

}  // namespace plumbline::python
