// What PyTorch asks of a backend around its kernels: devices, streams, events, random numbers; and
// the counters.
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>

#include <atomic>
#include <chrono>
#include <mutex>
#include <unordered_map>

#include "test_device.h"

namespace plumbline_test_device {
namespace {

std::array<std::atomic<uint64_t>, static_cast<size_t>(Counter::kEnd)> counters;

std::atomic<uint64_t>& Cell(Counter counter) { return counters[static_cast<size_t>(counter)]; }

struct OperatorTable {
  std::mutex mutex;
  std::unordered_map<c10::OperatorName, uint64_t> counts;
};
OperatorTable& TheOperatorTable() {
  static OperatorTable* const table = new OperatorTable;
  return *table;
}

thread_local int current_device = 0;
thread_local std::array<int64_t, kDevices> current_streams{};
std::atomic<int64_t> last_stream{0};

struct Event {
  std::chrono::steady_clock::time_point time;
  Reached reached;
  int polls = 0;
};

struct StreamPolls {
  std::mutex mutex;
  std::map<StreamKey, int> counts;
};
StreamPolls& TheStreamPolls() {
  static StreamPolls* const polls = new StreamPolls;
  return *polls;
}

StreamKey KeyOf(const c10::Stream& stream) {
  return {FullDevice(stream.device()).index(), stream.id()};
}
c10::Stream StreamOf(c10::Device device, int64_t number) {
  return c10::Stream(c10::Stream::UNSAFE, FullDevice(device), number);
}

// ---------------------------------------------------------------- random numbers

struct Generator final : c10::GeneratorImpl {
  Generator(int device, at::Generator cpu)
      : c10::GeneratorImpl({kDeviceType, static_cast<c10::DeviceIndex>(device)},
                           c10::DispatchKeySet(c10::DispatchKey::PrivateUse1)),
        cpu_(std::move(cpu)) {}

  void set_current_seed(uint64_t seed) override { cpu_.set_current_seed(seed); }
  void set_offset(uint64_t offset) override { cpu_.set_offset(offset); }
  uint64_t get_offset() const override { return cpu_.get_offset(); }
  uint64_t current_seed() const override { return cpu_.current_seed(); }
  uint64_t seed() override { return cpu_.seed(); }
  void set_state(const c10::TensorImpl& state) override {
    cpu_.unsafeGetGeneratorImpl()->set_state(state);
  }
  c10::intrusive_ptr<c10::TensorImpl> get_state() const override {
    return cpu_.unsafeGetGeneratorImpl()->get_state();
  }
  const at::Generator& cpu() const { return cpu_; }

 private:
  Generator* clone_impl() const override {
    return new Generator(device_.index(), cpu_.clone());  // owned by the intrusive_ptr of clone()
  }

