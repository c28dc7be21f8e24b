# What makes a whole build quick.
#
# PLUMBLINE_PRECOMPILE: headers that most sources include are parsed once and read back by every
# other source. Tests always do so.
# PLUMBLINE_AT_ONCE: several sources of a folder are compiled as one (CMake's unity build), so that
# templates that they share are made once, which halves the time.
#
# The presets asan and fuzz set both, as does the wheel alone (`make demo`); CI sets the second for
# the preset release and the wheel too, which then share what they compile. The preset release by
# itself does neither: one changed source compiles alone, and each includes what it uses.
option(PLUMBLINE_PRECOMPILE "Precompile the headers of libraries and program too" OFF)
option(PLUMBLINE_AT_ONCE "Compile several sources of a folder as one" OFF)
set(plumbline_sources_at_once 8)
# Of these folders each source is compiled by itself everywhere: what is loaded into a training takes
# single objects of their libraries, and must not need the libraries of all others.
set(plumbline_layers_alone base tensor kernels record config formats hdf5 store online capture watch_live
  watch_gradients watch_perturb watch_rules watch_tracer)
if(PLUMBLINE_SANITIZE)  # no training loads these
  set(plumbline_layers_alone)
endif()
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
# No two sources of the target may have one name for two things.
function(plumbline_compile_at_once target)
  if(NOT PLUMBLINE_AT_ONCE)
    return()
  endif()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON
    UNITY_BUILD_BATCH_SIZE ${plumbline_sources_at_once})
  # g++ takes the sources for headers, whose classes should hold nothing of an anonymous namespace.
  target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>)
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
