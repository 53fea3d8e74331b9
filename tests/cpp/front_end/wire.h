// SPDX-License-Identifier: BSD-3-Clause
// Functions of the C++ front end as ops, torch.ops.gossamer_cpp.*, which tests/table/front_end.py calls. torch's
// dispatcher knows neither patterns nor matrices: here they travel as lists of tensors,
//
//   a pattern as {shape, indptr, indices} or these and the transpose's three,   a matrix as {values, pattern …}.
#pragma once
#include <ATen/ATen.h>
#include <gossamer/gossamer.h>

#include <type_traits>
#include <utility>
#include <vector>

#include "core/op.h"

namespace gossamer_cpp {

using at::Tensor;
using gossamer::Pattern;
using gossamer::SparseMatrix;

// What travels for a T, how a T is made of it, and back. Numbers, tensors and strings travel as they are.
template <class T>
struct Wire {
  using Type = T;
  static T in(T given) { return given; }
  static T out(T result) { return result; }
};

template <>
struct Wire<Pattern> {
  using Type = at::TensorList;
  static Pattern in(at::TensorList given) {
    const auto* shape = given[0].const_data_ptr<int64_t>();
    return Pattern::adopt(given.slice(1), {shape[0], shape[1]});
  }
  static std::vector<Tensor> out(const Pattern& P) {
    return {at::tensor({P.rows(), P.cols()}, at::kLong), P.indptr(), P.indices()};
  }
};

template <>
struct Wire<SparseMatrix> {
  using Type = at::TensorList;
  static SparseMatrix in(at::TensorList given) { return {Wire<Pattern>::in(given.slice(1)), given[0]}; }
  static std::vector<Tensor> out(const SparseMatrix& A) {
    std::vector<Tensor> result = Wire<Pattern>::out(A.pattern());
    result.insert(result.begin(), A.values());
    return result;
  }
};

template <class First, class Second>
struct Wire<std::pair<First, Second>> {
  static auto out(const std::pair<First, Second>& both) {
    return std::make_tuple(Wire<First>::out(both.first), Wire<Second>::out(both.second));
  }
};

// The ops of one part of the front end. A C++ function with default arguments or overloads is several ops of one name:
// "tril" and "tril.k". Python's call finds the one that fits, as a compiler does.
class Ops {
 public:
  template <class F>
  Ops&& def(const char* name, F function) && {
    return std::move(*this).add(name, +function);
  }

 private:
  template <class R, class... A>
  Ops&& add(const char* name, R (*function)(A...)) {
    std::move(ops_).def(name, [function](typename Wire<std::decay_t<A>>::Type... given) {
      return Wire<R>::out(function(Wire<std::decay_t<A>>::in(given)...));
    });
    return std::move(*this);
  }

  gossamer::Composites ops_{"gossamer_cpp"};
};

}  // namespace gossamer_cpp
