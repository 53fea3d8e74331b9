// SPDX-License-Identifier: BSD-3-Clause
// linalg::amg: the levels of smoothed aggregation, and the V-cycle that approximates A⁻¹. amg.h has the equations of a
// level, kernels/cycle.h those of the cycle.
#include <ATen/ATen.h>
#include <gossamer/kernels/cycle.h>
#include <gossamer/linalg.h>
#include <gossamer/products.h>

#include <mutex>

#include "core/host.h"
#include "core/launch.h"
#include "precondition/amg.h"
#include "signals/signals.h"
#include "solve/factor.h"

namespace gossamer::linalg {
namespace {

struct Level {
  SparseMatrix A, P;
  Tensor inverse;  // 1 / diag(A), without a derivative: for the fused cycle
};

// Inside the forward of an op nothing is recorded, whatever the mode says.
bool is_recording() {
  return at::GradMode::is_enabled() && !c10::impl::tls_is_dispatch_key_excluded(at::DispatchKey::AutogradCPU);
}

// The numbers of all levels. They do not change; copies of a preconditioner share them.
struct Hierarchy {
  std::vector<Level> levels;
  SparseMatrix coarse;
  Tensor factor;                // of coarse; undefined if that has no rows
  bool differentiable = false;  // with respect to the values of A, or to ω

  // b: (rows of level k,) or (…, columns). In public ops; that of Aᵀ if t.
  Tensor cycle(size_t k, const Tensor& b, bool t) const {
    if (k == levels.size()) {
      if (!factor.defined()) return b;
      const Pattern& C = coarse.pattern();
      return ops::factor_solve(factor, C.tensors(true), coarse.values(), b, C.sym_shape(), t);
    }
    const auto& [A, P, inverse] = levels[k];
    const Tensor x = solve_triangular(A, b, /*upper=*/t, /*unit_diagonal=*/false, /*transpose=*/t);
    const Tensor e = cycle(k + 1, spmm(P, b.sub(spmm(A, x, t)), /*transpose=*/true), t);
    const Tensor y = x.add(spmm(P, e));
    return y.add(solve_triangular(A, b.sub(spmm(A, y, t)), /*upper=*/!t, /*unit_diagonal=*/false, /*transpose=*/t));
  }

  // The same without derivatives, in fused passes. b: (rows of level k, columns), contiguous.
  Tensor fused_cycle(size_t k, const Tensor& b) const {
    if (k == levels.size()) return coarse_solve(b);
    const SparseMatrix &A = levels[k].A, &P = levels[k].P;
    const int64_t width = b.size(1);
    const Tensor x = empty_result(b.sym_sizes(), b.options()), c = at::empty({P.cols(), width}, b.options());
    const Tensor places = diagonal_places(A.pattern());
    launch("amg", b, A.indptr(), [&]<class T, class I>(auto exec) {
      if constexpr (sizeof(T) >= 4 && Host<decltype(exec)>) {
        const auto view = [](const SparseMatrix& M) {
          return Csr<T, I>{{M.rows(), M.cols(), M.nnz(), ptr<I>(M.indptr()), ptr<I>(M.indices())}, ptr<T>(M.values())};
        };
        const kernels::CycleLevel<T, I> level{view(A), view(P), ptr<I>(places), ptr<T>(levels[k].inverse)};
        kernels::descend(exec, level, ptr<T>(b), width, mutable_ptr<T>(x), mutable_ptr<T>(c));
        const Tensor e = fused_cycle(k + 1, c);
        kernels::ascend(exec, level, ptr<T>(b), ptr<T>(e), width, mutable_ptr<T>(x));
      }
    });
    return x;
  }

