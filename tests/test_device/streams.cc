// The order of work on several streams: clocks, deferred copies, and accesses that nothing orders.
//
// Every kernel and copy is a tick of its stream. What a stream, an event or the host is known to be
// behind is a vector clock (L. Lamport, 1978; C. Fidge, 1988): ticks by stream.
#include <algorithm>
#include <atomic>
#include <cstring>
#include <mutex>
#include <set>

#include "test_device.h"

namespace plumbline_test_device {
namespace {

struct DeferredCopy {
  StreamKey stream;
  uint64_t tick = 0;
  at::Tensor host;  // kept alive, as a real copy in flight has to be
  std::vector<char> bytes;
};

// Who used a block since it was handed out.
struct BlockUse {
  StreamKey owner;  // the stream that was current then; a freed block is reused on it
  std::optional<std::pair<StreamKey, uint64_t>> last_write;
  Reached reads;  // since that write
  std::set<StreamKey> recorded;  // record_stream(): reuse waits for them
};

struct Order {
  std::mutex mutex;
  std::atomic<bool> is_deferring{false};
  std::vector<DeferredCopy> copies;  // under way, in the order of the calls
  Reached ticks;
  std::map<StreamKey, Reached> covered;  // what each stream has waited for
  Reached host;
  std::map<const void*, BlockUse> uses;
};
Order& TheOrder() {
  static Order* const order = new Order;  // tensors may be freed after every static object
  return *order;
}

void Merge(Reached& into, const Reached& other) {
  for (const auto& [stream, tick] : other) into[stream] = std::max(into[stream], tick);
}

bool Covers(const Reached& reached, StreamKey stream, uint64_t tick) {
  const auto found = reached.find(stream);
  return found != reached.end() && found->second >= tick;
}

template <typename Arrives>
void Complete(Arrives arrives) {
  Order& order = TheOrder();
  std::vector<DeferredCopy> done;  // released outside the lock
  const std::lock_guard lock(order.mutex);
  std::vector<DeferredCopy> left;
  for (DeferredCopy& copy : order.copies) {
    if (!arrives(copy)) {
      left.push_back(std::move(copy));
      continue;
    }
    std::memcpy(copy.host.mutable_data_ptr(), copy.bytes.data(), copy.bytes.size());
    done.push_back(std::move(copy));
  }
  order.copies = std::move(left);
}

}  // namespace

void BeginWork(StreamKey stream) {
  Order& order = TheOrder();
  const std::lock_guard lock(order.mutex);
  ++order.ticks[stream];
  Merge(order.covered[stream], order.host);  // issued after the host had waited
}

Reached CoveredBy(StreamKey stream) {
  Order& order = TheOrder();
  const std::lock_guard lock(order.mutex);
  Reached reached = order.covered[stream];
  reached[stream] = order.ticks[stream];
  return reached;
}

void WaitOnStream(StreamKey stream, const Reached& reached) {
  Order& order = TheOrder();
  const std::lock_guard lock(order.mutex);
  Merge(order.covered[stream], reached);
}

void WaitOnHost(const Reached& reached) {
  Complete([&](const DeferredCopy& copy) { return Covers(reached, copy.stream, copy.tick); });
  Order& order = TheOrder();
  const std::lock_guard lock(order.mutex);
  Merge(order.host, reached);
}

bool HasCopiesBefore(const Reached& reached) {
  Order& order = TheOrder();
  const std::lock_guard lock(order.mutex);
  return std::any_of(order.copies.begin(), order.copies.end(), [&](const DeferredCopy& copy) {
    return Covers(reached, copy.stream, copy.tick);
  });
}

void CompleteStream(StreamKey stream) { WaitOnHost(CoveredBy(stream)); }

void CompleteDevice(int device) {
  Reached reached;
  {
    Order& order = TheOrder();
    const std::lock_guard lock(order.mutex);
    for (const auto& [stream, tick] : order.ticks) {
      if (stream.first == device) reached[stream] = tick;
    }
  }
  WaitOnHost(reached);
}

void CompleteOverlapping(const void* data, size_t size_bytes) {
  const auto* const start = static_cast<const char*>(data);
  Complete([start, size_bytes](const DeferredCopy& copy) {
    const auto* const host = static_cast<const char*>(copy.host.const_data_ptr());
    return host < start + size_bytes && start < host + copy.bytes.size();
  });
}

void SetDeferred(bool on) {
  TheOrder().is_deferring = on;
  if (!on) Complete([](const DeferredCopy&) { return true; });
}

bool IsDeferred() { return TheOrder().is_deferring; }

void DeferCopy(StreamKey stream, const at::Tensor& host, std::vector<char> bytes) {
  Count(Counter::kDeferredCopies);
  // A boolean has no byte to stand for "not there yet": true is at least wrong half of the time.
  const int filler = host.scalar_type() == at::ScalarType::Bool ? 1 : 0xFF;
  std::memset(host.mutable_data_ptr(), filler, bytes.size());
  // Holding a tensor may need the interpreter's lock, and who holds that may want ours.
  DeferredCopy copy{stream, 0, host, std::move(bytes)};
  Order& order = TheOrder();
  const std::lock_guard lock(order.mutex);
  copy.tick = order.ticks[stream];
  order.copies.push_back(std::move(copy));
}

void NoteAllocation(const void* data, StreamKey stream) {
  Order& order = TheOrder();
  const std::lock_guard lock(order.mutex);
  order.uses[data] = {stream, std::nullopt, {}, {}};
}

void NoteAccess(const void* data, StreamKey stream, bool is_write) {
  Order& order = TheOrder();
  const std::lock_guard lock(order.mutex);
  const auto found = order.uses.find(data);
  if (found == order.uses.end()) return;  // null, or memory that came in from outside
  BlockUse& use = found->second;
  const uint64_t tick = order.ticks[stream];
  Reached known = order.covered[stream];
  known[stream] = tick;
  bool is_ordered = !use.last_write || Covers(known, use.last_write->first, use.last_write->second);
  if (is_write) {
    for (const auto& [reader, read] : use.reads) is_ordered &= Covers(known, reader, read);
    use.last_write = {stream, tick};
    use.reads.clear();
  } else {
    use.reads[stream] = tick;
  }
  if (!is_ordered) Count(Counter::kUnorderedAccesses);
}

void NoteStream(const void* data, StreamKey stream) {
  Order& order = TheOrder();
  const std::lock_guard lock(order.mutex);
  const auto found = order.uses.find(data);
  if (found != order.uses.end()) found->second.recorded.insert(stream);
}

void NoteFree(const void* data) {
  Order& order = TheOrder();
  const std::lock_guard lock(order.mutex);
  const auto found = order.uses.find(data);
  if (found == order.uses.end()) return;
  const BlockUse& use = found->second;
  Reached accesses = use.reads;
  if (use.last_write) Merge(accesses, {{use.last_write->first, use.last_write->second}});
  // The next owner's work is issued later on the same stream, behind what the host waited for.
  Reached known = order.covered[use.owner];
  Merge(known, order.host);
  known[use.owner] = order.ticks[use.owner];
  const bool is_ordered = std::all_of(accesses.begin(), accesses.end(), [&](const auto& access) {
    return use.recorded.count(access.first) > 0 || Covers(known, access.first, access.second);
  });
  if (!is_ordered) Count(Counter::kUnorderedFrees);
  order.uses.erase(found);
}

}  // namespace plumbline_test_device
