# Compiler and linker flags of every target, as one interface target. Warnings stop those who work
# on the code (presets, CI), not those who build it with another compiler.
add_library(plumbline_flags INTERFACE)
target_include_directories(plumbline_flags INTERFACE
  "${PROJECT_SOURCE_DIR}/include" "${PROJECT_SOURCE_DIR}/src")
# -ffp-contract=off: results must not depend on whether the CPU has fused multiply-add.
target_compile_options(plumbline_flags INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wswitch -Wnon-virtual-dtor
  $<$<BOOL:${PLUMBLINE_WERROR}>:-Werror> -ffp-contract=off -fstack-protector-strong)
# g++ 12 reports string and vector growth inlined at -O3 as out of bounds (its bugs 105651, 105329).
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  target_compile_options(plumbline_flags INTERFACE -Wno-restrict -Wno-array-bounds
    -Wno-stringop-overflow -Wno-stringop-overread)
endif()
# g++ tidies its memory less often: 5 to 10 % less time for 200 MB more.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  target_compile_options(plumbline_flags INTERFACE "SHELL:--param ggc-min-heapsize=400000")
endif()
target_link_options(plumbline_flags INTERFACE -Wl,-z,relro,-z,now -Wl,-z,noexecstack)
# glibc's fortification needs optimisation and clashes with the sanitizers' interceptors.
if(NOT PLUMBLINE_SANITIZE)
  target_compile_definitions(plumbline_flags INTERFACE
    $<$<OR:$<CONFIG:Release>,$<CONFIG:RelWithDebInfo>>:_FORTIFY_SOURCE=2>)
else()
  # A target with the property PLUMBLINE_UNSANITIZED is compiled without.
  set(sanitizers -fsanitize=${PLUMBLINE_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_compile_options(plumbline_flags INTERFACE
    "$<$<NOT:$<BOOL:$<TARGET_PROPERTY:PLUMBLINE_UNSANITIZED>>>:${sanitizers}>")
  target_link_options(plumbline_flags INTERFACE -fsanitize=${PLUMBLINE_SANITIZE})
endif()

# A wheel has all code twice, in the program and in the package: what nobody calls is left out there,
# and what no time is spent in is compiled for size.
if(PLUMBLINE_BUNDLE)
  target_compile_options(plumbline_flags INTERFACE -ffunction-sections -fdata-sections)
  set(is_module $<STREQUAL:$<TARGET_PROPERTY:TYPE>,MODULE_LIBRARY>)
  target_link_options(plumbline_flags INTERFACE -Wl,--gc-sections
    "$<${is_module}:-Wl,--version-script=${PROJECT_SOURCE_DIR}/cmake/modules.map>")
endif()
set(plumbline_small_layers arrays config explain graphs inspect online operators overflow precheck ranks
  report run_config tree view watch)

# plumbline_layer(NAME SOURCES a.cc b.cc [LINK targets...] [TESTS a_test.cc ...] [LOOPING_TESTS])
# One static library per folder of src/, and one test program per folder. LOOPING_TESTS: these tests
# loop over all values of a type, which takes minutes without optimisation.
function(plumbline_layer name)
  cmake_parse_arguments(arg "LOOPING_TESTS" "" "SOURCES;LINK;TESTS;TEST_LINK" ${ARGN})
  add_library(plumbline_${name} STATIC ${arg_SOURCES})
  target_link_libraries(plumbline_${name} PUBLIC plumbline_flags ${arg_LINK})
  if(PLUMBLINE_PRECOMPILE)
    plumbline_precompile(plumbline_${name} plumbline_base)
  endif()
  if(NOT name IN_LIST plumbline_layers_alone)
    plumbline_compile_at_once(plumbline_${name})
  endif()
  if(PLUMBLINE_BUNDLE AND name IN_LIST plumbline_small_layers)
    target_compile_options(plumbline_${name} PRIVATE -Os)
  endif()
  if(PLUMBLINE_FUZZ)  # counts where inputs lead, which only the libraries need
    target_compile_options(plumbline_${name} PRIVATE -fsanitize=fuzzer-no-link)
  endif()
  if(PLUMBLINE_TESTS AND arg_TESTS)
    add_executable(${name}_test ${arg_TESTS})
    target_link_libraries(${name}_test PRIVATE plumbline_${name} ${arg_TEST_LINK})
    set(looping)
    if(arg_LOOPING_TESTS)
      set(looping LOOPING_TESTS)
    endif()
    plumbline_test_flags(${name}_test ${looping})
    plumbline_compile_at_once(${name}_test)
    # The tests of a folder run as one process; gtest's own summary counts the cases.
    add_test(NAME ${name} COMMAND ${name}_test)
  endif()
endfunction()
