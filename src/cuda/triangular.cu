// SPDX-License-Identifier: BSD-3-Clause
// Launches triangular solves; the kernels are in triangular.cuh.
#include "triangular.cuh"

namespace gossamer::kernels {

template <class T, class I>
void solve_triangular(Cuda exec, const Csr<T, I>& L, Triangle triangle, const T* b, int64_t ldb, int64_t width, T* x,
                      const SolveProgress& progress) {
  const int64_t total = L.heads * width, tiles = (total + device::warp_lanes - 1) / device::warp_lanes;
  if (L.rows == 0 || total == 0) return;
  if (total == 1) return device::launch_warps(exec, solve_vector<T, I>, L.rows, L, triangle, b, ldb, x, progress);
  device::launch_warps(exec, solve_columns<T, I>, L.rows * tiles, L, triangle, b, ldb, width, x, progress);
}

template <class T, class I>
void solve_triangular(Cuda exec, const Csr<T, I>& L, Triangle triangle, const Levels<I>& levels, const T* b,
                      int64_t ldb, int64_t width, T* x, unsigned long long* bad) {
  const int64_t total = L.heads * width, tiles = (total + device::warp_lanes - 1) / device::warp_lanes;
  const int64_t all = total == 0 ? 0 : levels.count(L.rows);
  for (int64_t step = 0; step < all; ++step) {
    const int64_t level = levels.backward ? all - 1 - step : step, first = levels.level_ptr[level];
    const int64_t count = levels.level_ptr[level + 1] - first;
    const I* rows = levels.order + first;
    if (total == 1)
      device::launch_warps(exec, solve_level_vector<T, I>, count, L, triangle, rows, count, b, ldb, x, bad);
    else
      device::launch_warps(exec, solve_level_columns<T, I>, count * tiles, L, triangle, rows, count, b, ldb, width, x,
                           bad);
  }
}

template <class I>
void find_levels(Cuda exec, const PatternView<I>& L, bool upper, I* level, const SolveProgress& progress) {
  device::launch_warps(exec, find_level_rows<I>, L.rows, L, upper, level, progress);
}

template <class T, class I>
void keep_triangle(Cuda exec, const PatternView<I>& L, Triangle triangle, int64_t heads, const T* in, T* out) {
  device::launch_warps(exec, keep_rows<T, I>, L.rows, L, triangle, heads, in, out);
}

#define INSTANTIATE_SOLVE(T, I)                                                                                      \
  template void solve_triangular(Cuda, const Csr<T, I>&, Triangle, const T*, int64_t, int64_t, T*,                   \
                                 const SolveProgress&);                                                              \
  template void solve_triangular(Cuda, const Csr<T, I>&, Triangle, const Levels<I>&, const T*, int64_t, int64_t, T*, \
                                 unsigned long long*);
#define INSTANTIATE_KEEP(T, I) \
  template void keep_triangle(Cuda, const PatternView<I>&, Triangle, int64_t, const T*, T*);
#define INSTANTIATE_LEVELS(I) template void find_levels(Cuda, const PatternView<I>&, bool, I*, const SolveProgress&);
GOSSAMER_FOR_EACH_REAL_TYPE(INSTANTIATE_SOLVE)
GOSSAMER_FOR_EACH_INDEX(INSTANTIATE_LEVELS)
GOSSAMER_FOR_EACH_TYPE(INSTANTIATE_KEEP)
#undef INSTANTIATE_SOLVE
#undef INSTANTIATE_KEEP
#undef INSTANTIATE_LEVELS

}  // namespace gossamer::kernels
