// SPDX-License-Identifier: BSD-3-Clause
// The types kernels are compiled for, on the host (src/cpu, under Pool) and on the device (src/cuda). The one list:
//
//   GOSSAMER_FOR_EACH_TYPE(X)            X(T, I) for each value type T and index type I
//   GOSSAMER_FOR_EACH_TYPE(X, extern)    X(T, I, extern) likewise
//
// A kernel's header names its instantiations in such an X, whose third argument comes before the word `template`. Where
// the compiled kernels are linked, GOSSAMER_COMPILED is defined: the header then declares them extern, and nobody who
// includes it compiles a kernel that runs under Pool. Under another executor, or with the headers alone, the kernel is
// an ordinary template.
#pragma once
#include <cstdint>

#include <gossamer/kernels/half.h>

#define GOSSAMER_FOR_EACH_INDEX_(X, T, ...) \
  X(T, int32_t __VA_OPT__(, ) __VA_ARGS__)  \
  X(T, int64_t __VA_OPT__(, ) __VA_ARGS__)

// The types that are added up in themselves: for kernels that have no 16-bit form.
#define GOSSAMER_FOR_EACH_REAL_TYPE(X, ...)                     \
  GOSSAMER_FOR_EACH_INDEX_(X, float __VA_OPT__(, ) __VA_ARGS__) \
  GOSSAMER_FOR_EACH_INDEX_(X, double __VA_OPT__(, ) __VA_ARGS__)

#define GOSSAMER_FOR_EACH_TYPE(X, ...)                                         \
  GOSSAMER_FOR_EACH_REAL_TYPE(X __VA_OPT__(, ) __VA_ARGS__)                    \
  GOSSAMER_FOR_EACH_INDEX_(X, ::gossamer::bfloat16 __VA_OPT__(, ) __VA_ARGS__) \
  GOSSAMER_FOR_EACH_INDEX_(X, ::gossamer::float16 __VA_OPT__(, ) __VA_ARGS__)

// X(I): for kernels of patterns alone.
#define GOSSAMER_FOR_EACH_INDEX(X, ...) \
  X(int32_t __VA_OPT__(, ) __VA_ARGS__) \
  X(int64_t __VA_OPT__(, ) __VA_ARGS__)

// X(T): for kernels of values alone.
#define GOSSAMER_FOR_EACH_VALUE(X, ...)              \
  X(float __VA_OPT__(, ) __VA_ARGS__)                \
  X(double __VA_OPT__(, ) __VA_ARGS__)               \
  X(::gossamer::bfloat16 __VA_OPT__(, ) __VA_ARGS__) \
  X(::gossamer::float16 __VA_OPT__(, ) __VA_ARGS__)
