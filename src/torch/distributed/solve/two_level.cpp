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
#include <gossamer/distributed_solve.h>
#include <gossamer/kernels/aggregate.h>
#include <gossamer/linalg.h>
#include <gossamer/preconditioner.h>

#include <functional>
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

// This rank's rows of A, and what it takes to multiply with all of them.
struct Rows {
  Tensor indptr, indices, values;  // own columns, then those of the halo
  int64_t owned;
  std::function<Tensor(const Tensor&)> product, with_halo;  // own rows of A x; x and its halo
  std::string group;
};

class TwoLevel final : public linalg::Preconditioner {
 public:
  TwoLevel(Rows A, linalg::PreconditionerPtr M, int64_t most)
      : A_(std::move(A)), M_(std::move(M)), group_(A_.group), size_(A_.indptr.size(0) - 1) {
    const Tensor i = ops::row_indices(A_.indptr, A_.indices), j = A_.indices.to(at::kLong);
    const Tensor v = A_.values.to(at::kDouble), own = at::where(j.lt(A_.owned), j, at::full_like(j, -1));
    auto [name, count] = coarsened(renamed(i, own, v, size_), std::max<int64_t>(most / group_.size(), 1));
    const Tensor all = group_.all_gather(at::full({1}, count, at::kLong)).flatten();
    coarse_ = all.sum().item<int64_t>();
    name = at::where(name.ge(0), name + all.narrow(0, 0, group_.rank()).sum(), name);
    rows_ = name.ge(0).nonzero().squeeze(1), names_ = name.index_select(0, rows_);
    if (coarse_ == 0) return;
    const Tensor everywhere = A_.with_halo(name);
    factor_ = linalg::factorize(of_all(renamed(name.index_select(0, i), everywhere.index_select(0, j), v, coarse_)),
                                "cholesky");
  }

  int64_t size() const override { return size_; }
  Tensor apply(const Tensor& r, bool transpose) const override {
    if (coarse_ == 0) return M_->apply(r, transpose);
    const Tensor w = solve_coarse(r);
    const Tensor y = M_->apply(r - A_.product(w), transpose);
    return w + y - solve_coarse(A_.product(y));
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

  Tensor solve_coarse(const Tensor& r) const {
    auto size = r.sizes().vec();
    size[0] = coarse_;
    const Tensor sums = at::zeros(size, r.options().dtype(at::kDouble));
    const Tensor own = sums.index_add(0, names_, r.index_select(0, rows_).to(at::kDouble));
    const Tensor x = factor_->solve(ops::distributed_sum(own, group_.name()));
    return at::zeros_like(r).index_copy(0, rows_, x.index_select(0, names_).to(r.scalar_type()));
  }

  Rows A_;
  linalg::PreconditionerPtr M_;
  Group group_;
  int64_t size_, coarse_ = 0;
  Tensor rows_, names_;  // of the own rows that belong to an aggregate: which, and to which
  std::optional<linalg::Factor> factor_;
};

Tensor two_level(TensorList plan, at::IntArrayRef counts, const Tensor& values, const Tensor& M, int64_t most,
                 std::string_view name) {
  const at::NoGradGuard constant;
  const std::string group(name);
  const auto check = [&](const Exchange& checked) {
    const Block& A = checked.block(false);
    TORCH_CHECK_VALUE(most >= 1, "two_level: coarse_size must be at least 1, not ", most);
    TORCH_CHECK_VALUE(A.rows == A.owned, "two_level: this rank has ", A.rows, " rows and ", A.owned, " columns");
    TORCH_CHECK_VALUE(values.dim() == 1 && values.size(0) == A.entries(), "two_level: values ", shape_text(values),
                      " must be (nnz,) for the ", A.entries(), " entries of this rank");
    distributed::check_device("two_level", values, A);
    TORCH_CHECK_TYPE(values.is_floating_point(), "two_level: values must be floating, not ", values.scalar_type());
    const int64_t size = ops::preconditioner_of(M)->size();
    TORCH_CHECK_VALUE(size == A.rows, "two_level: M is of ", size, " rows, but this rank has ", A.rows);
  };
  const std::string common = "two_level: values " + distributed::row_text(values) + ", " + std::to_string(most);
  const Exchange exchange = distributed::agreed(Group(name), "two_level", plan, counts, common, check);
  const Block& A = exchange.block(false);
  const Tensor v = values.detach();
  const auto product = [plan = plan.vec(), counts = counts.vec(), v, group](const Tensor& x) {
    return ops::spmm_rows(plan, counts, v, x, /*t=*/false, /*halo=*/{}, /*keep_halo=*/false, group);
  };
  const auto with_halo = [index = A.send_rows, send = A.send.vec(), recv = A.recv.vec(), group](const Tensor& x) {
    return at::cat({x, ops::halo(x, index, send, recv, group)});
  };
  return ops::preconditioner_handle(std::make_shared<TwoLevel>(
      Rows{A.indptr, A.indices, v, A.owned, product, with_halo, group}, ops::preconditioner_of(M), most));
}

const Composites composites = Composites().def(
    "two_level(Tensor[] plan, int[] counts, Tensor values, Tensor M, int coarse_size, str group) -> Tensor", two_level);

}  // namespace

linalg::PreconditionerPtr linalg::two_level(const DistributedMatrix& A, PreconditionerPtr M, int64_t coarse_size) {
  TORCH_CHECK_VALUE(coarse_size >= 1, "two_level: coarse_size must be at least 1, not ", coarse_size);
  const at::NoGradGuard constant;
  const DistributedMatrix D = A.detach();
  if (!M) M = preconditioner(factorize(distributed::own_block(D)));
  return std::make_shared<TwoLevel>(
      Rows{D.pattern().indptr(), D.pattern().indices(), D.values(), D.local_shape()[1],
           [D](const Tensor& x) { return D.matmul(x); }, [D](const Tensor& x) { return D.halo(x); }, D.group()},
      std::move(M), coarse_size);
}

}  // namespace gossamer
