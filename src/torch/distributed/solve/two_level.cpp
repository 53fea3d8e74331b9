// SPDX-License-Identifier: BSD-3-Clause
// A preconditioner of two levels, for symmetric positive definite A whose rows are on many processes: one that every
// rank makes of its own block, M, and a coarse matrix that all of them have whole,
//
//   Q = T (Tᵀ A T)⁻¹ Tᵀ,    T (n, coarse n): 1 where a row belongs to an aggregate, which are found in each block
//   z = Q r + (I - Q A) M (I - A Q) r
//
// which is symmetric positive definite if M is, whatever M is (Mandel's balancing, 1993). What is smooth over an
// aggregate is solved by Q, so the iterations do not grow with the number of ranks.
#include <ATen/ATen.h>
#include <gossamer/distributed.h>
#include <gossamer/kernels/aggregate.h>
#include <gossamer/linalg.h>
#include <gossamer/preconditioner.h>

#include <numeric>

#include "core/csr.h"
#include "core/launch.h"
#include "core/op.h"
#include "distributed/exchange.h"

namespace gossamer {
namespace {

using distributed::Block;
using distributed::Exchange;
using distributed::Group;

// The aggregate of each row, -1 for one that hangs on nothing, and how many aggregates there are.
std::pair<Tensor, int64_t> aggregates_of(const SparseMatrix& A, double theta) {
  const Tensor v = A.values().contiguous(), of_row = at::empty({A.rows()}, at::kLong);
  int64_t count = 0;
  launch("two_level", v, A.indptr(), [&]<class T, class I>(auto exec) {
    if constexpr (sizeof(T) >= 4 && Host<decltype(exec)>) {
      std::vector<int64_t> each(A.rows() + 1);
      std::iota(each.begin(), each.end(), int64_t{0});
      const PatternView<I> pattern{A.rows(), A.cols(), A.nnz(), ptr<I>(A.indptr()), ptr<I>(A.indices())};
      const auto found = kernels::aggregate(
          kernels::strong_graph(Csr<T, I>{pattern, ptr<T>(v)}, kernels::NodeRows(std::move(each)), theta));
      count = found.count;
      std::copy(found.of_node.begin(), found.of_node.end(), mutable_ptr<int64_t>(of_row));
    }
  });
  return {of_row, count};
}

// Entries (i, j, v) with i and j renamed; those without a new name are left out, and equal places added up.
SparseMatrix renamed(const Tensor& i, const Tensor& j, const Tensor& v, int64_t n) {
  const Tensor kept = i.ge(0).logical_and(j.ge(0)).nonzero().squeeze(1);
  return from_coo(i.index_select(0, kept), j.index_select(0, kept), v.index_select(0, kept), {n, n});
}

// Aggregates of aggregates of the own block, until there are at most `most`.
std::pair<Tensor, int64_t> coarsened(SparseMatrix A, int64_t most) {
  Tensor name = at::arange(A.rows());
  double theta = 0.08;
  while (A.rows() > most) {
    const auto [of_row, count] = aggregates_of(A, theta);
    if (count == A.rows() || count == 0) return {count == 0 ? at::full_like(name, -1) : name, count};
    const Tensor known = name.clamp_min(0);
    name = at::where(name.ge(0), of_row.index_select(0, known), name);
    A = renamed(of_row.index_select(0, A.pattern().row_indices()), of_row.index_select(0, A.indices().to(at::kLong)),
                A.values(), count);
    theta /= 2;
  }
  return {name, A.rows()};
}

class TwoLevel final : public linalg::Preconditioner {
 public:
  TwoLevel(TensorList plan, at::IntArrayRef counts, const Tensor& values, linalg::PreconditionerPtr M, int64_t most,
           std::string_view group)
      : plan_(plan.vec()), counts_(counts.vec()), values_(values.detach()), M_(std::move(M)), group_(group) {
    const Exchange exchange("two_level", plan_, counts_);
    const Block& A = exchange.block(false);
    size_ = A.rows;
    const Tensor i = ops::row_indices(A.indptr, A.indices), j = A.indices.to(at::kLong);
    const Tensor v = values_.to(at::kDouble), others = at::full({A.halo()}, -1, at::kLong);
    const Tensor own = at::cat({at::arange(A.owned), others}).index_select(0, j);
    auto [name, count] = coarsened(renamed(i, own, v, A.rows), std::max<int64_t>(most / group_.size(), 1));
    const Tensor all = group_.all_gather(at::full({1}, count, at::kLong)).flatten();
    coarse_ = all.sum().item<int64_t>();
    name = at::where(name.ge(0), name + all.narrow(0, 0, group_.rank()).sum(), name);
    rows_ = name.ge(0).nonzero().squeeze(1), names_ = name.index_select(0, rows_);
    if (coarse_ == 0) return;
    const Tensor everywhere = at::cat({name, ops::halo(name, A.send_rows, A.send, A.recv, group)});
    factor_ = linalg::factorize(of_all(renamed(name.index_select(0, i), everywhere.index_select(0, j), v, coarse_)),
                                "cholesky");
  }

