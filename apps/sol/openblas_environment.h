// OpenBLAS, which LibTorch's products go through, picks its kernels when the program starts.
#pragma once

namespace sol::app {

// OpenBLAS 0.3.21 takes processors that are newer than itself for a Pentium 4 and multiplies
// several times slower than it could. When that has happened on a machine with AVX2, starts this
// program again in the same process with OPENBLAS_CORETYPE set; else, or when that variable is set
// already, returns. To be called before anything that a second start would do twice.
void choose_openblas_kernels();

}  // namespace sol::app
