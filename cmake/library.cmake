# Options that every target of this project is built with.
add_library(sol_options INTERFACE)
target_include_directories(sol_options INTERFACE ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/src)
target_compile_options(sol_options INTERFACE -Wall -Wextra -Wshadow -Wnon-virtual-dtor)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # GCC 12 sees overlapping copies in std::string concatenations where there are none (its bug 105651).
  target_compile_options(sol_options INTERFACE -Wno-restrict)
endif()
# No contraction behind our back: where a product and a sum are fused, the kernels say so themselves.
target_compile_options(sol_options INTERFACE -ffp-contract=off)
if(SOL_WERROR)
  target_compile_options(sol_options INTERFACE -Werror)
endif()
if(SOL_SANITIZE)
  target_compile_options(sol_options INTERFACE -fsanitize=${SOL_SANITIZE} -fno-omit-frame-pointer -g)
  target_link_options(sol_options INTERFACE -fsanitize=${SOL_SANITIZE})
endif()

# sol_library(NAME [deps...]): one folder, one library, all of its .cpp files.
function(sol_library name)
  file(GLOB sources CONFIGURE_DEPENDS *.cpp)
  add_library(sol_${name} STATIC ${sources})
  target_link_libraries(sol_${name} PUBLIC sol_options ${ARGN})
endfunction()

# sol_test(FOLDER [deps...] [ONE_PROCESS] [LONG suite...]): the tests of one folder, one executable. Labels say when
# they run:
#   quick  always (./test.sh)
#   long   the suites after LONG, which train or start many processes (./test.sh --all, which CI runs)
#   slow   tests whose name contains "Slow", minutes each (ctest -L slow)
# ONE_PROCESS: one entry of CTest for all tests of a label, not one for each, as loading LibTorch takes longer than
# most tests do. Several tests run side by side, so threads that wait must not spin.
function(sol_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "ONE_PROCESS" "" "LONG")
  file(GLOB sources CONFIGURE_DEPENDS *_test.cpp)
  add_executable(sol_${name}_tests ${sources})
  target_link_libraries(sol_${name}_tests PRIVATE sol_test_main ${arg_UNPARSED_ARGUMENTS})

  list(TRANSFORM arg_LONG APPEND ".*")  # "*": all of them
  list(JOIN arg_LONG ":" long)
  sol_add_tests(${name} quick "-*Slow*:${long}" 120)
  if(long)
    sol_add_tests(${name} long "${long}:-*Slow*" 120)
  endif()
  set(arg_ONE_PROCESS FALSE)
  sol_add_tests(${name} slow "*Slow*" 1800)
endfunction()

# The tests of sol_<name>_tests that pass GoogleTest's `filter`, each of which may take `seconds`.
macro(sol_add_tests name label filter seconds)
  if(arg_ONE_PROCESS)
    add_test(NAME ${name}/${label} COMMAND sol_${name}_tests "--gtest_filter=${filter}")
    set_tests_properties(${name}/${label} PROPERTIES LABELS ${label} TIMEOUT 900 ENVIRONMENT OMP_WAIT_POLICY=passive)
  else()
    gtest_discover_tests(sol_${name}_tests TEST_FILTER "${filter}" DISCOVERY_TIMEOUT 120 NO_PRETTY_VALUES
      PROPERTIES LABELS ${label} TIMEOUT ${seconds} ENVIRONMENT OMP_WAIT_POLICY=passive)
  endif()
endmacro()