  int64_t size() const override { return size_; }
  Tensor apply(const Tensor& r, bool transpose) const override {
    if (coarse_ == 0) return M_->apply(r, transpose);
    const Tensor w = solve_coarse(r);
    const Tensor y = M_->apply(r - product(w), transpose);
    return w + y - solve_coarse(product(y));
  }

 private:
  // Rows of the coarse matrix are with the ranks whose aggregates they are; every rank gets all of them.
  SparseMatrix of_all(const SparseMatrix& own) const {
    Tensor longest = at::full({1}, own.nnz(), at::kLong);
    group_.max_(longest);
    const int64_t more = longest.item<int64_t>() - own.nnz();
    const auto padded = [more](const Tensor& t, double with) { return at::constant_pad_nd(t, {0, more}, with); };
    const Tensor i = group_.all_gather(padded(own.pattern().row_indices(), -1)).flatten();
    const Tensor j = group_.all_gather(padded(own.indices().to(at::kLong), -1)).flatten();
    return renamed(i, j, group_.all_gather(padded(own.values(), 0)).flatten(), own.rows());
  }

  Tensor product(const Tensor& x) const {
    return ops::spmm_rows(plan_, counts_, values_, x, /*t=*/false, /*halo=*/{}, /*keep_halo=*/false, group_.name());
  }
  Tensor solve_coarse(const Tensor& r) const {
    auto size = r.sizes().vec();
    size[0] = coarse_;
    const Tensor sums = at::zeros(size, r.options().dtype(at::kDouble));
    const Tensor own = sums.index_add(0, names_, r.index_select(0, rows_).to(at::kDouble));
    const Tensor x = factor_->solve(ops::distributed_sum(own, group_.name()));
    return at::zeros_like(r).index_copy(0, rows_, x.index_select(0, names_).to(r.scalar_type()));
  }

  std::vector<Tensor> plan_;
  std::vector<int64_t> counts_;
  Tensor values_;
  linalg::PreconditionerPtr M_;
  Group group_;
  int64_t size_ = 0, coarse_ = 0;
  Tensor rows_, names_;  // of the own rows that belong to an aggregate: which, and to which
  std::optional<linalg::Factor> factor_;
};

Tensor two_level(TensorList plan, at::IntArrayRef counts, const Tensor& values, const Tensor& M, int64_t most,
                 std::string_view group) {
  const at::NoGradGuard constant;
  return ops::preconditioner_handle(
      std::make_shared<TwoLevel>(plan, counts, values, ops::preconditioner_of(M), most, group));
}

const Composites composites = Composites().def(
    "two_level(Tensor[] plan, int[] counts, Tensor values, Tensor M, int coarse_size, str group) -> Tensor", two_level);

}  // namespace
}  // namespace gossamer
