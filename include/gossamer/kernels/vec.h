// SPDX-License-Identifier: BSD-3-Clause
// n lanes of T, as the compiler's own vector type. Only ever a local variable of an inlined function: passed by value
// it would have no stable ABI.
#pragma once

namespace gossamer {

template <class T, int n>
struct VecOf {
  typedef T type __attribute__((vector_size(n * sizeof(T))));
};
template <class T>
struct VecOf<T, 1> {
  using type = T;
};
template <class T, int n>
using Vec = typename VecOf<T, n>::type;

}  // namespace gossamer
