// SPDX-License-Identifier: BSD-3-Clause
// Matrices, products, parts and solves of the C++ front end, called as a user calls them: one line a function.
#include <ATen/TensorIndexing.h>

#include <limits>

#include "wire.h"

namespace gs = gossamer;

namespace gossamer_cpp {
namespace {

using S = gs::SparseMatrix;
using at::Tensor;
using at::indexing::Slice;
using gs::Pattern;
using gs::linalg::factorize;
using Dim = std::optional<int64_t>;
using Text = std::string;

// One axis of a key: an array, {i} for an integer, {start, stop, step} for a slice, where `none` is Python's None; and
// {} for the ellipsis.
at::indexing::TensorIndex axis(const std::optional<Tensor>& array, at::IntArrayRef numbers) {
  if (array) return *array;
  if (numbers.empty()) return at::indexing::Ellipsis;
  if (numbers.size() == 1) return numbers[0];
  const auto bound = [](int64_t at) {
    constexpr int64_t none = std::numeric_limits<int64_t>::min();
    return at == none ? std::nullopt : std::optional<c10::SymInt>(at);
  };
  return Slice(bound(numbers[0]), bound(numbers[1]), bound(numbers[2]));
}

const Ops matrices =
    Ops()
        .def("check_pattern", [](Tensor indptr, Tensor indices, int64_t rows,
                                 int64_t cols) { return Pattern(indptr, indices, {rows, cols}); })
        .def("with_values", [](const S& A, Tensor values) { return A.with_values(values); })
        .def("from_coo", [](Tensor rows, Tensor cols, Tensor values,
                            at::IntArrayRef shape) { return gs::from_coo(rows, cols, values, {shape[0], shape[1]}); })
        .def("from_dense", [](Tensor dense) { return gs::from_dense(dense); })
        .def("from_torch", [](Tensor A) { return gs::from_torch(A); })
        .def("from_edge_index", [](Tensor edges) { return gs::from_edge_index(edges); })
        .def("from_edge_index.nodes", [](Tensor edges, int64_t n) { return gs::from_edge_index(edges, {}, n); })
        .def("eye", [](int64_t n) { return gs::eye(n); })
        .def("poisson", [](at::IntArrayRef grid) { return gs::poisson(grid); })
        .def("random", [](int64_t m, int64_t n, double density) { return gs::random(m, n, density); })
        .def("repr", [](const S& A) { return A.repr(); })
        .def("pattern_repr", [](const Pattern& P) { return P.repr(); })
        .def("load_npz", [](Text path) { return gs::load_npz(path); })
        .def("save_npz", [](Text path, const S& A, bool compressed) { return gs::save_npz(path, A, compressed), true; })
        .def("dropout", [](Tensor x) { return gs::dropout(x); })
        .def("dropout.how", [](Tensor x, double p, bool training,
                               std::optional<int64_t> seed) { return gs::dropout(x, p, training, seed); })
        .def("T", [](const S& A) { return A.T(); })
        .def("to_dense", [](const S& A) { return A.to_dense(); })
        .def("neg", [](const S& A) { return -A; })
        .def("mul_number", [](const S& A, double s) { return A * s; })
        .def("rmul_number", [](const S& A, double s) { return s * A; })
        .def("mul", [](const S& A, Tensor s) { return A * s; })
        .def("rmul", [](const S& A, Tensor s) { return s * A; })
        .def("mul.matrix", [](const S& A, const S& B) { return A * B; })
        .def("div", [](const S& A, Tensor s) { return A / s; })
        .def("div_number", [](const S& A, double s) { return A / s; })
        .def("abs", [](const S& A) { return A.abs(); })
        .def("pow", [](const S& A, double p) { return A.pow(p); })
        .def("map_cube", [](const S& A) { return A.map([](const Tensor& v) { return v * v * v; }); })
        .def("map_first_two", [](const S& A) { return A.map([](const Tensor& v) { return v.slice(0, 0, 2); }); })
        .def("map_as_integers", [](const S& A) { return A.map([](const Tensor& v) { return v.to(at::kLong); }); })
        .def("scale_rows", [](const S& A, Tensor d) { return A.scale_rows(d); })
        .def("scale_cols", [](const S& A, Tensor d) { return A.scale_cols(d); })
        .def("sum", [](const S& A) { return A.sum(); })
        .def("sum.dim", [](const S& A, Dim dim) { return A.sum(dim); })
        .def("mean", [](const S& A) { return A.mean(); })
        .def("mean.dim", [](const S& A, Dim dim) { return A.mean(dim); })
        .def("amax", [](const S& A) { return A.amax(); })
        .def("amax.dim", [](const S& A, Dim dim) { return A.amax(dim); })
        .def("amin", [](const S& A) { return A.amin(); })
        .def("amin.dim", [](const S& A, Dim dim) { return A.amin(dim); })
        .def("argmax", [](const S& A) { return A.argmax(); })
        .def("argmax.dim", [](const S& A, Dim dim) { return A.argmax(dim); })
        .def("smax.dim", [](const S& A, Dim dim) { return A.smax(dim); })
        .def("smin.dim", [](const S& A, Dim dim) { return A.smin(dim); })
        .def("smean.dim", [](const S& A, Dim dim) { return A.smean(dim); })
        .def("logsumexp.dim", [](const S& A, Dim dim) { return A.logsumexp(dim); })
        .def("norm", [](const S& A) { return A.norm(); })
        .def("row_softmax", [](const S& A) { return A.row_softmax(); })
        .def("allclose", [](const S& A, const S& B) { return gs::allclose(A, B); });

const Ops products =
    Ops()
        .def("spmm", [](const S& A, Tensor X) { return gs::spmm(A, X); })
        .def("spmm.transpose", [](const S& A, Tensor X, bool transpose) { return gs::spmm(A, X, transpose); })
        .def("sddmm", [](const Pattern& P, Tensor U, Tensor V) { return gs::sddmm(P, U, V); })
        .def("spgemm", [](const S& A, const S& B) { return gs::spgemm(A, B); })
        .def("spgemm.mask", [](const S& A, const S& B, const Pattern& mask) { return gs::spgemm(A, B, mask); })
        .def("matmul", [](const S& A, Tensor X) { return gs::matmul(A, X); })
        .def("matmul.left", [](Tensor X, const S& A) { return gs::matmul(X, A); })
        .def("matmul.matrix", [](const S& A, const S& B) { return gs::matmul(A, B); })
        .def("spadd", [](const S& A, const S& B) { return gs::spadd(A, B); })
        .def("spadd.tensors",
             [](const S& A, const S& B, Tensor alpha, Tensor beta) { return gs::spadd(A, B, alpha, beta); })
        .def("add", [](const S& A, const S& B) { return A + B; })
        .def("sub", [](const S& A, const S& B) { return A - B; })
        .def("hadamard", [](const S& A, const S& B) { return gs::hadamard(A, B); })
        .def("multiply", [](const S& A, Tensor X) { return gs::multiply(A, X); })
        .def("maximum", [](const S& A, const S& B) { return gs::maximum(A, B); })
        .def("minimum", [](const S& A, const S& B) { return gs::minimum(A, B); })
        .def("div.matrix", [](const S& A, const S& B) { return A / B; });

const Ops structure =
    Ops()
        .def("diagonal", [](const S& A) { return A.diagonal(); })
        .def("diagonal.k", [](const S& A, int64_t k) { return A.diagonal(k); })
        .def("trace", [](const S& A) { return A.trace(); })
        .def("tril", [](const S& A) { return A.tril(); })
        .def("tril.k", [](const S& A, int64_t k) { return A.tril(k); })
        .def("triu", [](const S& A) { return A.triu(); })
        .def("triu.k", [](const S& A, int64_t k) { return A.triu(k); })
        .def("with_diagonal", [](const S& A, Tensor v, int64_t k) { return A.with_diagonal(v, k); })
        .def("reshape", [](const S& A, int64_t m, int64_t n) { return A.reshape(m, n); })
        .def("index", [](const S& A, int64_t i, int64_t j) { return A.index(i, j); })
        .def("index.pairs", [](const S& A, Tensor rows, Tensor cols) { return A.index(rows, cols); })
        .def("matrix_index", [](const S& A, std::optional<Tensor> r, at::IntArrayRef rows, std::optional<Tensor> c,
                                at::IntArrayRef cols) { return A.index({axis(r, rows), axis(c, cols)}); })
        .def("row_index", [](const S& A, int64_t i) { return A[i]; })
        .def("submatrix",
             [](const S& A, std::optional<Tensor> rows, std::optional<Tensor> cols) { return A.submatrix(rows, cols); })
        .def("diag", [](Tensor v) { return gs::diag(v); })
        .def("diag.k", [](Tensor v, int64_t k) { return gs::diag(v, k); })
        .def("kron", [](const S& A, const S& B) { return gs::kron(A, B); })
        .def("vstack.none", [] { return gs::vstack(at::ArrayRef<S>()); })
        .def("vstack", [](const S& A, const S& B) { return gs::vstack({A, B}); })
        .def("hstack.three", [](const S& A, const S& B, const S& C) { return gs::hstack({A, B, C}); })
        .def("hstack", [](const S& A, const S& B) { return gs::hstack({A, B}); })
        .def("block_diag", [](const S& A, const S& B) { return gs::block_diag({A, B}); });

const Ops solves = Ops()
                       .def("solve_triangular", [](const S& L, Tensor b) { return gs::linalg::solve_triangular(L, b); })
                       .def("solve_triangular.how",
                            [](const S& L, Tensor b, bool upper, bool unit_diagonal, bool transpose) {
                              return gs::linalg::solve_triangular(L, b, upper, unit_diagonal, transpose);
                            })
                       .def("solve", [](const S& A, Tensor b) { return gs::linalg::solve(A, b); })
                       .def("factor_solve", [](const S& A, Tensor b) { return factorize(A).solve(b); })
                       .def("factor_solve.kind",
                            [](const S& A, Tensor b, bool t, Text kind) { return factorize(A, kind).solve(b, t); })
                       .def("selected_inverse", [](const S& A) { return gs::linalg::selected_inverse(A); })
                       .def("cholesky", [](const S& A) { return gs::linalg::cholesky(A).L; })
                       .def("cholesky_perm", [](const S& A) { return gs::linalg::cholesky(A).perm; })
                       .def("lstsq", [](const S& A, Tensor b) { return gs::linalg::lstsq(A, b); })
                       .def("lstsq.damp", [](const S& A, Tensor b, double d) { return gs::linalg::lstsq(A, b, d); })
                       .def("expm_multiply", [](const S& A, Tensor b) { return gs::linalg::expm_multiply(A, b); })
                       .def("factor_logdet", [](const S& A) { return factorize(A).logdet(); })
                       .def("factor_logdet.kind", [](const S& A, Text kind) { return factorize(A, kind).logdet(); });

using Edge = std::optional<Tensor>;  // features of the edges, if there are any
const Ops attention =
    Ops()
        .def("gat_attention", [](const Pattern& P, Tensor x, Tensor src, Tensor dst, Edge edge, double slope, double p,
                                 int64_t seed) { return gs::gat_attention(P, x, src, dst, edge, {slope, p, seed}); })
        .def("gatv2_attention",
             [](const Pattern& P, Tensor x, Tensor dst, Tensor att, Edge edge, double slope, double p, int64_t seed) {
               return gs::gatv2_attention(P, x, dst, att, edge, {slope, p, seed});
             });

}  // namespace
}  // namespace gossamer_cpp
