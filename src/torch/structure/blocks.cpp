// SPDX-License-Identifier: BSD-3-Clause
// Matrices put together from others: Kronecker products, stacks and block diagonals.
#include <ATen/ATen.h>
#include <gossamer/kernels/blocks.h>
#include <gossamer/kernels/kron.h>

#include <gossamer/structure.h>
#include "core/host.h"
#include "core/op.h"
#include "structure/device.h"

namespace gossamer {
namespace {

using ops::Gathered;
using Kron = std::tuple<Tensor, Tensor, Tensor, Tensor>;

// a · b, which must fit.
int64_t product(const char* op, const char* what, int64_t a, int64_t b) {
  int64_t c = 0;
  TORCH_CHECK_VALUE(!__builtin_mul_overflow(a, b, &c), op, ": the result has too many ", what, ", ", a, " times ", b);
  return c;
}

// The patterns with one width of integers, and what their product will be.
struct KronSize {
  std::vector<Tensor> A, B;
  int64_t rows, cols, nnz;
  at::ScalarType type;

  KronSize(TensorList given_A, SymIntArrayRef shape_A, TensorList given_B, SymIntArrayRef shape_B) {
    TORCH_CHECK_VALUE(given_A.size() >= 2 && given_B.size() >= 2, "kron: a pattern is {indptr, indices}, not ",
                      std::min(given_A.size(), given_B.size()), " tensors");
    TORCH_CHECK_VALUE(given_A[0].device() == given_B[0].device(), "kron: A is on ", given_A[0].device(), " but B on ",
                      given_B[0].device());
    const bool wide = given_A[0].scalar_type() == at::kLong || given_B[0].scalar_type() == at::kLong;
    const auto in = wide ? at::kLong : at::kInt;
    A = {given_A[0].to(in), given_A[1].to(in)}, B = {given_B[0].to(in), given_B[1].to(in)};
    const PatternTensors a = unpack("kron", A, shape_A, /*t=*/false), b = unpack("kron", B, shape_B, /*t=*/false);
    rows = product("kron", "rows", a.rows.expect_int(), b.rows.expect_int());
    cols = product("kron", "columns", a.cols.expect_int(), b.cols.expect_int());
    nnz = product("kron", "entries", a.indices.size(0), b.indices.size(0));
    type = index_type(wide, {rows, cols, nnz});
  }
};

Kron kron_pattern(TensorList A, SymIntArrayRef shape_A, TensorList B, SymIntArrayRef shape_B) {
  const KeptResults kept;
  const KronSize size(A, shape_A, B, shape_B);
  if (A[0].is_meta()) {
    const auto options = A[0].options().dtype(size.type);
    const Tensor entries = at::empty({size.nnz}, options);
    return {at::empty({size.rows + 1}, options), entries, at::empty_like(entries), at::empty_like(entries)};
  }
  const PatternTensors a = host_pattern("kron", size.A, shape_A), b = host_pattern("kron", size.B, shape_B);
  const Tensor indptr = host_integers(size.rows + 1, size.type), indices = host_integers(size.nnz, size.type),
               from_A = host_integers(size.nnz, size.type), from_B = host_integers(size.nnz, size.type);
  with_index_type<void>(a.indptr.scalar_type(), [&]<class, class I> {
    with_index_type<void>(size.type, [&]<class, class J> {
      kernels::kron(a.view<I>(), b.view<I>(), mutable_ptr<J>(indptr), mutable_ptr<J>(indices), mutable_ptr<J>(from_A),
                    mutable_ptr<J>(from_B));
    });
  });
  return {indptr, indices, from_A, from_B};
}

Kron kron_on_device(TensorList A, SymIntArrayRef shape_A, TensorList B, SymIntArrayRef shape_B) {
  const KronSize size(A, shape_A, B, shape_B);
  return device_patterns::kron(size.A, size.B, shape_B[1].expect_int(), size.type);
}

// The integers of all blocks, and of the result.
struct BlocksSize {
  bool wide = false;
  int64_t nnz = 0;
  at::ScalarType type;

