#include <ATen/core/CachingHostAllocator.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <unordered_map>

#include "test_device.h"

namespace plumbline_test_device {
namespace {

// Addresses only; pages come when they are touched.
constexpr size_t kArenaBytes = size_t{64} << 30;
constexpr size_t kPageBytes = 4096;
// Freed blocks this large return their pages. Giving back small ones would refault each page on
// the next use, which costs ten times the kernel.
constexpr size_t kReleaseBytes = size_t{64} << 20;

// One piece of an arena. Pieces are never given back to the arena, only reused whole, so that a
// pointer to a Block stays valid for ever.
struct Block {
  char* data = nullptr;
  size_t capacity_bytes = 0;
  size_t used_bytes = 0;  // whole pages; what is opened and closed
  int opens = 0;
  c10::DeviceIndex device = 0;
};

struct Arena {
  char* start = nullptr;
  size_t used_bytes = 0;
  std::map<size_t, std::vector<Block*>> free_blocks;  // by capacity
};

struct Memory {
  std::mutex mutex;
  std::array<Arena, kDevices> arenas;
  std::map<const char*, std::unique_ptr<Block>> blocks;  // by first byte
  bool is_protected = true;
};

// Never destroyed: tensors may outlive every static object.
Memory& TheMemory() {
  static Memory* const memory = new Memory;
  return *memory;
}

// What the signal handler reads: written once per device, before its memory is handed out.
std::array<std::atomic<char*>, kDevices> arena_starts;
struct sigaction previous_action;

int DeviceOfAddress(const char* address) {
  for (int device = 0; device < kDevices; ++device) {
    const char* const start = arena_starts[device].load(std::memory_order_acquire);
    if (start != nullptr && address >= start && address < start + kArenaBytes) return device;
  }
  return -1;
}

// Names the device, then leaves the fault to whoever had the signal before. Only write() is used:
// the host may have been anywhere.
void OnFault(int signal, siginfo_t* info, void* context) {
  const int device = DeviceOfAddress(static_cast<const char*>(info->si_addr));
  if (device >= 0) {
    char text[] =
        "plumbline test device: the host touched memory of testdev:? directly. Copy the tensor to "
        "the CPU first.\n";
    *std::strchr(text, '?') = static_cast<char>('0' + device);
    (void)!write(STDERR_FILENO, text, sizeof(text) - 1);
  }
  if ((previous_action.sa_flags & SA_SIGINFO) != 0 && previous_action.sa_sigaction != nullptr) {
    previous_action.sa_sigaction(signal, info, context);
    return;
  }
  // The access is repeated on return, and then meets the earlier handler or the default action; a
  // signal that somebody sent is not.
  sigaction(SIGSEGV, &previous_action, nullptr);
  if (info->si_code <= 0) raise(signal);
}

void InstallFaultHandler() {
  struct sigaction action = {};
  action.sa_sigaction = OnFault;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
  sigaction(SIGSEGV, &action, &previous_action);
}

// Requires: the mutex is held, as in all functions below that take a Memory.
void MapArena(Memory& memory, int device) {
  const int protection = memory.is_protected ? PROT_NONE : PROT_READ | PROT_WRITE;
  void* const start = mmap(nullptr, kArenaBytes, protection,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  TORCH_CHECK(start != MAP_FAILED, "testdev: cannot reserve ", kArenaBytes,
              " bytes of addresses: ", std::strerror(errno));
  const bool is_first = std::all_of(memory.arenas.begin(), memory.arenas.end(),
                                    [](const Arena& arena) { return arena.start == nullptr; });
  memory.arenas[device].start = static_cast<char*>(start);
  arena_starts[device].store(static_cast<char*>(start), std::memory_order_release);
  if (is_first && memory.is_protected) InstallFaultHandler();
}

void Protect(const Block& block, int protection) {
  Count(Counter::kPageChanges);
  if (mprotect(block.data, block.used_bytes, protection) == 0) return;
  // The kernel allows about 65,000 ranges of different protection: too many small open blocks.
  TORCH_CHECK(false, "testdev: cannot change the protection of ", block.used_bytes,
              " bytes: ", std::strerror(errno),
              ". One operator may not read more than about 30,000 separate tensors.");
}

Block* TakeBlock(Memory& memory, int device, size_t size_bytes) {
  Arena& arena = memory.arenas[device];
  if (arena.start == nullptr) MapArena(memory, device);
  const size_t used_bytes = (size_bytes + kPageBytes - 1) / kPageBytes * kPageBytes;
  const size_t capacity_bytes = std::bit_ceil(used_bytes);
  std::vector<Block*>& free_blocks = arena.free_blocks[capacity_bytes];
  Block* block = nullptr;
  if (!free_blocks.empty()) {
    block = free_blocks.back();
    free_blocks.pop_back();
  } else {
    TORCH_CHECK(capacity_bytes <= kArenaBytes - arena.used_bytes, "testdev:", device,
                ": out of memory: ", size_bytes, " bytes asked for, ", arena.used_bytes, " of ",
                kArenaBytes, " taken");
    auto owned = std::make_unique<Block>();
    block = owned.get();
    block->data = arena.start + arena.used_bytes;
    block->capacity_bytes = capacity_bytes;
    block->device = static_cast<c10::DeviceIndex>(device);
    arena.used_bytes += capacity_bytes;
    memory.blocks.emplace(block->data, std::move(owned));
  }
  // A block freed while a kernel had it open is still open over its old length.
  if (block->opens > 0 && used_bytes > block->used_bytes) {
    block->used_bytes = used_bytes;
    Protect(*block, PROT_READ | PROT_WRITE);
  }
  block->used_bytes = block->opens > 0 ? std::max(block->used_bytes, used_bytes) : used_bytes;
  return block;
}

Block* FindBlock(Memory& memory, const void* data) {
  auto after = memory.blocks.upper_bound(static_cast<const char*>(data));
  if (after == memory.blocks.begin()) return nullptr;
  Block* const block = std::prev(after)->second.get();
  return static_cast<const char*>(data) < block->data + block->capacity_bytes ? block : nullptr;
}

void FreeData(void* data) {
  if (data == nullptr) return;
  Memory& memory = TheMemory();
  const std::lock_guard lock(memory.mutex);
  Block* const block = FindBlock(memory, data);
  if (block == nullptr) return;  // cannot be: only TakeBlock's pointers carry this deleter
  CountLiveBytes(-static_cast<int64_t>(block->used_bytes));
  NoteFree(block->data);
  if (block->capacity_bytes >= kReleaseBytes) {
    madvise(block->data, block->capacity_bytes, MADV_DONTNEED);
  }
  memory.arenas[block->device].free_blocks[block->capacity_bytes].push_back(block);
}

struct ArenaAllocator final : c10::Allocator {
  c10::DataPtr allocate(size_t size_bytes) override {
    const int device = CurrentDevice();
    const c10::Device owner(kDeviceType, static_cast<c10::DeviceIndex>(device));
    if (size_bytes == 0) return {nullptr, nullptr, &FreeData, owner};
    Memory& memory = TheMemory();
    const std::lock_guard lock(memory.mutex);
    const Block* const block = TakeBlock(memory, device, size_bytes);
    Count(Counter::kAllocations);
    CountLiveBytes(static_cast<int64_t>(block->used_bytes));
    NoteAllocation(block->data, CurrentStream(device));
    return {block->data, block->data, &FreeData, owner};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &FreeData; }
  void copy_data(void* destination, const void* source, size_t size_bytes) const override {
    OpenBlocks open;
    open.Open(destination);
    open.Open(source);
    std::memcpy(destination, source, size_bytes);
  }
};

// Pinned memory is ordinary memory that is remembered as pinned.
struct PinnedRanges {
  std::mutex mutex;
  std::map<const char*, size_t> sizes;  // bytes by first byte
};
PinnedRanges& ThePinnedRanges() {
  static PinnedRanges* const ranges = new PinnedRanges;
  return *ranges;
}

void FreePinned(void* data) {
  if (data == nullptr) return;
  {
    PinnedRanges& ranges = ThePinnedRanges();
    const std::lock_guard lock(ranges.mutex);
    ranges.sizes.erase(static_cast<const char*>(data));
  }
  std::free(data);
}

struct HostMemory final : at::HostAllocator {
  c10::DataPtr allocate(size_t size_bytes) override {
    const c10::Device cpu(c10::DeviceType::CPU);
    if (size_bytes == 0) return {nullptr, nullptr, &FreePinned, cpu};
    void* data = nullptr;
    TORCH_CHECK(posix_memalign(&data, kPageBytes, size_bytes) == 0, "testdev: no ", size_bytes,
                " bytes of pinned memory");
    PinnedRanges& ranges = ThePinnedRanges();
    const std::lock_guard lock(ranges.mutex);
    ranges.sizes[static_cast<const char*>(data)] = size_bytes;
    return {data, data, &FreePinned, cpu};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &FreePinned; }
  void copy_data(void* destination, const void* source, size_t size_bytes) const override {
    std::memcpy(destination, source, size_bytes);
  }
  // A deferred copy holds its tensor, so that nothing is freed under it.
  bool record_event(void*, void*, c10::Stream) override { return true; }
  void empty_cache() override {}
  at::HostStats get_stats() override { return {}; }
  void reset_accumulated_stats() override {}
  void reset_peak_stats() override {}
};

}  // namespace

c10::Allocator* DeviceAllocator() {
  static ArenaAllocator* const allocator = new ArenaAllocator;
  return allocator;
}

c10::Allocator* PinnedAllocator() {
  static HostMemory* const allocator = new HostMemory;
  return allocator;
}

void RegisterPinnedAllocator() {
  at::setHostAllocator(kDeviceType, static_cast<HostMemory*>(PinnedAllocator()));
}

bool IsPinned(const void* data) {
  PinnedRanges& ranges = ThePinnedRanges();
  const std::lock_guard lock(ranges.mutex);
  const auto* const address = static_cast<const char*>(data);
  auto after = ranges.sizes.upper_bound(address);
  if (after == ranges.sizes.begin()) return false;
  --after;
  return address < after->first + after->second;
}

std::optional<c10::DeviceIndex> DeviceOf(const void* data) {
  const int device = DeviceOfAddress(static_cast<const char*>(data));
  if (device < 0) return std::nullopt;
  return static_cast<c10::DeviceIndex>(device);
}

bool SetProtected(bool on) {
  Memory& memory = TheMemory();
  const std::lock_guard lock(memory.mutex);
  const bool is_unused = std::all_of(memory.arenas.begin(), memory.arenas.end(),
                                     [](const Arena& arena) { return arena.start == nullptr; });
  if (is_unused) memory.is_protected = on;
  return is_unused || memory.is_protected == on;
}

void OpenBlocks::Open(const void* data) {
  if (data == nullptr || DeviceOfAddress(static_cast<const char*>(data)) < 0) return;
  Memory& memory = TheMemory();
  const std::lock_guard lock(memory.mutex);
  if (!memory.is_protected) return;
  Block* const block = FindBlock(memory, data);
  TORCH_CHECK(block != nullptr, "testdev: address ", data, " belongs to no allocated tensor");
  if (block->opens == 0) Protect(*block, PROT_READ | PROT_WRITE);
  ++block->opens;
  opened_.push_back(block);
}

OpenBlocks::~OpenBlocks() {
  if (opened_.empty()) return;
  Memory& memory = TheMemory();
  const std::lock_guard lock(memory.mutex);
  for (void* const opened : opened_) {
    Block* const block = static_cast<Block*>(opened);
    if (--block->opens > 0) continue;
    Count(Counter::kPageChanges);
    // Closing cannot need a new range unless the limit is reached; the block then stays open.
    (void)mprotect(block->data, block->used_bytes, PROT_NONE);
  }
}

void ResizeStorage(const c10::Storage& storage, size_t size_bytes) {
  const size_t old_bytes = storage.nbytes();
  const int before = CurrentDevice();
  SetCurrentDevice(storage.device().index());
  c10::DataPtr data = DeviceAllocator()->allocate(size_bytes);
  SetCurrentDevice(before);
  if (const size_t kept_bytes = std::min(old_bytes, size_bytes); kept_bytes > 0) {
    DeviceAllocator()->copy_data(data.get(), storage.data(), kept_bytes);
  }
  storage.set_data_ptr_noswap(std::move(data));
  storage.set_nbytes(size_bytes);
}

}  // namespace plumbline_test_device