  // One solve with the factors as they are: a preconditioner needs no refinement.
  Tensor coarse_solve(const Tensor& b) const {
    if (!factor.defined()) return b;
    const auto solver = std::dynamic_pointer_cast<const ScaledFactor>(object_of<FactoredMatrix>(factor));
    const Tensor x = b.t().to(at::kDouble, /*non_blocking=*/false, /*copy=*/true).contiguous();
    solver->solve(mutable_ptr<double>(x), x.size(0), /*t=*/false);
    return x.t().to(b.scalar_type()).contiguous();
  }

  // Then the cycle is symmetric too. Found out when it is first asked for.
  bool symmetric() const {
    std::call_once(asked_, [this] {
      const SparseMatrix& A = levels.empty() ? coarse : levels[0].A;
      const SparseMatrix T = A.detach().T();
      symmetric_ = A.pattern() == T.pattern() && at::equal(A.values(), T.values());
    });
    return symmetric_;
  }

 private:
  mutable std::once_flag asked_;
  mutable bool symmetric_ = false;
};

void check_omega(const Tensor& omega) {
  TORCH_CHECK_VALUE(omega.is_floating_point() && (omega.dim() == 0 || (omega.dim() == 1 && omega.size(0) > 0)),
                    "amg: omega must be a number or one a level, not ", shape_text(omega));
}

class SmoothedAggregation final : public Amg {
 public:
  SmoothedAggregation(const SparseMatrix& A, const AmgOptions& options) : pattern_(A.pattern()), options_(options) {
    build(A, /*first=*/true);
  }

  int64_t size() const override { return pattern_.rows(); }
  void update(const SparseMatrix& A) override {
    check_same_pattern("amg", pattern_, A);
    build(SparseMatrix(pattern_, A.values()), /*first=*/false);
  }
  void update(const SparseMatrix& A, const Tensor& omega) override {
    check_omega(omega);
    options_.omega = omega;
    update(A);
  }
  MatrixPreconditionerPtr copy() const override { return std::make_shared<SmoothedAggregation>(*this); }

  Tensor apply(const Tensor& r, bool transpose) const override {
    const Hierarchy& H = *hierarchy_;
    if (r.sym_numel() == 0) return r.clone();
    const bool recorded = is_recording() && (H.differentiable || r.requires_grad());
    const bool fused = !recorded && is_readable(r) && is_readable(finest().values()) && !has_derivative_forward(r);
    if (!fused || r.scalar_type() != finest().dtype()) return H.cycle(0, r, transpose);
    const at::NoGradGuard constant;
    if (transpose && !H.symmetric()) return H.cycle(0, r, transpose);
    const Tensor b = r.dim() == 1 ? r.unsqueeze(1) : r;
    return H.fused_cycle(0, b.contiguous()).view(r.sizes());
  }

  std::vector<int64_t> sizes() const override {
    std::vector<int64_t> rows;
    for (const Level& level : hierarchy_->levels) rows.push_back(level.A.rows());
    if (hierarchy_->coarse.rows() > 0 || rows.empty()) rows.push_back(hierarchy_->coarse.rows());
    return rows;
  }

  double operator_complexity() const override {
    double entries = static_cast<double>(hierarchy_->coarse.nnz());
    for (const Level& level : hierarchy_->levels) entries += static_cast<double>(level.A.nnz());
    return pattern_.nnz() ? entries / static_cast<double>(pattern_.nnz()) : 1;
  }

 private:
  const SparseMatrix& finest() const {
    return hierarchy_->levels.empty() ? hierarchy_->coarse : hierarchy_->levels[0].A;
  }
  bool has_derivative_forward(const Tensor& r) const {
    return r._fw_grad(/*level=*/0).defined() || finest().values()._fw_grad(/*level=*/0).defined();
  }
  Tensor omega_of(size_t k, const SparseMatrix& A) const;
  Nodes first_nodes(const SparseMatrix& A) const;
  void build(const SparseMatrix& given, bool first);

