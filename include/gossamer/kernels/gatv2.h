// SPDX-License-Identifier: BSD-3-Clause
// Graph attention, second kind (GATv2), fused: per head, over the entries (i, j) of a pattern, row i = the edges that
// point at i,
//
//   t = x_dst[i] + x_src[j] [+ x_edge[p]],   e = att · leaky_relu(t),   s = row softmax of e
//   Z[i] = Σ_j m s[i, j] x_src[j]            m: dropout, or 1
//
// O(nnz · heads · width) time; t is made anew wherever it is needed, never stored. The forward keeps Z and lse only,
// its gradients are in gatv2_backward.h. A column may appear in a row more than once (parallel edges).
#pragma once
#include <gossamer/kernels/online_softmax.h>
#include <gossamer/kernels/types.h>

namespace gossamer::kernels {

// x_src: (cols, heads, width), x_dst: (rows, heads, width), att: (heads, width), x_edge: (nnz, heads, width) or null.
template <class T, class I>
struct Gatv2 {
  PatternView<I> A;
  int64_t heads = 1, width = 1;
  const T *x_src = nullptr, *x_dst = nullptr, *att = nullptr, *x_edge = nullptr;
  Sum<T> slope = 0;
  Dropout dropout;

  int64_t columns() const { return heads * width; }
  bool far() const { return is_far<T>(A.cols * columns()); }
};

// The definition of Z as loops. Tests compare the tuned kernel with it; unlike that one it overflows for large scores.
namespace plain {
template <class T, class I>
void gatv2(const Gatv2<T, I>& in, T* Z) {
  const int64_t columns = in.columns();
  for (int64_t i = 0; i < in.A.rows; ++i)
    for (int64_t h = 0; h < in.heads; ++h) {
      const auto exp_score = [&](int64_t p) {
        Sum<T> e = 0;
        for (int64_t c = h * in.width; c < (h + 1) * in.width; ++c) {
          const Sum<T> t = in.x_dst[i * columns + c] + in.x_src[in.A.indices[p] * columns + c] +
                           (in.x_edge ? in.x_edge[p * columns + c] : T(0));
          e += in.att[c] * (t > 0 ? t : in.slope * t);
        }
        return std::exp(e);
      };
      Sum<T> sum = 0;
      for (int64_t p = in.A.indptr[i]; p < in.A.indptr[i + 1]; ++p) sum += exp_score(p);
      std::vector<Sum<T>> z(in.width);
      for (int64_t p = in.A.indptr[i]; p < in.A.indptr[i + 1]; ++p) {
        const Sum<T> weight =
            exp_score(p) / sum * in.dropout.template factor<Sum<T>>(in.dropout.first(p, in.heads) + h);
        for (int64_t c = 0; c < in.width; ++c) z[c] += weight * in.x_src[in.A.indices[p] * columns + h * in.width + c];
      }
      for (int64_t c = 0; c < in.width; ++c) Z[i * columns + h * in.width + c] = static_cast<T>(z[c]);
    }
}
}  // namespace plain

// e[k · heads + h] = att · leaky_relu(t) for the entries p + k of the row of x_dst, k < n.
template <int lanes, class T, class I, class W>
[[gnu::always_inline]] inline void gatv2_scores(const Gatv2<T, I>& in, const W& width, const Sum<T>* x_dst,
                                                const Sum<T>* att, int64_t p, int64_t n, bool far, Sum<T>* e) {
  using S = Sum<T>;
  const int64_t columns = in.heads * width;
  for (int64_t k = 0; k < n; ++k) {
    if (far) prefetch_first_half(in.A, p + k, in.x_src, columns);
    const T* x_src = in.x_src + in.A.indices[p + k] * columns;
    const T* x_edge = in.x_edge ? in.x_edge + (p + k) * columns : nullptr;
    const auto term = [=, &in]<int l>(int64_t c, Vec<S, l>& sum) {
      Vec<S, l> t, a;
      sum_of<l>(x_dst + c, x_src + c, x_edge ? x_edge + c : x_edge, t);
      leaky_relu<l, S>(t, in.slope);
      load<l>(att + c, a);
      sum += a * t;
    };
    sum_heads<lanes, S>(in.heads, width, term, e + k * in.heads);
  }
}

// Z: (rows, heads, width), lse: (rows, heads).
template <Host E, class T, class I>
void gatv2(const E& exec, const Gatv2<T, I>& in, T* Z, Sum<T>* lse) {
  const bool far = in.far();
  for_each_row_range(exec, in.A, 2 * in.columns(), [&](int64_t begin, int64_t end) {
    simd([&]<int bytes> {
      constexpr int lanes = bytes / sizeof(Sum<T>);
      const int64_t columns = in.columns();
      WideRow<lanes, T> dst_row(columns), att_row(columns);
      const Sum<T>* att = att_row.of(in.att);
      with_width<bytes, T, I>(in.width, [&](const auto& width) {
        const auto scores = [&](int64_t i, int64_t p, int64_t n, Sum<T>* e) {
          gatv2_scores<lanes>(in, width, dst_row.of(in.x_dst + i * columns), att, p, n, far, e);
        };
        attend_rows<bytes>(in.A, begin, end, in.heads, width, in.x_src, far, in.dropout, scores, Z, lse);
      });
    });
  });
}

// On a CUDA device: pointers are the device's. Defined in src/cuda/gatv2.cu. scratch: attention_cuda_scratch.
template <class T, class I>
[[gnu::weak]] void gatv2(Cuda, const Gatv2<T, I>& in, T* Z, Sum<T>* lse, Sum<T>* scratch);

// Under Pool, compiled once: src/cpu/gatv2.cpp.
#define GOSSAMER_GATV2(T, I, ...) __VA_ARGS__ template void gatv2(const Pool&, const Gatv2<T, I>&, T*, Sum<T>*);
#ifdef GOSSAMER_COMPILED
GOSSAMER_FOR_EACH_TYPE(GOSSAMER_GATV2, extern)
#endif

}  // namespace gossamer::kernels
