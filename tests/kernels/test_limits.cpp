// SPDX-License-Identifier: BSD-3-Clause
// Positions and columns just below 2³¹ with int32 indices: a product of an index with heads or widths must be formed in
// 64 bits, or UBSan sees it overflow and the kernel reads elsewhere.
//
// The arrays are as long as such a matrix has them, but nothing of them is there until it is touched: the matrix has a
// few rows, whose entries are the last ones. The same rows as a small matrix give the numbers that are wanted.
#include <gossamer/kernels/argmax.h>
#include <gossamer/kernels/gat.h>
#include <gossamer/kernels/gatv2_backward.h>
#include <gossamer/kernels/sddmm.h>
#include <gossamer/kernels/softmax.h>
#include <gossamer/kernels/spmm.h>
#include <gossamer/kernels/transpose.h>
#include <sys/mman.h>

#include "dense.h"
#include "executors.h"

namespace gossamer::test {
namespace {

constexpr int64_t limit = std::numeric_limits<int32_t>::max();  // entries, and columns
constexpr int64_t heads = 3, width = 5;

// Zeros that take memory where they are written to.
template <class T>
class Zeros {
 public:
  explicit Zeros(int64_t count) : bytes_(count * sizeof(T)) {
    void* at = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED) throw std::bad_alloc();
    data_ = static_cast<T*>(at);
  }
  ~Zeros() { munmap(data_, bytes_); }
  Zeros(const Zeros&) = delete;
  T* data() const { return data_; }
  T& operator[](int64_t k) const { return data_[k]; }

 private:
  size_t bytes_;
  T* data_;
};

using Near = OwnedPattern<int32_t>;

// The last entries of a matrix with 2³¹ - 1 of them are those of a small one, and so are, if asked for, the columns.
struct Far {
  const Near& near;
  const int64_t entry, column;  // what is added to a position and to a column
  std::vector<int32_t> indptr;
  Zeros<int32_t> indices{limit};

  Far(const Near& pattern, bool columns)
      : near(pattern), entry(limit - near.nnz()), column(columns ? limit - near.cols : 0), indptr(near.indptr) {
    for (int32_t& at : indptr) at += static_cast<int32_t>(entry);
    for (int64_t p = 0; p < near.nnz(); ++p) indices[entry + p] = near.indices[p] + static_cast<int32_t>(column);
  }
  PatternView<int32_t> view() const { return {near.rows, near.cols + column, limit, indptr.data(), indices.data()}; }
};

// A copy of `from` at the end of an array.
template <class T>
void put(const std::vector<T>& from, const Zeros<T>& into, int64_t at) {
  std::copy(from.begin(), from.end(), into.data() + at);
}

void expect_same(const std::vector<float>& want, const float* got) {
  for (size_t k = 0; k < want.size(); ++k) ASSERT_FLOAT_EQ(got[k], want[k]) << k;
}

struct Limits : testing::TestWithParam<bool> {
  Random random{5};
  Near near = random_pattern<int32_t>(random, 9, 7, 0.5);
  Far far{near, GetParam()};
  Serial serial;
  Pool exec{serial};  // which refers to it
  int64_t columns = heads * width;
  std::vector<float> values = random.values<float>(near.nnz() * heads);
  std::vector<float> X = random.values<float>(near.cols * columns), G = random.values<float>(near.rows * columns);
  Zeros<float> far_values{limit * heads}, far_X{(near.cols + far.column) * columns};

  Limits() {
    put(values, far_values, far.entry * heads);
    put(X, far_X, far.column * columns);
  }
  Csr<float, int32_t> near_matrix() const { return {near.view(), values.data(), heads, nullptr}; }
  Csr<float, int32_t> far_matrix() const { return {far.view(), far_values.data(), heads, nullptr}; }
};

TEST_P(Limits, Spmm) {
  std::vector<float> want(near.rows * columns), got = want;
  kernels::spmm(exec, near_matrix(), X.data(), columns, width, want.data());
  kernels::spmm(exec, far_matrix(), far_X.data(), columns, width, got.data());
  expect_same(want, got.data());
}

TEST_P(Limits, SpmmThroughAPermutation) {
  const auto order = random.permutation<int32_t>(near.nnz());
  const Zeros<int32_t> far_order(limit);
  for (int64_t p = 0; p < near.nnz(); ++p) far_order[far.entry + p] = order[p] + static_cast<int32_t>(far.entry);
  auto A = near_matrix(), B = far_matrix();
  A.perm = order.data(), B.perm = far_order.data();
  std::vector<float> want(near.rows * columns), got = want;
  kernels::spmm(exec, A, X.data(), columns, width, want.data());
  kernels::spmm(exec, B, far_X.data(), columns, width, got.data());
  expect_same(want, got.data());
}

TEST_P(Limits, Sddmm) {
  std::vector<float> want(near.nnz() * heads);
  const Zeros<float> got(limit * heads);
  kernels::sddmm(exec, near.view(), heads, G.data(), columns, X.data(), columns, width, want.data());
  kernels::sddmm(exec, far.view(), heads, G.data(), columns, far_X.data(), columns, width, got.data());
  expect_same(want, got.data() + far.entry * heads);
}

TEST_P(Limits, SoftmaxAndArgmax) {
  std::vector<float> want(near.nnz() * heads);
  const Zeros<float> got(limit * heads);
  kernels::row_softmax(exec, near_matrix(), want.data());
  kernels::row_softmax(exec, far_matrix(), got.data());
  expect_same(want, got.data() + far.entry * heads);
  std::vector<int64_t> at(near.rows * heads), far_at = at;
  kernels::row_argmax(exec, near_matrix(), /*stored=*/true, at.data());
  kernels::row_argmax(exec, far_matrix(), /*stored=*/true, far_at.data());
  for (size_t k = 0; k < at.size(); ++k) EXPECT_EQ(far_at[k], at[k] + far.entry);
}

// Both kinds of attention, with features of edges; the gradients go through the transpose, which has a row a column, so
// that there the columns are small.
template <class View, class F>
void attention(const Limits& l, int64_t edge_width, const F& run) {
  Random random(6);
  const int64_t second = edge_width > 1 ? l.near.rows * heads * edge_width : l.near.cols * heads;
  const int64_t third = edge_width > 1 ? heads * edge_width : l.near.rows * heads, row = heads * edge_width;
  const auto a = random.values<float>(second), b = random.values<float>(third);
  const auto edge = random.values<float>(l.near.nnz() * row);
  const Zeros<float> far_a(l.far.column * heads + second), far_edge(limit * row);
  put(a, far_a, edge_width > 1 ? 0 : l.far.column * heads);
  put(edge, far_edge, l.far.entry * row);
  const View near{l.near.view(), heads, width, l.X.data(), a.data(), b.data(), edge.data(), 0.2f, {}};
  const View far{l.far.view(), heads, width, l.far_X.data(), far_a.data(), b.data(), far_edge.data(), 0.2f, {}};
  run(near, far);
}

// The transpose of the small pattern, as the large one has it.
struct Transposes {
  std::vector<int32_t> indptr, indices, perm;
  Zeros<int32_t> far_perm{limit}, far_indices{limit};
  std::vector<int32_t> far_indptr;
  PatternView<int32_t> near, far;

