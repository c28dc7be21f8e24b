// Whether a test program was compiled with AddressSanitizer, whose allocator ends the process
// where another one fails, and which maps memory of its own.

#ifndef PLUMBLINE_BASE_PROCESS_SANITIZER_FOR_TEST_H_
#define PLUMBLINE_BASE_PROCESS_SANITIZER_FOR_TEST_H_

namespace plumbline {

// g++ has the macro, clang the feature.
#if defined(__SANITIZE_ADDRESS__)
inline constexpr bool kHasAddressSanitizer = true;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
inline constexpr bool kHasAddressSanitizer = true;
#else
inline constexpr bool kHasAddressSanitizer = false;
#endif
#else
inline constexpr bool kHasAddressSanitizer = false;
#endif

}  // namespace plumbline

#endif  // PLUMBLINE_BASE_PROCESS_SANITIZER_FOR_TEST_H_
