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

# sol_test(FOLDER [deps...]): the tests of one folder, one executable. Tests whose name contains "Slow"
# get the label "slow" and are left out of the quick run. Several tests run side by side, so threads that wait
# must not spin.
function(sol_test name)
  file(GLOB sources CONFIGURE_DEPENDS *_test.cpp)
  add_executable(sol_${name}_tests ${sources})
  target_link_libraries(sol_${name}_tests PRIVATE sol_test_main ${ARGN})
  gtest_discover_tests(sol_${name}_tests TEST_FILTER "-*Slow*" DISCOVERY_TIMEOUT 120 NO_PRETTY_VALUES
    PROPERTIES LABELS quick TIMEOUT 120 ENVIRONMENT OMP_WAIT_POLICY=passive)
  gtest_discover_tests(sol_${name}_tests TEST_FILTER "*Slow*" DISCOVERY_TIMEOUT 120 NO_PRETTY_VALUES
    PROPERTIES LABELS slow TIMEOUT 1800 ENVIRONMENT OMP_WAIT_POLICY=passive)
endfunction()