  explicit Transposes(const Limits& l) : indptr(l.near.cols + 1), indices(l.near.nnz()), perm(l.near.nnz()) {
    kernels::transpose(l.near.view(), indptr.data(), indices.data(), perm.data());
    far_indptr = indptr;
    for (int32_t& at : far_indptr) at += static_cast<int32_t>(l.far.entry);
    for (int64_t q = 0; q < l.near.nnz(); ++q) {
      far_perm[l.far.entry + q] = perm[q] + static_cast<int32_t>(l.far.entry);
      far_indices[l.far.entry + q] = indices[q];
    }
    near = {l.near.cols, l.near.rows, l.near.nnz(), indptr.data(), indices.data()};
    far = {l.near.cols, l.near.rows, limit, far_indptr.data(), far_indices.data()};
  }
};

TEST_P(Limits, Gat) {
  attention<kernels::Gat<float, int32_t>>(*this, 1, [&](const auto& small, const auto& large) {
    std::vector<float> Z(near.rows * columns), far_Z = Z, lse(near.rows * heads), far_lse = lse;
    kernels::gat(exec, small, Z.data(), lse.data());
    kernels::gat(exec, large, far_Z.data(), far_lse.data());
    expect_same(Z, far_Z.data());
    if (far.column) return;
    const Transposes T(*this);
    const Zeros<float> scratch((limit + 3 * near.rows) * heads), edge(limit * heads);
    std::vector<float> d_X(X.size()), d_src(near.cols * heads), d_dst(near.rows * heads), d_edge(near.nnz() * heads),
        far_d_X(X.size()), far_src = d_src, far_dst = d_dst, small_scratch((near.nnz() + 3 * near.rows) * heads);
    kernels::gat_backward(exec, small, T.near, T.perm.data(), G.data(), Z.data(), lse.data(), small_scratch.data(),
                          {d_X.data(), d_src.data(), d_dst.data(), d_edge.data()});
    kernels::gat_backward(exec, large, T.far, T.far_perm.data(), G.data(), Z.data(), lse.data(), scratch.data(),
                          {far_d_X.data(), far_src.data(), far_dst.data(), edge.data()});
    expect_same(d_X, far_d_X.data());
    expect_same(d_src, far_src.data());
    expect_same(d_dst, far_dst.data());
    expect_same(d_edge, edge.data() + far.entry * heads);
  });
}

TEST_P(Limits, Gatv2) {
  attention<kernels::Gatv2<float, int32_t>>(*this, width, [&](const auto& small, const auto& large) {
    std::vector<float> Z(near.rows * columns), far_Z = Z, lse(near.rows * heads), far_lse = lse;
    kernels::gatv2(exec, small, Z.data(), lse.data());
    kernels::gatv2(exec, large, far_Z.data(), far_lse.data());
    expect_same(Z, far_Z.data());
    if (far.column) return;
    const Transposes T(*this);
    const Zeros<float> scratch(2 * limit * heads), edge(limit * columns);
    std::vector<float> d_X(X.size()), d_dst(near.rows * columns), d_att(columns), d_edge(near.nnz() * columns),
        far_d_X(X.size()), far_dst = d_dst, far_att = d_att, small_scratch(2 * near.nnz() * heads);
    kernels::gatv2_backward(exec, small, T.near, T.perm.data(), G.data(), Z.data(), lse.data(), small_scratch.data(),
                            {d_X.data(), d_dst.data(), d_att.data(), d_edge.data()});
    kernels::gatv2_backward(exec, large, T.far, T.far_perm.data(), G.data(), Z.data(), lse.data(), scratch.data(),
                            {far_d_X.data(), far_dst.data(), far_att.data(), edge.data()});
    expect_same(d_X, far_d_X.data());
    expect_same(d_dst, far_dst.data());
    for (size_t k = 0; k < d_att.size(); ++k) EXPECT_NEAR(far_att[k], d_att[k], 1e-5);  // added in other parts
    expect_same(d_edge, edge.data() + far.entry * columns);
  });
}

INSTANTIATE_TEST_SUITE_P(Far, Limits, testing::Bool(),
                         [](const auto& which) { return which.param ? "EntriesAndColumns" : "Entries"; });

}  // namespace
}  // namespace gossamer::test
