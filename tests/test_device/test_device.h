// A PyTorch accelerator for machines that have none. Its memory faults when the host touches it,
// its kernels are the CPU's, and it counts what a real device makes expensive: copies between host
// and device, and every point at which the host waits. Single operators can be made wrong, slow or
// deadly, so that a tool that judges devices is tested on a device and not on a mock.
//
// Everything below is thread-safe unless it says otherwise. Errors are c10::Error, as PyTorch's
// dispatcher expects of a backend.
#ifndef PLUMBLINE_TESTS_TEST_DEVICE_TEST_DEVICE_H_
#define PLUMBLINE_TESTS_TEST_DEVICE_TEST_DEVICE_H_

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>
#include <c10/core/Allocator.h>
#include <c10/core/Device.h>
#include <c10/core/Storage.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace plumbline_test_device {

inline constexpr int kDevices = 2;
inline constexpr c10::DeviceType kDeviceType = c10::DeviceType::PrivateUse1;

// ---------------------------------------------------------------- counters (runtime.cc)

enum class Counter : size_t {
  kH2dCopies, kH2dBytes, kD2hCopies, kD2hBytes, kD2dCopies, kD2dBytes,
  // Points at which the host waits for the device. A scalar read is `.item()` and its kin, a shape
  // read an operator whose result has a size that only the device knows (`nonzero`).
  kScalarReads, kShapeReads, kCopySyncs, kStreamSyncs, kEventSyncs, kDeviceSyncs,
  kEventRecords, kEventWaits, kEventQueries, kDeferredCopies,
  // Broken orders between streams, see streams.cc.
  kUnorderedAccesses, kUnorderedFrees,
  kAllocations, kLiveBytes, kPeakBytes, kKernels, kPageChanges, kEnd
};
inline constexpr std::array<const char*, static_cast<size_t>(Counter::kEnd)> kCounterNames = {
    "h2d_copies", "h2d_bytes", "d2h_copies", "d2h_bytes", "d2d_copies", "d2d_bytes",
    "scalar_reads", "shape_reads", "copy_syncs", "stream_syncs", "event_syncs", "device_syncs",
    "event_records", "event_waits", "event_queries", "deferred_copies",
    "unordered_accesses", "unordered_frees",
    "allocations", "live_bytes", "peak_bytes", "kernels", "page_changes"};

void Count(Counter counter, uint64_t amount = 1);
uint64_t CounterValue(Counter counter);
// Sets all to zero but the live bytes, which become the peak.
void ResetCounters();
// The live bytes went up (positive) or down.
void CountLiveBytes(int64_t change);

// Calls per operator, by full name ("aten::mm.out").
void CountOperator(const c10::OperatorName& name);
std::map<std::string, uint64_t> OperatorCounts();
void ResetOperatorCounts();

// ---------------------------------------------------------------- memory (memory.cc)

c10::Allocator* DeviceAllocator();
// Host memory that the device can copy to and from without the host's help.
void RegisterPinnedAllocator();
c10::Allocator* PinnedAllocator();
bool IsPinned(const void* data);

// The device whose memory holds `data`; nothing for host memory.
std::optional<c10::DeviceIndex> DeviceOf(const void* data);

// Off: the host may touch device memory. False if memory was handed out already: too late.
bool SetProtected(bool on);

// Lets the host touch the blocks named to it until it goes out of scope, as a kernel does. Nests,
// also across threads; protection is per process, so what one thread opens is open to all.
class OpenBlocks {
 public:
  OpenBlocks() = default;
  ~OpenBlocks();
  OpenBlocks(const OpenBlocks&) = delete;
  OpenBlocks& operator=(const OpenBlocks&) = delete;
  // Null and host pointers are left alone.
  void Open(const void* data);

 private:
  std::vector<void*> opened_;  // blocks of memory.cc
};

// Gives `storage`, on a device, `size_bytes` bytes and keeps what fits of the old ones.
void ResizeStorage(const c10::Storage& storage, size_t size_bytes);

// ---------------------------------------------------------------- devices and streams (runtime.cc)

int CurrentDevice();
void SetCurrentDevice(int device);  // c10::Error for a number that is none
// Index -1 means the current one.
c10::Device FullDevice(c10::Device device);

using StreamKey = std::pair<int, int64_t>;  // device, stream
StreamKey CurrentStream(int device);

// ---------------------------------------------------------------- order of work (streams.cc)

// For each stream, how much of its work is known to be done: 0 is nothing.
using Reached = std::map<StreamKey, uint64_t>;

// A kernel or a copy begins on the stream.
void BeginWork(StreamKey stream);
// What is done once all work issued on the stream until now is.
Reached CoveredBy(StreamKey stream);
// Later work of the stream, or of the host, comes after that; in the second case deferred copies
// arrive.
void WaitOnStream(StreamKey stream, const Reached& reached);
void WaitOnHost(const Reached& reached);
void CompleteStream(StreamKey stream);
void CompleteDevice(int device);
// Deferred copies that land in [data, data + size_bytes) arrive.
void CompleteOverlapping(const void* data, size_t size_bytes);

