#include "base/memory/digest.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <isa-l/crc.h>
#include <openssl/evp.h>
#include <openssl/opensslv.h>
#include <openssl/provider.h>
#include <zlib.h>

#include <array>
#include <bit>
#include <cstring>
#include <memory>
#include <string_view>

// The static declarations give the size of the streaming state, so that it needs no allocation.
#define XXH_STATIC_LINKING_ONLY
#include <xxhash.h>

namespace plumbline {
namespace {

static_assert(sizeof(XXH3_state_t) <= Xxh3::kStateBytes && alignof(XXH3_state_t) <= 64);

XXH3_state_t* State(std::byte* memory) { return reinterpret_cast<XXH3_state_t*>(memory); }
const XXH3_state_t* State(const std::byte* memory) {
  return reinterpret_cast<const XXH3_state_t*>(memory);
}

// ISA-L's AVX code returns with the upper register halves in use, which makes the SSE code that
// follows (ours and the application's) about 160 ns slower per call; measured with ISA-L 2.30.
void ReleaseUpperRegisters() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx")) asm volatile("vzeroupper" ::: "memory");
#endif
}

}  // namespace

uint32_t Crc32(std::span<const std::byte> bytes, uint32_t crc) {
  const auto* data = reinterpret_cast<const unsigned char*>(bytes.data());
  crc = crc32_gzip_refl(crc, data, bytes.size());
  ReleaseUpperRegisters();
  return crc;
}

uint32_t Crc32Combine(uint32_t first, uint32_t second, uint64_t second_bytes) {
  return static_cast<uint32_t>(crc32_combine(first, second, static_cast<z_off_t>(second_bytes)));
}

uint32_t Crc32c(std::span<const std::byte> bytes, uint32_t crc) {
  // ISA-L's length is an int and its pointer is not const, though the bytes are only read. Its
  // function inverts neither the start value nor the result, as the check value requires.
  constexpr size_t kMost = size_t{1} << 30;
  crc = ~crc;
  while (!bytes.empty()) {
    const std::span<const std::byte> part =
        bytes.first(bytes.size() < kMost ? bytes.size() : kMost);
    auto* data = reinterpret_cast<unsigned char*>(const_cast<std::byte*>(part.data()));
    crc = crc32_iscsi(data, static_cast<int>(part.size()), crc);
    bytes = bytes.subspan(part.size());
  }
  ReleaseUpperRegisters();
  return ~crc;
}

std::string Crc32Hex(uint32_t crc) { return fmt::format("{:08x}", crc); }

uint64_t XorOfWords(std::span<const std::byte> bytes) {
  static_assert(std::endian::native == std::endian::little);
  constexpr size_t kWords = 8;  // independent sums: one vector or two per round
  uint64_t sums[kWords] = {};
  while (bytes.size() >= sizeof(sums)) {
    uint64_t words[kWords];
    std::memcpy(words, bytes.data(), sizeof(words));
    for (size_t i = 0; i < kWords; ++i) sums[i] ^= words[i];
    bytes = bytes.subspan(sizeof(words));
  }
  uint64_t words[kWords] = {};
  if (!bytes.empty()) std::memcpy(words, bytes.data(), bytes.size());
  uint64_t sum = 0;
  for (size_t i = 0; i < kWords; ++i) sum ^= sums[i] ^ words[i];
  return sum;
}

uint64_t XorCombine(uint64_t first, uint64_t second, uint64_t first_bytes) {
  // The second run starts inside a word: its bytes stand that many lanes further.
  constexpr uint64_t kBytesOfWord = 8;
  return first ^ std::rotl(second, static_cast<int>(first_bytes % kBytesOfWord * 8));
}

std::string XorHex(uint64_t words) { return fmt::format("{:#018x}", words); }

namespace {

// Factors of splitmix64 (S. Vigna, 2015), and for the word one of xxHash's.
constexpr uint64_t kWordFactor = 0x9E3779B185EBCA87;
constexpr uint64_t kPlaceFactor = 0x9E3779B97F4A7C15;
constexpr uint64_t kFirstFactor = 0xBF58476D1CE4E5B9;
constexpr uint64_t kSecondFactor = 0x94D049BB133111EB;

template <class Word>
void AddWords(const std::byte* data, size_t count, uint64_t first, Digest128* digest) {
  uint64_t low = 0, high = 0;
  for (size_t i = 0; i < count; ++i) {
    Word word;
    std::memcpy(&word, data + i * sizeof(Word), sizeof(Word));
    uint64_t mixed = uint64_t{word} * kWordFactor + (first + i + 1) * kPlaceFactor;
    mixed = (mixed ^ (mixed >> 32)) * kFirstFactor;
    mixed ^= mixed >> 29;
    low += mixed;
    mixed *= kSecondFactor;
    high += mixed ^ (mixed >> 32);
  }
  digest->low += low;
  digest->high += high;
}

}  // namespace

void AddToPositionDigest(std::span<const std::byte> elements, size_t element_bytes, uint64_t first,
                         Digest128* digest) {
  const size_t size = elements.size();
  switch (element_bytes) {
    case 1:
      return AddWords<uint8_t>(elements.data(), size, first, digest);
    case 2:
      return AddWords<uint16_t>(elements.data(), size / 2, first, digest);
    case 4:
      return AddWords<uint32_t>(elements.data(), size / 4, first, digest);
    default:
      return AddWords<uint64_t>(elements.data(), size / 8, first, digest);
  }
}

