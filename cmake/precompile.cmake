# Headers that most sources include, parsed once and read back by every other source. Tests always
# do so. Libraries and the program do only where PLUMBLINE_PRECOMPILE is set: in the presets asan
# and fuzz, and where the wheel alone is built (`make demo`). All these also compile several sources
# of a folder as one (CMake's unity build): templates that they share are made once. The preset
# release, without both, proves that each source includes what it uses; the other presets that no two
# sources of a folder have one name for two things.
option(PLUMBLINE_PRECOMPILE "Precompile headers, and compile several sources at once" OFF)
set(plumbline_sources_at_once 8)
set(plumbline_precompiled <algorithm> <array> <atomic> <charconv> <cmath> <cstdint> <cstring>
  <functional> <limits> <map> <memory> <mutex> <optional> <set> <span> <string> <string_view>
  <tuple> <unordered_map> <unordered_set> <utility> <variant> <vector> <fmt/format.h> <fmt/ranges.h>
  "${PROJECT_SOURCE_DIR}/include/plumbline/result.h")

# plumbline_precompile(TARGET OWNER [HEADERS more...])
# TARGET reads the precompiled headers of OWNER, a library with the same compiler flags; OWNER
# itself makes them.
function(plumbline_precompile target owner)
  cmake_parse_arguments(arg "" "" "HEADERS" ${ARGN})
  if(target STREQUAL owner)
    target_precompile_headers(${target} PRIVATE ${plumbline_precompiled} ${arg_HEADERS})
  else()
    target_precompile_headers(${target} REUSE_FROM ${owner})
  endif()
  # ccache tells such a file by its content alone.
  if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    target_compile_options(${target} PRIVATE "SHELL:-Xclang -fno-pch-timestamp")
  endif()
endfunction()

# plumbline_compile_at_once(TARGET)
function(plumbline_compile_at_once target)
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON
    UNITY_BUILD_BATCH_SIZE ${plumbline_sources_at_once})
  # Both are about names of another source, or of a header that is none.
  target_compile_options(${target} PRIVATE -Wno-shadow
    $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>)
endfunction()

# plumbline_test_flags(TARGET [LOOPING_TESTS])
# What is tested stays as optimised as it ships; the tests themselves only cost compile time, twice
# as much of it when sanitizers are optimised as well. LOOPING_TESTS: see plumbline_layer().
function(plumbline_test_flags target)
  cmake_parse_arguments(arg "LOOPING_TESTS" "" "" ${ARGN})
  target_link_libraries(${target} PRIVATE GTest::gtest GTest::gtest_main)
  target_compile_definitions(${target} PRIVATE
    PLUMBLINE_TEST_DATA="${PROJECT_SOURCE_DIR}/tests/data")
  target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-O1>)
  if(NOT arg_LOOPING_TESTS)
    target_compile_options(${target} PRIVATE $<$<CONFIG:Debug>:-O0>)
    plumbline_precompile(${target} test_headers HEADERS <filesystem> <fstream> <gtest/gtest.h>)
  endif()
endfunction()