// With deferral on, a non-blocking copy to pinned memory fills it with 0xFF (NaN for floats, -1
// for integers); the real bytes, taken at the time of the call, arrive only when the host waits for
// the stream, for an event recorded behind the copy, or for the device, or has asked such an event
// or stream kPollsUntilDone times.
inline constexpr int kPollsUntilDone = 3;
void SetDeferred(bool on);
bool IsDeferred();
bool HasCopiesBefore(const Reached& reached);
// Requires: `host` is contiguous CPU memory, `bytes` as long.
void DeferCopy(StreamKey stream, const at::Tensor& host, std::vector<char> bytes);

// Work is done when it is issued, so a forgotten wait between streams changes no value here, though
// it would on a real device. It is counted instead: an access that nothing orders after the write
// (or, when it writes, the reads) of another stream; a block freed, and so reusable by the stream
// that had allocated it, while another stream may still use it (record_stream() makes that right).
// `data` is the first byte of the block, in use by the work that began last on the stream.
void NoteAllocation(const void* data, StreamKey stream);
void NoteAccess(const void* data, StreamKey stream, bool is_write);
void NoteStream(const void* data, StreamKey stream);
void NoteFree(const void* data);

// ---------------------------------------------------------------- random numbers (runtime.cc)

// Random numbers of a device come from a CPU generator of its own.
at::Generator DeviceGenerator(int device);
at::Generator NewDeviceGenerator(int device);
// The CPU generator behind one of ours.
at::Generator CpuGeneratorOf(const at::Generator& generator);

// ---------------------------------------------------------------- kernels (fallback.cc)

// A CPU tensor over the bytes of `tensor`, which `open` keeps accessible.
at::Tensor HostView(const at::Tensor& tensor, OpenBlocks& open);

// The kernel of every operator without a kernel of its own: lends the arguments to the CPU's kernel
// without copying them, and brings the results back.
void Fallback(const c10::OperatorHandle& op, torch::jit::Stack* stack);

// What runs in place of an operator that the CPU lacks; null for all others (stand_ins.cc).
using BoxedCpuKernel = void (*)(torch::jit::Stack* stack);
BoxedCpuKernel CpuStandIn(const c10::OperatorName& name);

// ---------------------------------------------------------------- defects (defects.cc)

// As the C interface takes it: plain pointers and numbers.
struct DefectOptions {
  const char* op = "";     // base name, all overloads: "mm", "_softmax_backward_data", "ns::name"
  const char* kind = "";   // scale, nan, bf16acc, lost_carry, sleep, hang, abort, crash, error
  const char* dtype = "";  // of the first tensor argument; empty: any
  double value = 0.0;      // factor, or seconds
  int64_t lane = -1;       // only elements whose row-major number is `lane` modulo 16; -1: all
  int64_t skip = 0;        // leave so many matching calls alone
  int64_t times = -1;      // act on so many calls at most; -1: on all
};

// Switches a defect on; its number. c10::Error for an unknown operator or kind, or an operator
// whose calls never reach the device because it is made of others.
int64_t InjectDefect(const DefectOptions& options);
void ClearDefect(int64_t number);  // -1: all
// How many calls it acted on; of a numeric kind, only calls of which it changed some byte.
int64_t DefectHits(int64_t number);

struct Defect;
using ActiveDefects = std::vector<std::shared_ptr<Defect>>;

// The defects that this call has to suffer, in order of injection. Requires: one call per kernel
// run, since it counts for `skip`.
ActiveDefects MatchDefects(const c10::OperatorName& name, std::optional<at::ScalarType> dtype);
// Sleeps, hangs, dies or throws, where one of them says so.
void SufferEvents(const ActiveDefects& defects, const c10::OperatorName& name);
// Whether one of them recomputes and therefore needs the arguments as they were before the call.
bool NeedArguments(const ActiveDefects& defects);
// Changes the results of the call, CPU tensors. `arguments` is empty unless needed.
void SpoilResults(const ActiveDefects& defects, const torch::jit::Stack& arguments,
                  const std::vector<at::Tensor>& results);

// Results recomputed with a faulty accumulator (faulty_sums.cc), undefined for an operator that is
// no matrix product, convolution, sum or mean, or sums fewer than two terms.
enum class Accumulator : uint8_t {
  kBFloat16,       // rounds to bfloat16 after each term
  kForgetsCarry,   // the sum of the first half of the terms is not carried into the second half
};
at::Tensor FaultySum(Accumulator accumulator, const std::string& base_name,
                     const torch::jit::Stack& arguments, const at::Tensor& result);

}  // namespace plumbline_test_device

#endif  // PLUMBLINE_TESTS_TEST_DEVICE_TEST_DEVICE_H_
