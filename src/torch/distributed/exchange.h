// SPDX-License-Identifier: BSD-3-Clause
// A matrix whose rows are on many processes, as ops see it: this rank's block, and who sends which rows to whom.
//
// Rank r owns some rows of A and some of X (the columns of A). In its block, a column is
//
//   0 … owned - 1                 one of its own
//   owned … owned + halo - 1      one of another rank: the halo, by owner, then in the owner's order
//
// which relabels the entries of a row and never reorders them: the sum over a row is the same sum, bit for bit, for
// every number of ranks. Aᵀ has a block of the same kind on the owner of each column, its rows in the order of the
// original row numbers: what the transpose has in one process. An entry whose column is another's, a cut one, has its
// value sent there.
//
// Ops take all of this as tensors and integers:
//
//   plan     {indptr, indices, send_rows, interior, runs} of A; once the transpose is known, the same of Aᵀ and
//            {out, into, quarters}
//   counts   {own rows, own columns, send, recv}, of which the last two have a number for each rank; with the transpose
//            {send, recv} of Aᵀ, {send, recv} of the route, {entries, columns} of all ranks
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/csr.h"
#include "distributed/group.h"

namespace gossamer::distributed {

using at::IntArrayRef;

// The block of A, or of Aᵀ.
struct Block {
  int64_t rows = 0, owned = 0;  // of Y, and of X without its halo
  Tensor indptr, indices;       // rows + 1, entries
  Tensor send_rows;             // own rows of X for the other ranks, rank by rank; int64
  Tensor interior;              // rows that need no halo, as long ranges: {begin, end, begin, end, …}; int64
  Tensor runs;                  // kernels/runs.h; empty if there are none
  IntArrayRef send, recv;       // rows of X, one number a rank

  int64_t entries() const;
  int64_t halo() const;
  std::vector<Tensor> pattern() const { return {indptr, indices}; }
  template <class I>
  PatternView<I> view() const {
    return tensors({}).view<I>();
  }
  template <class T, class I>
  Csr<T, I> view(const Tensor& values, int64_t heads, const Tensor& perm) const {
    return tensors(perm).view<T, I>(values, heads);
  }
  std::array<SymInt, 2> shape() const { return {rows, owned + halo()}; }

 private:
  PatternTensors tensors(const Tensor& perm) const { return {rows, owned + halo(), indptr, indices, perm, runs}; }
};

// Entry q of Aᵀ's block is entry into[q] of A's, or, from there on, what came from other ranks: into[q] - entries.
struct Route {
  Tensor out;   // the cut entries of A, rank by rank
  Tensor into;  // for each entry of Aᵀ
  IntArrayRef send, recv;
};

// One process makes Aᵀ x of a large matrix by parts of A's rows, whose sums it adds up (kernels::spmv_transposed). The
// quarter of the entries to which each row of A that Aᵀ's block has belongs, to make the same sums.
struct Quarters {
  Tensor of_rows;                 // uint8
  int64_t entries = 0, cols = 0;  // of all ranks: by these it is decided how many parts there are
};

// A plan taken apart, and checked: its lengths at every call, its integers when it is first seen (plan/contents.h). It
// points into `counts`. ranks: those of the group, or 0 if they are not known.
struct Exchange {
  Exchange(const char* op, TensorList plan, IntArrayRef counts, int64_t ranks = 0);
  bool has_transpose() const { return transposed_; }
  const Block& block(bool t) const { return blocks_[t]; }
  // Raises unless the plan has the transpose.
  const Route& route(const char* op) const;
  const Quarters& quarters() const { return quarters_; }
  int64_t balance(const Group& group) const;  // Group::balance of all that is exchanged

 private:
  void take_transpose(const char* op, TensorList plan, IntArrayRef counts, size_t ranks);

  bool transposed_;
  Block blocks_[2];
  Route route_;
  Quarters quarters_;
};

// So many tensors has a block, and so many a plan with the transpose.
constexpr size_t block_tensors = 5, all_tensors = 2 * block_tensors + 3;

// The plan of an op that is about to exchange something: what is wrong with it, or what check(exchange) raises, is
// raised on all ranks.
template <class F>
Exchange agreed(const Group& group, const char* op, TensorList plan, IntArrayRef counts, const std::string& common,
                const F& check) {
  std::optional<Exchange> exchange;
  group.check_on_all(common, [&] {
    check(exchange.emplace(op, plan, counts, group.size()));
    return exchange->balance(group);
  });
  return *exchange;
}

// Whether there are numbers to look at, on whatever device: none is a tracer's, a transform's or on a meta device.
bool has_contents(TensorList tensors);
// How many rows or entries: not negative, and few enough to be added up.
void check_counts(const char* op, IntArrayRef counts);
// An operand must be where the block is, and hold numbers that some kernel knows.
void check_device(const char* op, const Tensor& t, const Block& A);
// A halo that is at hand must be one of X, which `name` names.
void check_halo(const char* op, const Tensor& halo, const char* name, const Tensor& X, const Block& A);

// "float32 (…, 5)": what all ranks must have in common of an operand.
std::string row_text(const Tensor& t);

// Values of A's entries where Aᵀ has them: only those that come from other ranks, in the order in which they come.
Pending cut_values_begin(const Group& group, const Route& route, const Tensor& values);

}  // namespace gossamer::distributed