  at::Generator cpu_;
};

const std::vector<at::Generator>& DefaultGenerators() {
  static const auto* const generators = [] {
    auto* const made = new std::vector<at::Generator>;
    for (int device = 0; device < kDevices; ++device) made->push_back(NewDeviceGenerator(device));
    return made;
  }();
  return *generators;
}

// ---------------------------------------------------------------- what PyTorch calls

struct Hooks final : at::PrivateUse1HooksInterface {
  void init() const override {}
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return true; }
  bool hasPrimaryContext(c10::DeviceIndex) const override { return true; }
  c10::DeviceIndex deviceCount() const override { return kDevices; }
  void setCurrentDevice(c10::DeviceIndex device) const override { SetCurrentDevice(device); }
  c10::DeviceIndex getCurrentDevice() const override {
    return static_cast<c10::DeviceIndex>(CurrentDevice());
  }
  c10::DeviceIndex exchangeDevice(c10::DeviceIndex device) const override {
    const int before = CurrentDevice();
    SetCurrentDevice(device);
    return static_cast<c10::DeviceIndex>(before);
  }
  c10::DeviceIndex maybeExchangeDevice(c10::DeviceIndex device) const override {
    return device < 0 ? getCurrentDevice() : exchangeDevice(device);
  }
  const at::Generator& getDefaultGenerator(c10::DeviceIndex device) const override {
    return DefaultGenerators()[static_cast<size_t>(FullDevice({kDeviceType, device}).index())];
  }
  at::Generator getNewGenerator(c10::DeviceIndex device) const override {
    return NewDeviceGenerator(FullDevice({kDeviceType, device}).index());
  }
  bool isPinnedPtr(const void* data) const override { return IsPinned(data); }
  at::Allocator* getPinnedMemoryAllocator() const override { return PinnedAllocator(); }
  at::Device getDeviceFromPtr(void* data) const override {
    const std::optional<c10::DeviceIndex> device = DeviceOf(data);
    TORCH_CHECK(device.has_value(), "testdev: ", data, " is no memory of the device");
    return {kDeviceType, *device};
  }
  void resizePrivateUse1Bytes(const c10::Storage& storage, size_t size_bytes) const override {
    ResizeStorage(storage, size_bytes);
  }
};

// All work is done when it is issued, so streams are numbers and events a clock reading; only
// deferred copies make a wait matter.
struct Guard final : c10::impl::DeviceGuardImplInterface {
  c10::DeviceType type() const override { return kDeviceType; }
  c10::Device exchangeDevice(c10::Device device) const override {
    const c10::Device before = getDevice();
    SetCurrentDevice(FullDevice(device).index());
    return before;
  }
  c10::Device getDevice() const override {
    return {kDeviceType, static_cast<c10::DeviceIndex>(current_device)};
  }
  void setDevice(c10::Device device) const override {
    SetCurrentDevice(FullDevice(device).index());
  }
  void uncheckedSetDevice(c10::Device device) const noexcept override {
    if (device.index() >= 0 && device.index() < kDevices) current_device = device.index();
  }
  c10::DeviceIndex deviceCount() const noexcept override { return kDevices; }

  c10::Stream getStream(c10::Device device) const override {
    const c10::Device full = FullDevice(device);
    return StreamOf(full, current_streams[static_cast<size_t>(full.index())]);
  }
  c10::Stream getDefaultStream(c10::Device device) const override { return StreamOf(device, 0); }
  c10::Stream getStreamFromGlobalPool(c10::Device device, bool) const override {
    return StreamOf(device, ++last_stream);
  }
  c10::Stream getNewStream(c10::Device device, int) const override {
    return StreamOf(device, ++last_stream);
  }
  c10::Stream exchangeStream(c10::Stream stream) const override {
    const c10::Stream before = getStream(stream.device());
    current_streams[static_cast<size_t>(FullDevice(stream.device()).index())] = stream.id();
    return before;
  }
  void* getStreamNativeHandle(const c10::Stream stream) const override {
    return reinterpret_cast<void*>(stream.id());
  }
  bool queryStream(const c10::Stream& stream) const override {
    const Reached reached = CoveredBy(KeyOf(stream));
    if (!HasCopiesBefore(reached)) return true;
    {
      StreamPolls& polls = TheStreamPolls();
      const std::lock_guard lock(polls.mutex);
      int& count = polls.counts[KeyOf(stream)];
      if (++count < kPollsUntilDone) return false;
      count = 0;
    }
    WaitOnHost(reached);
    return true;
  }
  void synchronizeStream(const c10::Stream& stream) const override {
    Count(Counter::kStreamSyncs);
    CompleteStream(KeyOf(stream));
  }
  void synchronizeDevice(const c10::DeviceIndex device) const override {
    Count(Counter::kDeviceSyncs);
    CompleteDevice(FullDevice({kDeviceType, device}).index());
  }

