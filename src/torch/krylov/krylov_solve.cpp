// SPDX-License-Identifier: BSD-3-Clause
// Op: `krylov_solve`, x = A⁻¹ b, or A⁻ᵀ b if t, by an iteration. The derivative knows nothing of the iteration; it is
// that of every linear solve (linear_solve.h), with Mᵀ where A is transposed, and t is kept for symmetric matrices,
// too: their perturbations need not be symmetric. lsmr has that of least squares: least_squares.h. Its M is symmetric,
// and stays with the rows or columns of A that it is for: for a square A, with those of the rows if m_t.
#include <ATen/ATen.h>

#include "core/csr.h"
#include "core/op.h"
#include "krylov/drive.h"
#include "krylov/least_squares.h"
#include "solve/linear_solve.h"

namespace gossamer {
namespace {

using OptionalTensor = std::optional<Tensor>;
using Result = std::tuple<Tensor, Tensor>;

// All that is not a tensor to differentiate by.
struct Call {
  std::vector<Tensor> pattern;
  OptionalTensor M;
  std::vector<SymInt> shape;
  std::string method;
  double rtol, atol;
  int64_t maxiter, restart;
  double damp;
  bool check;
  double adjoint_rtol;
  bool t, m_t;

  Result operator()(const Tensor& values, const Tensor& b, const OptionalTensor& x0) const {
    return ops::krylov_solve(pattern, values, b, x0, M, shape, method, rtol, atol, maxiter, restart, damp, check,
                             adjoint_rtol, t, m_t);
  }
  // A solve for a derivative, with the other transpose if `other`.
  Tensor derivative(const Tensor& values, const Tensor& b, bool other) const {
    Call call = *this;
    call.rtol = adjoint_rtol, call.atol = 0, call.check = true;
    call.t = t != other, call.m_t = m_t != other;
    return std::get<0>(call(values, b, {}));
  }
};

// How many columns are solved together, and the number whose multiple they are filled up to with zeros.
struct Groups {
  int64_t width, multiple;
};

// Products with a wide block read the matrix once, and are fastest with a multiple of four columns. The rows of a grid
// read no indices (kernels/runs.h) with one, two and four columns, whose blocks stay in the cache besides. A
// preconditioner gains most.
Groups groups_of(const PatternTensors& A, const Tensor& b, bool preconditioned) {
  const int64_t n = b.size(0), k = b.dim() == 1 ? 1 : b.size(1);
  const bool grid = A.runs.defined() && A.runs.numel() > 0;
  if (grid && (k <= 4 || !preconditioned)) return {4, 2};
  if (k < 3) return {1, 1};
  return {n > 50000 ? 8 : 16, 4};
}

// solve(b, x0) for groups of columns. Zeros converge at once.
template <class F>
Result in_groups(const Tensor& b, const OptionalTensor& x0, const Groups& groups, const F& solve) {
  if (b.dim() == 1) return solve(b, x0, 0);
  const int64_t width = groups.width;
  variable_list xs, infos;
  for (int64_t c = 0; c < b.size(1) || xs.empty(); c += width) {
    const int64_t k = std::min(width, b.size(1) - c), over = k % groups.multiple,
                  zeros = k > 1 && over > 0 ? groups.multiple - over : 0;
    const auto group = [&](const Tensor& u) {
      const Tensor columns = u.narrow(1, c, k);
      return zeros ? at::cat({columns, at::zeros({u.size(0), zeros}, u.options())}, 1) : columns.contiguous();
    };
    const auto [x, info] = solve(group(b), x0 ? OptionalTensor(group(*x0)) : std::nullopt, c);
    xs.push_back(x.narrow(1, 0, k)), infos.push_back(info.narrow(1, 0, k));
  }
  return {at::cat(xs, 1), at::cat(infos, 1)};
}

Result forward(TensorList pattern, const Tensor& values, const Tensor& b, const OptionalTensor& x0,
               const OptionalTensor& M, SymIntArrayRef shape, c10::string_view method, double rtol, double atol,
               int64_t maxiter, int64_t restart, double damp, bool check, double adjoint_rtol, bool t, bool m_t) {
  const std::string name(method);
  const char* op = name.c_str();
  const PatternTensors A = unpack(op, pattern, shape, t);
  check_dense(op, "values", values, A, A.nnz(), "entries");
  check_dense(op, "b", b, A, A.rows, "rows");
  check_same_dtype(op, "b", b, "values", values);
  TORCH_CHECK_VALUE(values.dim() == 1, op, ": A must be one matrix, with values (nnz,), not ", shape_text(values));
  auto size = b.sym_sizes().vec();
  size[0] = 3;
  if (b.is_meta()) {
    const Tensor info = at::empty_symint(size, b.options().dtype(at::kDouble));
    size[0] = A.cols;
    return {at::empty_symint(size, b.options()), info};
  }
  if (b.scalar_type() == at::kHalf || b.scalar_type() == at::kBFloat16) {  // too few digits to iterate in
    const auto single = [](const Tensor& u) { return u.to(at::kFloat); };
    const auto [x, info] = forward(pattern, single(values), single(b), x0 ? OptionalTensor(single(*x0)) : std::nullopt,
                                   M, shape, method, rtol, atol, maxiter, restart, damp, check, adjoint_rtol, t, m_t);
    return {x.to(b.scalar_type()), info};
  }
  const auto rows = A.rows.expect_int(), cols = A.cols.expect_int();
  TORCH_CHECK_VALUE(b.dim() <= 2 && (!x0 || (x0->dim() == b.dim() && x0->sizes().slice(1) == b.sizes().slice(1))), op,
                    ": b must be (n,) or (n, k), and x0 likewise, not ", shape_text(b), x0 ? shape_text(*x0) : "");
  const auto preconditioner = M ? ops::preconditioner_of(*M) : nullptr;
  TORCH_CHECK_VALUE(!M || preconditioner->size() == std::min(rows, cols), op, ": M must have ", std::min(rows, cols),
                    " rows", rows == cols ? "" : ", as many as A has rows or columns, whichever are fewer", ", not ",
                    preconditioner->size());
  const Tensor v = values.contiguous();
  const krylov::Products products{[&](const Tensor& x) { return ops::spmm(pattern, v, x, shape, t); },
                                  [&](const Tensor& u) { return ops::spmm(pattern, v, u, shape, !t); },
                                  [&](const Tensor& r) { return preconditioner->apply(r, m_t); }};
  const auto solve = [&](const Tensor& rhs, const OptionalTensor& start, int64_t first) {
    const krylov::Problem problem{name,    rows,    cols, rhs,           start, rtol,  atol,
                                  maxiter, restart, damp, M.has_value(), m_t,   false, false};
    return krylov::drive(problem, products, t ? name + " with the transpose" : name, check, first);
  };
  return in_groups(b, x0, groups_of(A, b, M.has_value()), solve);
}

Result forward_on_device(TensorList pattern, const Tensor& values, const Tensor& b, const OptionalTensor& x0,
                         const OptionalTensor& M, SymIntArrayRef shape, c10::string_view method, double rtol,
                         double atol, int64_t maxiter, int64_t restart, double damp, bool check, double adjoint_rtol,
                         bool t, bool m_t) {
  const at::Device device = DeviceOf(std::string(method)).all(pattern, values, b);
  const auto start = x0 ? OptionalTensor(on_host(*x0)) : std::nullopt;
  return on_device(forward(on_host(pattern), on_host(values), on_host(b), start, M, shape, method, rtol, atol, maxiter,
                           restart, damp, check, adjoint_rtol, t, m_t),
                   device);
}

LeastSquares least_squares_of(const Call& call) {
  return {call.pattern, call.shape, call.damp, call.t,
          [call](const Tensor& v, const Tensor& rhs, bool other) { return call.derivative(v, rhs, other); }};
}

LinearSolve solve_of(const Call& call) {
  return {"krylov_solve", call.pattern, call.shape, call.t,
          [call](const Tensor& v, const Tensor& rhs, const Tensor&, bool transposed) {
            return call.derivative(v, rhs, transposed != call.t);
          }};
}

Result autograd(TensorList pattern, const Tensor& values, const Tensor& b, const OptionalTensor& x0,
                const OptionalTensor& M, SymIntArrayRef shape, c10::string_view method, double rtol, double atol,
                int64_t maxiter, int64_t restart, double damp, bool check, double adjoint_rtol, bool t, bool m_t) {
  const Call call{pattern.vec(), M,    shape.vec(), std::string(method), rtol, atol, maxiter,
                  restart,       damp, check,       adjoint_rtol,        t,    m_t};
  const bool squares = call.method == "lsmr";
  const variable_list results = differentiable_many(
      "krylov_solve", {values, b},
      [&](const variable_list& in) {
        const auto start = x0 ? OptionalTensor(x0->detach()) : std::nullopt;  // The solution does not depend on it.
        const auto [x, info] = call(in[0], in[1], start);
        return variable_list{x, info};
      },
      [call, squares](const variable_list& grads, const variable_list& in, const variable_list& out,
                      const Wanted& wanted) {
        if (squares) return least_squares_of(call).vjp(grads[0], in[0], in[1], out[0], wanted);
        const LinearSolve A = solve_of(call);
        const Tensor db = call.derivative(in[0], grads[0], /*other=*/true);
        return variable_list{wanted[0] ? A.values_gradient(in[0], db, out[0]) : Tensor(), wanted[1] ? db : Tensor()};
      },
      [&](const variable_list& in, const variable_list& tangents, const variable_list& out) {
        if (squares) return variable_list{least_squares_of(call).jvp(tangents[0], tangents[1], in[0], in[1], out[0])};
        const Tensor side = solve_of(call).right_side_tangent(tangents[0], tangents[1], out[0]);
        return variable_list{call.derivative(in[0], side, /*other=*/false)};
      },
      1, /*keep_outputs=*/true);
  return {results[0], results[1]};
}

// A batch of b alone is more columns; a batch of matrices is solved one by one.
Result batched(TensorList pattern, const Tensor& values, const Tensor& b, const OptionalTensor& x0,
               const OptionalTensor& M, SymIntArrayRef shape, c10::string_view method, double rtol, double atol,
               int64_t maxiter, int64_t restart, double damp, bool check, double adjoint_rtol, bool t, bool m_t) {
  const Call call{pattern.vec(), M,    shape.vec(), std::string(method), rtol, atol, maxiter,
                  restart,       damp, check,       adjoint_rtol,        t,    m_t};
  const Tensor start = x0.value_or(Tensor());
  {
    const Batch batch(call.method.c_str(), pattern, {values, b, start});
    if (!batch.has(values)) {
      const auto columns = [&](const Tensor& u) { return batch.at(u, 1).flatten(1); };
      const auto [x, info] = call(values, columns(b), start.defined() ? OptionalTensor(columns(start)) : std::nullopt);
      if (b.dim() == 1) return {batch.wrap(x, 1), batch.wrap(info, 1)};
      const auto unfold = [&](const Tensor& u) { return unfold_dim(u, 1, {batch.size(), b.sym_size(1)}); };
      return {batch.wrap(unfold(x), 1), batch.wrap(unfold(info), 1)};
    }
  }
  const auto results = one_by_one(call.method.c_str(), pattern, {values, b, start}, [&](const variable_list& in) {
    const auto [x, info] = call(in[0], in[1], in[2].defined() ? OptionalTensor(in[2]) : std::nullopt);
    return variable_list{x, info};
  });
  return {results[0], results[1]};
}

const Op<decltype(ops::krylov_solve)> op{{
    .schema = "krylov_solve(Tensor[] pattern, Tensor values, Tensor b, Tensor? x0, Tensor? M, SymInt[] shape, str "
              "method, float rtol, float atol, int maxiter, int restart, float damp, bool check, float adjoint_rtol, "
              "bool t=False, bool m_t=False) -> (Tensor, Tensor)",
    .forward = forward,
    .on_device = forward_on_device,
    .autograd = autograd,
    .batched = batched,
    .full_precision = true,
}};

}  // namespace

Result ops::krylov_solve(TensorList pattern, const Tensor& values, const Tensor& b, const OptionalTensor& x0,
                         const OptionalTensor& M, SymIntArrayRef shape, c10::string_view method, double rtol,
                         double atol, int64_t maxiter, int64_t restart, double damp, bool check, double adjoint_rtol,
                         bool t, bool m_t) {
  return op(pattern, values, b, x0, M, shape, method, rtol, atol, maxiter, restart, damp, check, adjoint_rtol, t, m_t);
}

}  // namespace gossamer