  Pattern pattern_;
  AmgOptions options_;
  std::vector<LevelPlan> plans_;
  std::shared_ptr<const Hierarchy> hierarchy_;
};

Tensor SmoothedAggregation::omega_of(size_t k, const SparseMatrix& A) const {
  const Tensor& omega = options_.omega;
  if (!omega.defined()) return at::scalar_tensor(4.0 / 3.0, A.values().options());
  return omega.dim() == 0 ? omega : omega.select(0, std::min<int64_t>(k, omega.size(0) - 1));
}

Nodes SmoothedAggregation::first_nodes(const SparseMatrix& A) const {
  const int64_t n = A.rows(), size = options_.block_size;
  Nodes nodes;
  for (int64_t i = 0; i <= n; i += size) nodes.ptr.push_back(i);
  Tensor B = options_.near_null_space;
  if (!B.defined()) B = at::eye(size, at::kDouble).repeat({n / size, 1});
  B = (B.dim() == 1 ? B.unsqueeze(1) : B).detach().to(at::kCPU, at::kDouble).contiguous();
  nodes.vectors = B.size(1);
  nodes.B.assign(ptr<double>(B), ptr<double>(B) + B.numel());
  return nodes;
}

void SmoothedAggregation::build(const SparseMatrix& given, bool first) {
  const bool recording = is_recording();
  const OrdinaryNumbers numbers;
  const SparseMatrix whole = with_whole_diagonal(recording ? given : given.detach());
  SparseMatrix A = whole.with_values(whole.values().contiguous());  // as the fused passes read them
  auto H = std::make_shared<Hierarchy>();
  H->differentiable =
      recording && (given.requires_grad() || (options_.omega.defined() && options_.omega.requires_grad()));
  Nodes nodes;
  if (first) nodes = first_nodes(A);
  double theta = options_.theta;
  for (size_t k = 0; first ? A.rows() > options_.coarse_size : k < plans_.size(); ++k, theta /= 2) {
    throw_if_interrupted();
    if (first) {
      LevelPlan plan = plan_level(A, nodes, theta);
      if (10 * plan.T.cols() > 9 * A.rows()) break;  // the next level would be no smaller
      plans_.push_back(std::move(plan));
    }
    const SparseMatrix P = prolongation(plans_[k], A, omega_of(k, A));
    const Tensor inverse = ops::pick(A.values().detach(), diagonal_places(A.pattern())).reciprocal();
    H->levels.push_back({A, P, inverse});
    A = P.cols() == 0 ? SparseMatrix() : with_whole_diagonal(spgemm(P.T(), spgemm(A, P)));
  }
  H->coarse = A;
  if (A.rows() > 0) H->factor = ops::factorize(A.pattern().analysis(), A.values(), "auto", "auto");
  hierarchy_ = std::move(H);
}

void check_options(const SparseMatrix& A, const AmgOptions& options) {
  TORCH_CHECK_VALUE(options.theta >= 0 && options.theta < 1, "amg: theta must be in [0, 1), not ", options.theta);
  TORCH_CHECK_VALUE(options.coarse_size >= 1, "amg: coarse_size must be positive, not ", options.coarse_size);
  TORCH_CHECK_VALUE(options.block_size >= 1 && A.rows() % options.block_size == 0, "amg: block_size ",
                    options.block_size, " does not divide the ", A.rows(), " rows of A");
  if (const Tensor& B = options.near_null_space; B.defined())
    TORCH_CHECK_VALUE((B.dim() == 1 || (B.dim() == 2 && B.size(1) > 0)) && B.size(0) == A.rows(),
                      "amg: near_null_space must be (", A.rows(), ", m), not ", shape_text(B));
  if (options.omega.defined()) check_omega(options.omega);
}

}  // namespace

AmgPtr amg(const SparseMatrix& A, const AmgOptions& options) {
  check_preconditioned("amg", A);
  check_options(A, options);
  TORCH_CHECK_VALUE(is_readable(A.values()),
                    "amg: the aggregates are found from numbers; make it outside the transform, and update it inside");
  return std::make_shared<SmoothedAggregation>(A, options);
}

}  // namespace gossamer::linalg