  void record(void** event, const c10::Stream& stream, const c10::DeviceIndex,
              const c10::EventFlag) const override {
    Count(Counter::kEventRecords);
    if (*event == nullptr) *event = new Event;  // freed by destroyEvent
    auto* const recorded = static_cast<Event*>(*event);
    *recorded = {std::chrono::steady_clock::now(), CoveredBy(KeyOf(stream)), 0};
  }
  void block(void* event, const c10::Stream& stream) const override {
    if (event == nullptr) return;
    Count(Counter::kEventWaits);
    WaitOnStream(KeyOf(stream), static_cast<Event*>(event)->reached);
  }
  bool queryEvent(void* event) const override {
    if (event == nullptr) return true;
    Count(Counter::kEventQueries);
    auto* const asked = static_cast<Event*>(event);
    if (HasCopiesBefore(asked->reached) && ++asked->polls < kPollsUntilDone) return false;
    WaitOnHost(asked->reached);  // an event seen done orders what comes after, as a wait does
    return true;
  }
  void synchronizeEvent(void* event) const override {
    if (event == nullptr) return;
    Count(Counter::kEventSyncs);
    WaitOnHost(static_cast<Event*>(event)->reached);
  }
  void destroyEvent(void* event, const c10::DeviceIndex) const noexcept override {
    delete static_cast<Event*>(event);
  }
  double elapsedTime(void* start, void* end, const c10::DeviceIndex) const override {
    TORCH_CHECK(start != nullptr && end != nullptr,
                "testdev: both events must be recorded before the time between them is asked for");
    const auto passed = static_cast<Event*>(end)->time - static_cast<Event*>(start)->time;
    return std::chrono::duration<double, std::milli>(passed).count();
  }
};

C10_REGISTER_GUARD_IMPL(PrivateUse1, Guard)

const bool is_registered = [] {
  c10::SetAllocator(kDeviceType, DeviceAllocator());
  RegisterPinnedAllocator();
  at::RegisterPrivateUse1HooksInterface(new Hooks);  // PyTorch keeps the pointer for ever
  return true;
}();

}  // namespace

void Count(Counter counter, uint64_t amount) {
  Cell(counter).fetch_add(amount, std::memory_order_relaxed);
}
uint64_t CounterValue(Counter counter) { return Cell(counter).load(std::memory_order_relaxed); }

void ResetCounters() {
  const uint64_t live_bytes = CounterValue(Counter::kLiveBytes);
  for (auto& counter : counters) counter = 0;
  Cell(Counter::kLiveBytes) = live_bytes;
  Cell(Counter::kPeakBytes) = live_bytes;
}

void CountLiveBytes(int64_t change) {
  const uint64_t now = Cell(Counter::kLiveBytes) += static_cast<uint64_t>(change);
  uint64_t peak = CounterValue(Counter::kPeakBytes);
  while (now > peak && !Cell(Counter::kPeakBytes).compare_exchange_weak(peak, now)) {
  }
}

void CountOperator(const c10::OperatorName& name) {
  OperatorTable& table = TheOperatorTable();
  const std::lock_guard lock(table.mutex);
  ++table.counts[name];
}

std::map<std::string, uint64_t> OperatorCounts() {
  OperatorTable& table = TheOperatorTable();
  const std::lock_guard lock(table.mutex);
  std::map<std::string, uint64_t> counts;
  for (const auto& [name, count] : table.counts) counts[c10::toString(name)] = count;
  return counts;
}

void ResetOperatorCounts() {
  OperatorTable& table = TheOperatorTable();
  const std::lock_guard lock(table.mutex);
  table.counts.clear();
}

int CurrentDevice() { return current_device; }

void SetCurrentDevice(int device) {
  TORCH_CHECK(device >= 0 && device < kDevices, "testdev: there is no device ", device,
              " (expected 0 to ", kDevices - 1, ")");
  current_device = device;
}

c10::Device FullDevice(c10::Device device) {
  const int index = device.index() < 0 ? current_device : device.index();
  TORCH_CHECK(index < kDevices, "testdev: there is no device ", index, " (expected 0 to ",
              kDevices - 1, ")");
  return {kDeviceType, static_cast<c10::DeviceIndex>(index)};
}

StreamKey CurrentStream(int device) {
  return {device, current_streams[static_cast<size_t>(device)]};
}

at::Generator DeviceGenerator(int device) {
  return DefaultGenerators()[static_cast<size_t>(device)];
}

at::Generator NewDeviceGenerator(int device) {
  return at::make_generator<Generator>(device, at::detail::createCPUGenerator());
}

at::Generator CpuGeneratorOf(const at::Generator& generator) {
  return static_cast<Generator*>(generator.unsafeGetGeneratorImpl())->cpu();
}

}  // namespace plumbline_test_device
