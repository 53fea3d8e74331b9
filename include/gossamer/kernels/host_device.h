// SPDX-License-Identifier: BSD-3-Clause
// GOSSAMER_HD marks a function that kernels of both devices call: nvcc compiles it twice, other compilers see nothing.
#pragma once

#if defined(__CUDACC__)
#define GOSSAMER_HD __host__ __device__
#else
#define GOSSAMER_HD
#endif