  BlocksSize(TensorList indptrs, TensorList indices, at::IntArrayRef at, at::IntArrayRef shape) {
    TORCH_CHECK_VALUE(indptrs.size() == indices.size() && at.size() == 2 * indptrs.size() && shape.size() == 2,
                      "blocks: ", indptrs.size(), " indptrs, ", indices.size(), " indices and ", at.size() / 2,
                      " places");
    TORCH_CHECK_VALUE(!indptrs.empty(), "blocks: wants at least one block");
    for (size_t k = 0; k < indptrs.size(); ++k) {
      TORCH_CHECK_VALUE(indptrs[k].dim() == 1 && indptrs[k].size(0) >= 1 && indices[k].dim() == 1, "blocks: block ", k,
                        " has indptr ", shape_text(indptrs[k]), " and indices ", shape_text(indices[k]));
      TORCH_CHECK_VALUE(indptrs[k].device() == indptrs[0].device(), "blocks: block ", k, " is on ", indptrs[k].device(),
                        " but block 0 on ", indptrs[0].device());
      TORCH_CHECK_VALUE(at[2 * k] >= 0 && at[2 * k] + indptrs[k].size(0) - 1 <= shape[0], "blocks: block ", k, " of ",
                        indptrs[k].size(0) - 1, " rows does not fit at row ", at[2 * k], " of ", shape[0]);
      wide = wide || indptrs[k].scalar_type() == at::kLong;
      nnz += indices[k].size(0);
    }
    type = index_type(wide, {shape[0], shape[1], nnz});
  }
};

Gathered blocks(TensorList indptrs, TensorList indices, at::IntArrayRef at, at::IntArrayRef shape) {
  const KeptResults kept;
  const BlocksSize size(indptrs, indices, at, shape);
  if (indptrs[0].is_meta()) {
    const Tensor entries = at::empty({size.nnz}, indptrs[0].options().dtype(size.type));
    return {at::empty({shape[0] + 1}, entries.options()), entries, at::empty_like(entries)};
  }
  const Tensor starts = host_integers(shape[0] + 1, size.type), columns = host_integers(size.nnz, size.type),
               positions = host_integers(size.nnz, size.type);
  with_index_type<void>(size.wide ? at::kLong : at::kInt, [&]<class, class I> {
    std::vector<PatternTensors> held;
    std::vector<kernels::Block<I>> parts;
    for (size_t k = 0; k < indptrs.size(); ++k) {
      const auto in = size.wide ? at::kLong : at::kInt;
      held.push_back(host_pattern("blocks", {indptrs[k].to(in), indices[k].to(in)},
                                  {SymInt(indptrs[k].size(0) - 1), SymInt(shape[1] - at[2 * k + 1])}));
      parts.push_back({held.back().view<I>(), at[2 * k], at[2 * k + 1]});
    }
    with_index_type<void>(size.type, [&]<class, class J> {
      kernels::blocks(parts, shape[0], mutable_ptr<J>(starts), mutable_ptr<J>(columns), mutable_ptr<J>(positions));
    });
  });
  return {starts, columns, positions};
}

Gathered blocks_on_device(TensorList indptrs, TensorList indices, at::IntArrayRef at, at::IntArrayRef shape) {
  const BlocksSize size(indptrs, indices, at, shape);
  for (size_t k = 0; k < indptrs.size(); ++k)
    unpack("blocks", {indptrs[k], indices[k]}, {SymInt(indptrs[k].size(0) - 1), SymInt(shape[1])}, /*t=*/false);
  return device_patterns::blocks(indptrs, indices, at, shape[0], size.type);
}

const Op<decltype(ops::kron_pattern)> kron_op{{
    .schema = "kron_pattern(Tensor[] A, SymInt[] shape_A, Tensor[] B, SymInt[] shape_B) -> (Tensor indptr, Tensor "
              "indices, Tensor from_A, Tensor from_B)",
    .forward = kron_pattern,
    .on_device = kron_on_device,
}};
const Op<decltype(ops::blocks)> blocks_op{{
    .schema = "blocks(Tensor[] indptrs, Tensor[] indices, int[] at, int[] shape) -> (Tensor indptr, Tensor indices, "
              "Tensor positions)",
    .forward = blocks,
    .on_device = blocks_on_device,
}};

}  // namespace

Kron ops::kron_pattern(TensorList A, SymIntArrayRef shape_A, TensorList B, SymIntArrayRef shape_B) {
  return kron_op(A, shape_A, B, shape_B);
}

Gathered ops::blocks(TensorList indptrs, TensorList indices, at::IntArrayRef at, at::IntArrayRef shape) {
  return blocks_op(indptrs, indices, at, shape);
}

// A matrix without heads multiplies every head of the other.
ops::Parts ops::kron(TensorList A, const Tensor& values_A, SymIntArrayRef shape_A, TensorList B, const Tensor& values_B,
                     SymIntArrayRef shape_B) {
  TORCH_CHECK_VALUE(values_A.dim() == 1 || values_B.dim() == 1 || values_A.sym_size(1) == values_B.sym_size(1),
                    "kron: A has values ", shape_text(values_A), " but B has ", shape_text(values_B));
  const auto [indptr, indices, from_A, from_B] = kron_pattern(A.slice(0, 2), shape_A, B.slice(0, 2), shape_B);
  Tensor a = values_A.index_select(0, from_A), b = values_B.index_select(0, from_B);
  if (a.dim() < b.dim()) a = a.unsqueeze(1);
  if (b.dim() < a.dim()) b = b.unsqueeze(1);
  return {indptr, indices, a * b};
}

// Matrices one after the other: below each other, side by side, or both. shapes: rows and cols of each.
ops::Parts ops::stack(TensorList indptrs, TensorList indices, TensorList values, at::IntArrayRef shapes, bool below,
                      bool beside) {
  const char* op = below && beside ? "block_diag" : below ? "vstack" : "hstack";
  TORCH_CHECK_VALUE(!values.empty(), op, ": wants at least one matrix");
  TORCH_CHECK_VALUE(
      indptrs.size() == values.size() && indices.size() == values.size() && shapes.size() == 2 * values.size(), op,
      ": ", values.size(), " values for ", indptrs.size(), " indptrs, ", indices.size(), " indices and ",
      shapes.size() / 2, " shapes");
  Shape shape = {0, 0};
  std::vector<int64_t> at;
  for (size_t k = 0; k < values.size(); ++k) {
    const int64_t rows = shapes[2 * k], cols = shapes[2 * k + 1];
    TORCH_CHECK_VALUE(beside || cols == shapes[1], op, ": matrix ", k, " has ", cols, " columns but matrix 0 has ",
                      shapes[1]);
    TORCH_CHECK_VALUE(below || rows == shapes[0], op, ": matrix ", k, " has ", rows, " rows but matrix 0 has ",
                      shapes[0]);
    TORCH_CHECK_VALUE(values[k].dim() >= 1 && values[k].sym_size(0) == indices[k].sym_size(0), op, ": matrix ", k,
                      " has values ", shape_text(values[k]), " for ", indices[k].sym_size(0), " entries");
    TORCH_CHECK_VALUE(values[k].sym_sizes().slice(1) == values[0].sym_sizes().slice(1), op, ": matrix ", k,
                      " has values ", shape_text(values[k]), " but matrix 0 has ", shape_text(values[0]));
    check_same_dtype(op, ("matrix " + std::to_string(k)).c_str(), values[k], "matrix 0", values[0]);
    at.insert(at.end(), {below ? shape[0] : 0, beside ? shape[1] : 0});
    shape = {below ? shape[0] + rows : rows, beside ? shape[1] + cols : cols};
  }
  const auto [indptr, columns, positions] = blocks(indptrs, indices, at, shape);
  std::vector<Tensor> ends;  // as (nnz, 1 or H): of vectors, cat skips the empty ones, which vmap then trips over
  for (const Tensor& v : values) ends.push_back(v.dim() == 1 ? v.unsqueeze(1) : v);
  const Tensor gathered = at::cat(ends).index_select(0, positions);
  return {indptr, columns, values[0].dim() == 1 ? gathered.squeeze(1) : gathered};
}

// v on diagonal k of the smallest square matrix that has it.
ops::Parts ops::diag(const Tensor& v, int64_t k) {
  TORCH_CHECK_VALUE(v.dim() == 1 || v.dim() == 2, "diag: wants v of shape (n,) or (n, H), not ", shape_text(v));
  const int64_t most = std::numeric_limits<int64_t>::max() / 4;
  TORCH_CHECK_VALUE(-most < k && k < most, "diag: there is no matrix with a diagonal ", k);
  const int64_t count = v.size(0), below = std::max<int64_t>(-k, 0), beside = std::max<int64_t>(k, 0);
  const int64_t n = count + below + beside;
  const auto options = v.options().dtype(index_type(false, {n})).requires_grad(false);
  return {(at::arange(n + 1, options) - below).clamp(0, count), at::arange(count, options) + beside, v};
}

static const std::string parts = " -> (Tensor indptr, Tensor indices, Tensor values)";
static const Composites composites =
    Composites()
        .def("kron(Tensor[] A, Tensor values_A, SymInt[] shape_A, Tensor[] B, Tensor values_B, SymInt[] shape_B)" +
                 parts,
             ops::kron)
        .def(
            "stack(Tensor[] indptrs, Tensor[] indices, Tensor[] values, int[] shapes, bool below, bool beside)" + parts,
            ops::stack)
        .def("diag(Tensor v, int k)" + parts, ops::diag);

// The front end.

namespace {

SparseMatrix stacked(at::ArrayRef<SparseMatrix> parts, bool below, bool beside) {
  std::vector<Tensor> indptrs, indices, values;
  std::vector<int64_t> shapes;
  int64_t cols = 0;
  Entries entries = Entries::unique;
  for (const SparseMatrix& A : parts) {
    if (A.pattern().entries() != Entries::unique) entries = Entries::unknown;
    indptrs.push_back(A.pattern().indptr()), indices.push_back(A.pattern().indices());
    values.push_back(A.values());
    shapes.insert(shapes.end(), {A.rows(), A.cols()});
    cols = beside ? cols + A.cols() : A.cols();
  }
  const auto [indptr, columns, gathered] = ops::stack(indptrs, indices, values, shapes, below, beside);
  return SparseMatrix(Pattern(indptr, columns, {indptr.size(0) - 1, cols}, /*check=*/false, entries), gathered);
}

}  // namespace

SparseMatrix diag(const Tensor& v, int64_t k) {
  const auto [indptr, indices, values] = ops::diag(v, k);
  return SparseMatrix(indptr, indices, values, {indptr.size(0) - 1, indptr.size(0) - 1}, /*check=*/false);
}

SparseMatrix kron(const SparseMatrix& A, const SparseMatrix& B) {
  const auto [indptr, indices, values] = ops::kron(A.pattern().tensors(), A.values(), A.pattern().sym_shape(),
                                                   B.pattern().tensors(), B.values(), B.pattern().sym_shape());
  const bool unique = A.pattern().entries() == Entries::unique && B.pattern().entries() == Entries::unique;
  return SparseMatrix(Pattern(indptr, indices, {A.rows() * B.rows(), A.cols() * B.cols()}, /*check=*/false,
                              unique ? Entries::unique : Entries::unknown),
                      values);
}

SparseMatrix vstack(at::ArrayRef<SparseMatrix> matrices) {
  return stacked(matrices, /*below=*/true, /*beside=*/false);
}

SparseMatrix hstack(at::ArrayRef<SparseMatrix> matrices) {
  return stacked(matrices, /*below=*/false, /*beside=*/true);
}

SparseMatrix block_diag(at::ArrayRef<SparseMatrix> matrices) {
  return stacked(matrices, /*below=*/true, /*beside=*/true);
}

}  // namespace gossamer
