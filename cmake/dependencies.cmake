# Everything comes from Debian 12 packages; scripts/setup.sh installs them.
find_package(OpenMP REQUIRED)
find_package(fmt REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(yaml-cpp REQUIRED)
find_package(CLI11 REQUIRED)
find_package(ZLIB REQUIRED)
find_package(PkgConfig REQUIRED)
pkg_check_modules(PCRE2 REQUIRED IMPORTED_TARGET libpcre2-8)
pkg_check_modules(ZSTD REQUIRED IMPORTED_TARGET libzstd)
pkg_check_modules(UTF8PROC REQUIRED IMPORTED_TARGET libutf8proc)
pkg_check_modules(XXHASH REQUIRED IMPORTED_TARGET libxxhash)
pkg_check_modules(HTTPLIB REQUIRED IMPORTED_TARGET cpp-httplib)
add_library(httplib INTERFACE)
target_link_libraries(httplib INTERFACE PkgConfig::HTTPLIB)
find_package(Boost REQUIRED)  # headers: Boost.Math

# Debian's dnnl CMake package asks for OpenCL headers that nothing here needs, so link it plainly.
find_library(DNNL_LIBRARY dnnl REQUIRED)
find_path(DNNL_INCLUDE dnnl.hpp REQUIRED)
add_library(sol_dnnl INTERFACE)
target_link_libraries(sol_dnnl INTERFACE ${DNNL_LIBRARY})
target_include_directories(sol_dnnl SYSTEM INTERFACE ${DNNL_INCLUDE})

if(SOL_TRAINING)
  find_package(Torch REQUIRED)
  # Debian's LibTorch uses a Gloo of its own; others have it built in.
  find_library(GLOO_LIBRARY gloo)
  if(NOT GLOO_LIBRARY)
    set(GLOO_LIBRARY "")
  endif()
endif()
