// SPDX-License-Identifier: BSD-3-Clause
// From a list of tensors to the CSR view a kernel reads, and the O(1) checks every op makes on the way.
// The O(nnz) structure was checked when the pattern was built.
#pragma once
#include <gossamer/kernels/csr.h>

#include <initializer_list>
#include <utility>
#include <vector>

#include <gossamer/pattern.h>

namespace gossamer {

using at::Tensor;
using at::TensorList;
using c10::SymInt;
using c10::SymIntArrayRef;

template <class T>
const T* ptr(const Tensor& t) {
  return static_cast<const T*>(t.const_data_ptr());
}
template <class T>
T* mutable_ptr(const Tensor& t) {
  return static_cast<T*>(t.mutable_data_ptr());
}

// A pattern as an op received it; transposed, it reads A's values through perm.
struct PatternTensors {
  SymInt rows, cols;
  Tensor indptr, indices, perm;
  Tensor runs;  // kernels/runs.h; undefined or empty if none are known

  SymInt nnz() const { return indices.sym_size(0); }

  template <class I>
  PatternView<I> view() const {
    const int64_t run_count = runs.defined() && runs.size(0) > 0 ? runs.size(0) - 1 : 0;
    return {indptr.size(0) - 1,
            cols.expect_int(),
            indices.size(0),
            ptr<I>(indptr),
            ptr<I>(indices),
            run_count,
            run_count ? ptr<I>(runs) : nullptr};
  }
  template <class T, class I>
  Csr<T, I> view(const Tensor& values, int64_t heads) const {
    return {view<I>(), ptr<T>(values), heads, perm.defined() ? ptr<I>(perm) : nullptr};
  }
};

// Checks kinds, lengths and devices of the pattern; takes the transpose if t, building it if the list lacks it.
PatternTensors unpack(const char* op, TensorList pattern, SymIntArrayRef shape, bool t);

// `dense` must have the device of the pattern, a floating-point dtype (or an integer one, for an op that has a way for
// them), and `rows` rows.
void check_dense(const char* op, const char* name, const Tensor& dense, const PatternTensors& A, const SymInt& rows,
                 const char* rows_of_A, bool or_integers = false);
bool is_integral(const Tensor& t);  // integers or booleans
void check_same_dtype(const char* op, const char* name, const Tensor& dense, const char* other_name,
                      const Tensor& other);

// Operands of a product of which one alone holds integers, both in the type of the other; as they are otherwise, for
// products in two precisions are refused.
std::pair<Tensor, Tensor> without_integers(const Tensor& a, const Tensor& b);

// A kernel reads rows any distance apart, but each row in one piece: X itself if it is laid out so, else a copy.
Tensor with_compact_rows(const Tensor& X);

// With a vector per head, sddmm wants its columns spelled out: (n, H) → (n, H, 1) if values have heads.
Tensor with_columns(const Tensor& values, const Tensor& X);

// A vector of int32 or int64: an indptr, indices, a map of positions.
void check_integers(const char* op, const char* name, const Tensor& t);

// The number at a place of an int32 or int64 vector on the host, read where it lies: a tensor's own item() takes longer
// than a small product.
int64_t number_at(const Tensor& vector, int64_t place);
// Whether there is anything to read: a tensor of a device, a tracer or a transform has no numbers on the host.
bool has_numbers(const Tensor& t);

// Each tensor contiguous, for kernels that read it so; undefined ones stay undefined.
std::vector<Tensor> contiguous(const std::vector<Tensor>& tensors);
Tensor empty_for(const Tensor& t);         // of the same shape, contiguous
at::ScalarType sum_type(const Tensor& t);  // in which a kernel adds numbers of t's type
// So many numbers of that type beside t, for a kernel to write and read. Their memory is used again: on a device behind
// the kernel that is queued, on the host by the next result.
Tensor scratch_for(const Tensor& t, int64_t numbers);

// For messages: "(5, 7)".
std::string shape_text(const Tensor& t);

}  // namespace gossamer
