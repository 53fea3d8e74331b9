// SPDX-License-Identifier: BSD-3-Clause
// Matrices whose rows are on many processes, over torch.distributed.
//
// The contract: every rank calls the same functions in the same order; what is differentiated is the sum over the ranks
// of what each of them calls backward on.
//
//   // The group is the caller's, by its name in torch's registry; "" is this process alone.
//   auto A = gossamer::distributed::scatter(gossamer::poisson({100, 100}), "");
//   auto x = torch::ones({A.local_shape()[1]}).requires_grad_();       // this rank's rows of x
//   auto y = A.matmul(x);                                              // this rank's rows of A x
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include <gossamer/sparse_matrix.h>

namespace gossamer {

namespace ops {

// A plan, as the ops below take it: {indptr, indices, send_rows, interior, runs} of this rank's block, and with the
// transpose the same of Aᵀ's block and {out, into, quarters}. counts: {own rows, own columns}, then one number a rank
// of each: rows of X sent, received, and with the transpose both of Aᵀ and of the entries that are routed to it, then
// {entries, columns} of all ranks. src/torch/distributed/exchange.h says what they mean.

// From this rank's rows, with columns as all ranks number them: the plan without the transpose, and the counts.
// Rank r owns the columns col_offsets[r] … col_offsets[r + 1] - 1. All ranks call it.
std::tuple<std::vector<Tensor>, std::vector<int64_t>> distributed_plan(const Tensor& indptr, const Tensor& columns,
                                                                       const Tensor& row_offsets,
                                                                       const Tensor& col_offsets,
                                                                       std::string_view group);
// The same with the transpose. row_keys: one number for each own row; a column of A is added up in their order. All
// ranks call it.
std::tuple<std::vector<Tensor>, std::vector<int64_t>> distributed_transpose(TensorList plan, at::IntArrayRef counts,
                                                                            const Tensor& row_keys,
                                                                            std::string_view group);
// The plan of Aᵀ, whose transpose is A, from a plan with the transpose. No other rank is asked.
std::tuple<std::vector<Tensor>, std::vector<int64_t>> distributed_swap(TensorList plan, at::IntArrayRef counts);

// Rows of x from their owners: row index[k] of x is sent, send[r] of them to rank r; what comes, in the order of ranks.
Tensor halo(const Tensor& x, const Tensor& index, at::IntArrayRef send, at::IntArrayRef recv, std::string_view group);
// Its adjoint: rows go back to their owners and are added there, in the order of ranks, to zeros of so many rows.
Tensor halo_sum(const Tensor& g, const Tensor& index, at::IntArrayRef send, at::IntArrayRef recv, int64_t rows,
                std::string_view group);
// Values of A's entries to where Aᵀ has them, or, with `back`, the other way.
Tensor route(const Tensor& values, const Tensor& out, const Tensor& into, at::IntArrayRef send, at::IntArrayRef recv,
             bool back, std::string_view group);

// Y = A X, or Aᵀ X if t: own rows of X in, own rows of Y out. `halo`: that of X, if it is at hand; it is fetched else.
// keep_halo: the halo is kept for the backward.
Tensor spmm_rows(TensorList plan, at::IntArrayRef counts, const Tensor& values, const Tensor& X, bool t,
                 const std::optional<Tensor>& halo, bool keep_halo, std::string_view group);
// (U Vᵀ) on this rank's entries, from own rows of U and V.
Tensor sddmm_rows(TensorList plan, at::IntArrayRef counts, const Tensor& U, const Tensor& V,
                  const std::optional<Tensor>& halo, bool keep_halo, std::string_view group);

// One rank's rows of a matrix that every rank has, row i being owned by rank owners[i], and columns likewise:
// {entries, indptr, columns, {row_offsets, col_offsets}, {row_keys, col_keys}}.
std::tuple<Tensor, Tensor, Tensor, std::vector<Tensor>, std::vector<Tensor>> distributed_part(
    const Tensor& indptr, const Tensor& indices, const Tensor& owners, const Tensor& column_owners, int64_t ranks,
    int64_t rank);

}  // namespace ops

// This rank's rows of a sparse matrix, and the plan by which it gets rows of others. Copies share everything. In A x, x
// has this rank's rows of the operand, local_shape()[1] of them, and the result this rank's rows of the product, with
// the bits of one process. What is made when first needed, the transpose's part, is made by all ranks together.
class DistributedMatrix {
 public:
  Pattern pattern() const;  // the block: own columns, then those of the halo; not sorted in a row
  Tensor values() const;    // of this rank's entries, (nnz,) or (nnz, H)
  Shape shape() const;      // of the whole matrix
  Shape local_shape() const;
  Tensor offsets() const;         // rank r owns the rows offsets()[r] … offsets()[r + 1] - 1
  Tensor column_offsets() const;  // the same of the columns
  Tensor row_keys() const;        // the original numbers of this rank's rows
  Tensor col_keys() const;        // and columns
  const std::string& group() const;
  int64_t nnz() const { return pattern().nnz(); }  // of this rank
  at::ScalarType dtype() const { return values_.scalar_type(); }
  at::Device device() const { return values_.device(); }
  std::string repr() const;

