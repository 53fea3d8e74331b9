// SPDX-License-Identifier: BSD-3-Clause
// A function y (m,) of x (n,) near x, as its products with vectors: J v by torch's forward mode and vᵀ J by its reverse
// mode, one after the other (vmap is not to be had from C++). Both record gradients as torch's own operations do.
#pragma once
#include <gossamer/jacobian.h>

#include <optional>
#include <string>

namespace gossamer {

class Linearised {
 public:
  using Seeds = std::function<Tensor(int64_t first, int64_t last)>;  // the vectors first … last - 1

  Linearised(std::string op, VectorFunction f, Tensor x);  // throws unless x is a vector of real numbers

  Tensor push(int64_t count, const Seeds& seeds) const;  // J v for each of the vectors, (count, m)
  Tensor pull(int64_t count, const Seeds& seeds) const;  // vᵀ J for each of the vectors, (count, n)
  Linearised at(const Tensor& point) const { return Linearised(op_, f_, point); }
  Linearised expecting(int64_t rows) const;  // the same, which throws unless f gives that many numbers

  const std::string& op() const { return op_; }
  const Tensor& x() const { return x_; }
  int64_t cols() const { return x_.size(0); }

 private:
  Tensor value(const Tensor& x) const;  // f(x), which must be a vector of real numbers

  std::string op_;
  VectorFunction f_;
  Tensor x_;
  std::optional<int64_t> rows_;
};

// The values on a pattern; and the first row in which they do not multiply a random vector as the Jacobian does.
struct CheckedValues {
  Tensor values;
  int64_t wrong = -1;
  bool finite = true;  // in that row
};
CheckedValues jacobian_values(const Linearised& near, const Pattern& P, const std::string& mode, bool check,
                              int64_t seed = 0);

// The Jacobian on the pattern, which is found if there is none and grows where it must, unless it was given.
SparseMatrix jacobian_matrix(const Linearised& near, std::optional<Pattern>& pattern, bool given,
                             const JacobianOptions& options, bool symmetric = false);

// Where entries are at x or at one of points - 1 points near it.
Pattern find_pattern(const Linearised& near, const JacobianPatternOptions& options, bool symmetric);

}  // namespace gossamer
