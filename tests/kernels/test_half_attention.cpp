// SPDX-License-Identifier: BSD-3-Clause
// Attention on 16-bit numbers is attention on the floats they stand for, rounded once at the end:
//
//   Z(x) = T(Z(float(x))),   and so each gradient, given the rounded Z
//
// for both kinds, bit for bit: all arithmetic is in float, whatever is stored. The widths are those that kernels know
// as constants and others, the heads fill a tile and more.
#include <gossamer/kernels/gat.h>

#include <gossamer/kernels/gatv2_backward.h>
#include <gossamer/kernels/transpose.h>
#include "dense.h"

namespace gossamer::test {
namespace {

template <class T, class S>
std::vector<T> converted(const std::vector<S>& from) {
  std::vector<T> to(from.size());
  for (size_t k = 0; k < from.size(); ++k) to[k] = static_cast<T>(from[k]);
  return to;
}

struct Shape {
  OwnedPattern<int32_t> A;
  int64_t heads, width;
  bool second, edges;  // second: GATv2
};

// x_src; then alpha_src, alpha_dst, alpha_edge or x_dst, att, x_edge; then the gradient of Z.
template <class T>
struct Arrays {
  std::vector<T> x[4], G;
};

// K: kernels::Gat<T, int32_t> or Gatv2.
template <class K, class T>
K view(const Shape& shape, const Arrays<T>& in) {
  return {shape.A.view(),
          shape.heads,
          shape.width,
          in.x[0].data(),
          in.x[1].data(),
          in.x[2].data(),
          shape.edges ? in.x[3].data() : nullptr,
          0.2f,
          Dropout(0.3, 5)};
}

template <class T>
void forward(const Shape& shape, const Arrays<T>& in, std::vector<T>& Z, std::vector<float>& lse) {
  const Serial serial;
  const Pool exec(serial);
  Z.assign(in.G.size(), T(NAN));
  lse.assign(shape.A.rows * shape.heads, NAN);
  if (shape.second)
    kernels::gatv2(exec, view<kernels::Gatv2<T, int32_t>>(shape, in), Z.data(), lse.data());
  else
    kernels::gat(exec, view<kernels::Gat<T, int32_t>>(shape, in), Z.data(), lse.data());
}

template <class T>
Arrays<T> backward(const Shape& shape, const Arrays<T>& in, const std::vector<T>& Z, const std::vector<float>& lse) {
  const Serial serial;
  const Pool exec(serial);
  const auto& A = shape.A;
  std::vector<int32_t> indptr(A.cols + 1), indices(A.nnz()), perm(A.nnz());
  kernels::transpose(A.view(), indptr.data(), indices.data(), perm.data());
  const PatternView<int32_t> At{A.cols, A.rows, A.nnz(), indptr.data(), indices.data()};
  std::vector<float> scratch((2 * A.nnz() + 3 * A.rows) * shape.heads);
  Arrays<T> d;
  for (int k = 0; k < 4; ++k) d.x[k].assign(in.x[k].size(), T(NAN));
  T* edge = shape.edges ? d.x[3].data() : nullptr;
  if (shape.second)
    kernels::gatv2_backward(exec, view<kernels::Gatv2<T, int32_t>>(shape, in), At, perm.data(), in.G.data(), Z.data(),
                            lse.data(), scratch.data(), {d.x[0].data(), d.x[1].data(), d.x[2].data(), edge});
  else
    kernels::gat_backward(exec, view<kernels::Gat<T, int32_t>>(shape, in), At, perm.data(), in.G.data(), Z.data(),
                          lse.data(), scratch.data(), {d.x[0].data(), d.x[1].data(), d.x[2].data(), edge});
  return d;
}

template <class T>
struct HalfAttention : testing::Test {};
using Halves = testing::Types<bfloat16, float16>;
TYPED_TEST_SUITE(HalfAttention, Halves);

TYPED_TEST(HalfAttention, IsThatOfFloatsRoundedOnce) {
  using T = TypeParam;
  Random random(31);
  const auto A = power_law_pattern<int32_t>(900, 60);
  for (const bool second : {false, true})
    for (const bool edges : {false, true})
      for (const auto& [heads, width] : {std::pair(1, 8), {4, 8}, {9, 8}, {8, 16}, {5, 32}, {2, 7}, {3, 33}, {1, 64}}) {
        SCOPED_TRACE(testing::Message() << (second ? "v2, " : "v1, ") << heads << " x " << width << ", " << edges);
        const Shape shape{A, heads, width, second, edges};
        const int64_t columns = heads * width, of_entry = second ? columns : heads;
        Arrays<T> in;
        in.x[0] = random.values<T>(A.cols * columns);
        in.x[1] = random.values<T>((second ? A.rows : A.cols) * of_entry);
        in.x[2] = random.values<T>(second ? columns : A.rows * heads);
        in.x[3] = random.values<T>(edges ? A.nnz() * of_entry : 0);
        in.G = random.values<T>(A.rows * columns);
        Arrays<float> wide;
        for (int k = 0; k < 4; ++k) wide.x[k] = converted<float>(in.x[k]);
        wide.G = converted<float>(in.G);

        std::vector<T> Z;
        std::vector<float> wide_Z, lse, wide_lse;
        forward(shape, in, Z, lse);
        forward(shape, wide, wide_Z, wide_lse);
        expect_same_bits(Z, converted<T>(wide_Z));
        expect_same_bits(lse, wide_lse);
        const Arrays<T> got = backward(shape, in, Z, lse);
        const Arrays<float> want = backward(shape, wide, converted<float>(Z), lse);
        for (int k = 0; k < 4; ++k) expect_same_bits(got.x[k], converted<T>(want.x[k]));
        if (this->HasFailure()) return;
      }
}

}  // namespace
}  // namespace gossamer::test