std::string PositionDigestHex(const Digest128& digest) {
  return fmt::format("{:016x}{:016x}", digest.high, digest.low);
}

Digest128 Xxh3Of(std::span<const std::byte> bytes) {
  const XXH128_hash_t hash = XXH3_128bits(bytes.data(), bytes.size());
  return {hash.low64, hash.high64};
}

Xxh3::Xxh3() { Reset(); }
void Xxh3::Reset() {
  XXH3_INITSTATE(State(state_));
  XXH3_128bits_reset(State(state_));
}
void Xxh3::Update(std::span<const std::byte> bytes) {
  XXH3_128bits_update(State(state_), bytes.data(), bytes.size());
}
Digest128 Xxh3::Finish() const {
  const XXH128_hash_t hash = XXH3_128bits_digest(State(state_));
  return {hash.low64, hash.high64};
}

namespace {

// The functions of libcrypto that are used here. The library is opened with the first digest:
// linked, it would take 2 ms of the start of every command.
struct Library {
  Library() {
    const std::string name = fmt::format("libcrypto.so.{}", OPENSSL_SHLIB_VERSION);
    void* const library = ::dlopen(name.c_str(), RTLD_LAZY | RTLD_LOCAL);
    if (library == nullptr) return;
    const auto find = [&]<class F>(F*& function, const char* symbol) {
      function = reinterpret_cast<F*>(::dlsym(library, symbol));
      return function != nullptr;
    };
    is_whole = find(new_library_context, "OSSL_LIB_CTX_new") &&
               find(load_provider, "OSSL_PROVIDER_load") && find(fetch, "EVP_MD_fetch") &&
               find(new_context, "EVP_MD_CTX_new") && find(free_context, "EVP_MD_CTX_free") &&
               find(begin, "EVP_DigestInit_ex2") && find(update, "EVP_DigestUpdate") &&
               find(finish, "EVP_DigestFinal_ex");
  }

  bool is_whole = false;
  decltype(OSSL_LIB_CTX_new)* new_library_context = nullptr;
  decltype(OSSL_PROVIDER_load)* load_provider = nullptr;
  decltype(EVP_MD_fetch)* fetch = nullptr;
  decltype(EVP_MD_CTX_new)* new_context = nullptr;
  decltype(EVP_MD_CTX_free)* free_context = nullptr;
  decltype(EVP_DigestInit_ex2)* begin = nullptr;
  decltype(EVP_DigestUpdate)* update = nullptr;
  decltype(EVP_DigestFinal_ex)* finish = nullptr;
};

// The digests as the library has them, whatever openssl.cnf allows: found in a context of our own,
// which reads no configuration.
struct Algorithms {
  Algorithms() {
    if (!crypto.is_whole) return;
    OSSL_LIB_CTX* const context = crypto.new_library_context();
    if (context == nullptr || crypto.load_provider(context, "default") == nullptr) return;
    // A system in FIPS mode asks every context for approved ones; "-fips" takes that back.
    md5 = crypto.fetch(context, "MD5", "-fips");
    sha1 = crypto.fetch(context, "SHA1", "-fips");
  }
  const Library crypto;
  const EVP_MD* md5 = nullptr;
  const EVP_MD* sha1 = nullptr;
};

// Stays until the process ends, as threads may outlive main().
const Algorithms& Known() {
  static const Algorithms* const algorithms = new Algorithms;
  return *algorithms;
}

struct FreeContext {
  void operator()(EVP_MD_CTX* context) const { Known().crypto.free_context(context); }
};

Result<std::string> Hex(const EVP_MD* algorithm, std::string_view name,
                        std::span<const std::byte> bytes) {
  const Library& crypto = Known().crypto;
  if (!crypto.is_whole) {
    return Error(ErrorCode::kUnsupported,
                 fmt::format("{}: needs OpenSSL {} (libcrypto.so.{}), which cannot be opened", name,
                             OPENSSL_VERSION_MAJOR, OPENSSL_SHLIB_VERSION));
  }
  // Making one takes longer than the digest of a small tensor.
  static thread_local const std::unique_ptr<EVP_MD_CTX, FreeContext> context(crypto.new_context());
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest;
  unsigned int size = 0;
  if (algorithm == nullptr || context == nullptr ||
      crypto.begin(context.get(), algorithm, nullptr) != 1 ||
      crypto.update(context.get(), bytes.data(), bytes.size()) != 1 ||
      crypto.finish(context.get(), digest.data(), &size) != 1) {
    return Error(ErrorCode::kUnsupported,
                 fmt::format("{}: OpenSSL of this machine does not compute it", name));
  }
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  text.reserve(size_t{2} * size);
  for (const unsigned char byte : std::span(digest).first(size)) {
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

}  // namespace

Result<std::string> Md5Hex(std::span<const std::byte> bytes) {
  return Hex(Known().md5, "MD5", bytes);
}

Result<std::string> Sha1Hex(std::span<const std::byte> bytes) {
  return Hex(Known().sha1, "SHA-1", bytes);
}

}  // namespace plumbline
