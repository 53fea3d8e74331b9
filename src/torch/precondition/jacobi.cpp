// SPDX-License-Identifier: BSD-3-Clause
// M = diag(A)⁻¹, and M = the inverses of the blocks on the diagonal, in torch's own differentiable functions.
#include <ATen/ATen.h>

#include <algorithm>
#include <numeric>

#include "precondition/matrix.h"

namespace gossamer::linalg {
namespace {

class Jacobi final : public MatrixPreconditioner {
 public:
  explicit Jacobi(const SparseMatrix& A) : pattern_(A.pattern()) { update(A); }

  int64_t size() const override { return pattern_.rows(); }
  void update(const SparseMatrix& A) override {
    check_same_pattern("jacobi", pattern_, A);
    const OrdinaryNumbers numbers;
    const Tensor d = A.diagonal();
    const Tensor zero = d.detach().eq(0).nonzero();
    if (zero.size(0) > 0)
      throw_singular("jacobi", "row ", zero[0].item<int64_t>(), " has no diagonal entry, or a zero there");
    inverse_ = d.reciprocal();
  }
  MatrixPreconditionerPtr copy() const override { return std::make_shared<Jacobi>(*this); }
  Tensor apply(const Tensor& r, bool) const override { return beside(inverse_, r).mul(r); }

 private:
  Pattern pattern_;
  Tensor inverse_;
};

// The blocks as one tensor (blocks, s, s), s being the largest size; smaller ones end with rows of the identity.
class BlockJacobi final : public MatrixPreconditioner {
 public:
  BlockJacobi(const SparseMatrix& A, const std::vector<int64_t>& sizes)
      : pattern_(A.pattern()), count_(static_cast<int64_t>(sizes.size())) {
    place_entries(sizes);
    update(A);
  }

  int64_t size() const override { return pattern_.rows(); }
  void update(const SparseMatrix& A) override {
    check_same_pattern("block_jacobi", pattern_, A);
    const OrdinaryNumbers numbers;
    const Tensor v = A.values();
    if (v.numel() == 0 && size() == 0) return;
    const Tensor flat = at::zeros({count_ * largest_ * largest_}, v.options());
    const Tensor blocks = flat.index_add(0, place_, v.index_select(0, entries_)).view({count_, largest_, largest_});
    const auto [inverse, info] = at::linalg_inv_ex(blocks.add(padding_.to(v.scalar_type())));
    const Tensor bad = info.nonzero();
    if (bad.size(0) > 0) throw_singular("block_jacobi", "block ", bad[0].item<int64_t>(), " has no inverse");
    inverse_ = inverse;
  }
  MatrixPreconditionerPtr copy() const override { return std::make_shared<BlockJacobi>(*this); }
  Tensor apply(const Tensor& r, bool transpose) const override {
    if (size() == 0) return r.clone();
    const Tensor R = r.dim() == 1 ? r.unsqueeze(1) : r;
    const Tensor padded = at::zeros({count_ * largest_, R.size(1)}, R.options()).index_copy(0, row_, R);
    const Tensor M = transpose ? inverse_.transpose(1, 2) : inverse_;
    const Tensor z = at::matmul(M, padded.view({count_, largest_, R.size(1)})).flatten(0, 1).index_select(0, row_);
    return r.dim() == 1 ? z.squeeze(1) : z;
  }

 private:
  // Integers alone, which serve every update, whatever transform of torch.func the first one is inside.
  void place_entries(const std::vector<int64_t>& sizes) {
    const KeptTensors kept;
    largest_ = sizes.empty() ? 0 : *std::max_element(sizes.begin(), sizes.end());
    const Tensor size = at::tensor(sizes, at::kLong), block = at::arange(count_).repeat_interleave(size);
    const Tensor first = size.cumsum(0).sub(size);
    const Tensor inside = at::arange(pattern_.rows()).sub(first.index_select(0, block));
    row_ = block.mul(largest_).add(inside);  // where each row of A stands, blocks of equal size one after the other
    const Tensor i = pattern_.row_indices(), j = pattern_.indices().to(at::kLong);
    entries_ = block.index_select(0, i).eq(block.index_select(0, j)).nonzero().squeeze(1);
    const Tensor rows = row_.index_select(0, i.index_select(0, entries_));
    const Tensor columns = inside.index_select(0, j.index_select(0, entries_));
    place_ = rows.mul(largest_).add(columns);
    Tensor empty = at::ones({count_ * largest_}, at::kDouble);
    empty.index_fill_(0, row_, 0);
    padding_ = at::diag_embed(empty.view({count_, largest_}));
  }

  Pattern pattern_;
  int64_t count_, largest_;
  Tensor row_, entries_, place_, padding_, inverse_;
};

}  // namespace

MatrixPreconditionerPtr jacobi(const SparseMatrix& A) {
  check_preconditioned("jacobi", A);
  return std::make_shared<Jacobi>(A);
}

MatrixPreconditionerPtr block_jacobi(const SparseMatrix& A, int64_t size) {
  check_preconditioned("block_jacobi", A);
  TORCH_CHECK_VALUE(size >= 1, "block_jacobi: a block has at least one row, not ", size);
  std::vector<int64_t> sizes(A.rows() / size, size);
  if (A.rows() % size) sizes.push_back(A.rows() % size);
  return std::make_shared<BlockJacobi>(A, sizes);
}

MatrixPreconditionerPtr block_jacobi(const SparseMatrix& A, at::IntArrayRef sizes) {
  check_preconditioned("block_jacobi", A);
  int64_t rows = 0;
  for (const int64_t size : sizes) {
    TORCH_CHECK_VALUE(size >= 1, "block_jacobi: a block has at least one row, not ", size);
    rows += size;
  }
  TORCH_CHECK_VALUE(rows == A.rows(), "block_jacobi: the blocks have ", rows, " rows together, but A has ", A.rows());
  return std::make_shared<BlockJacobi>(A, sizes.vec());
}

}  // namespace gossamer::linalg