  bool requires_grad() const { return values_.requires_grad(); }
  DistributedMatrix requires_grad_(bool on = true) const;
  std::optional<DistributedMatrix> grad() const;  // on the same pattern; empty before a backward
  DistributedMatrix detach() const { return with_values(values().detach()); }
  DistributedMatrix clone() const { return with_values(values().clone()); }
  DistributedMatrix with_values(Tensor values) const;
  DistributedMatrix to(at::ScalarType dtype) const { return with_values(values().to(dtype)); }
  DistributedMatrix T() const;               // costs nothing until its values are asked for
  const DistributedMatrix& prepare() const;  // with all that gradients and transposes need
  bool keep_halo = false;  // whether the halo of x is kept for the gradient of the values; it is fetched again else

  Tensor matmul(const Tensor& X) const;
  Tensor halo(const Tensor& x) const;  // (own columns + halo, …), differentiable

  // Of the own rows alone.
  DistributedMatrix abs() const { return with_values(values().abs()); }
  DistributedMatrix exp() const { return with_values(values().exp()); }
  DistributedMatrix conj() const { return with_values(values().conj()); }
  DistributedMatrix map(const std::function<Tensor(const Tensor&)>& f) const { return with_values(f(values())); }
  DistributedMatrix pow(double p) const;
  DistributedMatrix scale_rows(const Tensor& d) const;
  DistributedMatrix scale_cols(const Tensor& d) const;  // the halo of d is fetched
  DistributedMatrix row_softmax() const;
  Tensor sum(int64_t dim = 1) const;  // of each own row
  Tensor row_sum() const { return sum(1); }
  Tensor diagonal() const;  // A[i, i] of the own rows; of matrices whose rows and columns are owned alike

  struct Exchange;
  static DistributedMatrix adopt(std::shared_ptr<Exchange> exchange, Tensor values);

 private:
  friend Tensor spmm(const DistributedMatrix&, const Tensor&, bool);
  friend DistributedMatrix sddmm(const DistributedMatrix&, const Tensor&, const Tensor&);
  SparseMatrix local() const { return SparseMatrix(pattern(), values()); }

  std::shared_ptr<Exchange> exchange_;
  Tensor values_;
  bool transposed_ = false;  // values_ are those of the original
};

// Own rows of A X, or of Aᵀ X.
Tensor spmm(const DistributedMatrix& A, const Tensor& X, bool transpose = false);
// (U Vᵀ) on this rank's entries.
DistributedMatrix sddmm(const DistributedMatrix& A, const Tensor& U, const Tensor& V);

// A s, entry by entry, s being a tensor of one number, or of one a head; A / s; -A; and with a matrix on the same
// pattern, which with_values makes.
DistributedMatrix operator*(const DistributedMatrix& A, const Tensor& s);
DistributedMatrix operator*(const DistributedMatrix& A, double s);
DistributedMatrix operator/(const DistributedMatrix& A, double s);
DistributedMatrix operator-(const DistributedMatrix& A);
DistributedMatrix operator+(const DistributedMatrix& A, const DistributedMatrix& B);
DistributedMatrix operator-(const DistributedMatrix& A, const DistributedMatrix& B);

namespace distributed {

// What from_rows may be told: the original numbers of own rows and columns, and who owns which columns (as the rows
// are, if nothing is said).
struct RowsOptions {
  std::optional<Tensor> keys = {}, column_offsets = {}, column_keys = {};
};

// A matrix from this rank's rows, offsets[r] … offsets[r + 1] - 1 for rank r; columns as all ranks number them. `group`
// is a name in torch's registry; "" is this process alone. All ranks call it.
DistributedMatrix from_rows(const Tensor& indptr, const Tensor& columns, const Tensor& values, const Tensor& offsets,
                            Shape shape, const std::string& group, const RowsOptions& options = {});

// This rank's rows of a matrix that every rank has. parts: the owner of each row; equal ranges without it.
DistributedMatrix scatter(const SparseMatrix& A, const std::string& group, const std::optional<Tensor>& parts = {},
                          const std::optional<Tensor>& column_parts = {});

}  // namespace distributed

}  // namespace gossamer

// ---- data by parts
namespace gossamer::distributed {

// Which of `parts` processes each row goes to, (rows,) int64: balanced by entries + 1. "contiguous": ranges of rows.
// "metis": few neighbours between processes, for square matrices; it wants libmetis. "auto": METIS where it is there
// and the matrix is square.
Tensor partition(const Pattern& A, int64_t parts, const std::string& method = "auto");

using NamedTensors = std::vector<std::pair<std::string, Tensor>>;

// A, and tensors of (rows, …), to part-0.npz, part-1.npz, … and plan.json in a folder, which load and Python read.
// parts: (rows,) integers, the process of each row; rows of X go with those of a square A, else by column_parts
// (columns,) or by ranges of equal length. Each file appears whole or not at all, the plan last; a part has up to 4
// GiB.
void save(const SparseMatrix& A, const std::string& folder, const Tensor& parts, const NamedTensors& rows = {},
          const std::optional<Tensor>& column_parts = {});

// What save or Python wrote, each process its own part: the matrix, and the own rows of what was saved beside it. There
// must be as many processes as parts. Nothing in the files is trusted; what is wrong with one of them is thrown on
// every rank and names the file. All ranks call it.
std::pair<DistributedMatrix, NamedTensors> load(const std::string& folder, const std::string& group = "");

// All rows of what each process has its own rows t of, in their original order, on every rank or, with `rank`, on that
// one, where others get none. t goes with the rows of A; with its columns, by A.T(). Differentiable. All ranks call it.
Tensor gather(const Tensor& t, const DistributedMatrix& A, std::optional<int64_t> rank = {});

}  // namespace gossamer::distributed
