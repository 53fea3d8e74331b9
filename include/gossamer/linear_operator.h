// SPDX-License-Identifier: BSD-3-Clause
// A matrix that is a function: what it does to a vector, for the iterative solves of krylov.h.
//
//   const LinearOperator A({n, n}, [](const Tensor& x, const std::vector<Tensor>& p) { return p[0] * x; }, {diagonal});
#pragma once
#include <functional>
#include <vector>

#include <gossamer/pattern.h>

namespace gossamer::linalg {

class LinearOperator {
 public:
  using Function = std::function<Tensor(const Tensor& x, const std::vector<Tensor>& params)>;

  // matvec: A x for x (cols,), or (cols, k) if b has columns, in ops of torch or of this library. It must be linear in
  // x. rmatvec: Aᵀ u; without it the transpose is found by differentiating matvec. symmetric: Aᵀ is A. params: what A
  // depends on. Only these get gradients: a tensor that matvec merely captures is a constant.
  LinearOperator(Shape shape, Function matvec, std::vector<Tensor> params = {}, Function rmatvec = {},
                 bool symmetric = false);

  const Shape& shape() const { return shape_; }
  const std::vector<Tensor>& params() const { return params_; }
  bool symmetric() const { return symmetric_; }
  Tensor matvec(const Tensor& x) const;   // A x
  Tensor rmatvec(const Tensor& u) const;  // Aᵀ u
  LinearOperator T() const;

  // A x, or Aᵀ x if t, with these parameters in place of its own.
  Tensor apply(const Tensor& x, const std::vector<Tensor>& params, bool t) const;

 private:
  Shape shape_;
  Function matvec_, rmatvec_;
  std::vector<Tensor> params_;
  bool symmetric_, transposed_ = false;
};

}  // namespace gossamer::linalg
