// SPDX-License-Identifier: BSD-3-Clause
// Both kinds of graph attention and their gradients, without edge terms and dropout. An exp counts as one flop.
#include <gossamer/kernels/gat.h>
#include <gossamer/kernels/gatv2_backward.h>
#include "ops.h"

namespace cost {

using gossamer::Cuda;
namespace kernels = gossamer::kernels;

// What backward needs beside the inputs.
template <class T>
struct Backward {
  Transposed t;
  gossamer::PatternView<int32_t> At;
  const int32_t* perm;
  const T *G, *Z, *lse;
  T* scratch;

  Backward(const Pattern& A, Shape s)
      : t(transposed(A)),
        At(on_device(t.pattern)),
        perm(copy(t.perm)),
        G(numbers<T>(A.rows * s.heads * s.width)),
        Z(numbers<T>(A.rows * s.heads * s.width)),
        lse(numbers<T>(A.rows * s.heads)),
        scratch(array<T>(kernels::gatv2_cuda_scratch(A.rows, A.nnz(), s.heads, s.width))) {}
};

template <class T>
kernels::Gat<T, int32_t> gat_inputs(const Pattern& A, Shape s) {
  return {on_device(A),
          s.heads,
          s.width,
          numbers<T>(A.cols * s.heads * s.width),
          numbers<T>(A.cols * s.heads),
          numbers<T>(A.rows * s.heads),
          nullptr,
          T(0.2),
          {}};
}

template <class T>
kernels::Gatv2<T, int32_t> gatv2_inputs(const Pattern& A, Shape s) {
  const int64_t columns = s.heads * s.width;
  return {
      on_device(A), s.heads, s.width, numbers<T>(A.cols * columns), numbers<T>(A.rows * columns), numbers<T>(columns),
      nullptr,      T(0.2),  {}};
}

template <class T>
T* pieces(const Pattern& A, Shape s) {
  return array<T>(kernels::attention_cuda_scratch(A.nnz(), s.heads, s.width));
}

static double entries(const Pattern& A, Shape s) {
  return static_cast<double>(A.nnz() * s.heads);
}

// An entry of a head: 6 for its score and weight, 2 a column for Z.
template <class T>
Work gat(const Pattern& A, Shape s) {
  const auto in = gat_inputs<T>(A, s);
  T *Z = array<T>(A.rows * s.heads * s.width), *lse = array<T>(A.rows * s.heads), *scratch = pieces<T>(A, s);
  counted([&] { kernels::gat(Cuda{}, in, Z, lse, scratch); });
  return {entries(A, s) * (2.0 * static_cast<double>(s.width) + 6)};
}

// An entry of a head: 10 for s, de and dt, 2 a column each for G·X and dX.
template <class T>
Work gat_backward(const Pattern& A, Shape s) {
  const auto in = gat_inputs<T>(A, s);
  const Backward<T> back(A, s);
  const kernels::GatGradients<T> d{array<T>(A.cols * s.heads * s.width), array<T>(A.cols * s.heads),
                                   array<T>(A.rows * s.heads), nullptr};
  counted([&] { kernels::gat_backward(Cuda{}, in, back.At, back.perm, back.G, back.Z, back.lse, back.scratch, d); });
  return {entries(A, s) * (4.0 * static_cast<double>(s.width) + 10)};
}

// An entry of a head: a column 4 for its part of the score and 2 for Z, and 4 for the weight.
template <class T>
Work gatv2(const Pattern& A, Shape s) {
  const auto in = gatv2_inputs<T>(A, s);
  T *Z = array<T>(A.rows * s.heads * s.width), *lse = array<T>(A.rows * s.heads), *scratch = pieces<T>(A, s);
  counted([&] { kernels::gatv2(Cuda{}, in, Z, lse, scratch); });
  return {entries(A, s) * (6.0 * static_cast<double>(s.width) + 4)};
}

// An entry of a head, a column: 4 for the score, 2 for G·x, 5 for d x_dst and d att, 5 for d x_src.
template <class T>
Work gatv2_backward(const Pattern& A, Shape s) {
  const auto in = gatv2_inputs<T>(A, s);
  const Backward<T> back(A, s);
  const int64_t columns = s.heads * s.width;
  const kernels::Gatv2Gradients<T> d{array<T>(A.cols * columns), array<T>(A.rows * columns), array<T>(columns),
                                     nullptr};
  counted([&] { kernels::gatv2_backward(Cuda{}, in, back.At, back.perm, back.G, back.Z, back.lse, back.scratch, d); });
  return {entries(A, s) * 16.0 * static_cast<double>(s.width)};
}

template <class T>
void add_attention(Ops& ops) {
  ops["gat"] = gat<T>;
  ops["gat_backward"] = gat_backward<T>;
  ops["gatv2"] = gatv2<T>;
  ops["gatv2_backward"] = gatv2_backward<T>;
}
template void add_attention<float>(Ops&);
template void add_attention<double>(Ops&);

}  // namespace cost
