// SPDX-License-Identifier: BSD-3-Clause
#include "distributed/plan/contents.h"

#include <ATen/ATen.h>
#include <gossamer/kernels/bounds.h>
#include <gossamer/kernels/runs.h>

#include <algorithm>
#include <mutex>
#include <numeric>
#include <unordered_map>

#include "core/launch.h"

namespace gossamer::distributed {
namespace {

// The memory of a tensor. The weak pointer keeps no numbers alive, only the address from being used again.
struct Piece {
  c10::weak_intrusive_ptr<c10::StorageImpl> storage;
  const void* data;
  int64_t size;
  uint32_t version;
  at::ScalarType type;

  explicit Piece(const Tensor& t)
      : storage(t.storage().getWeakStorageImpl()),
        data(t.const_data_ptr()),
        size(t.size(0)),
        version(t._version()),
        type(t.scalar_type()) {}
  bool is(const Tensor& t) const {
    return storage._unsafe_get_target() == t.storage().unsafeGetStorageImpl() && data == t.const_data_ptr() &&
           size == t.size(0) && version == t._version() && type == t.scalar_type();
  }
};

struct Known {
  std::vector<Piece> pieces;
  std::vector<int64_t> counts;

  bool is(TensorList tensors, IntArrayRef numbers) const {
    return IntArrayRef(counts) == numbers && pieces.size() == tensors.size() &&
           std::equal(pieces.begin(), pieces.end(), tensors.begin(),
                      [](const auto& p, const auto& t) { return p.is(t); });
  }
  bool gone() const {
    return std::any_of(pieces.begin(), pieces.end(), [](const Piece& p) { return p.storage.expired(); });
  }
};

struct Memory {
  std::mutex mutex;
  std::unordered_map<const void*, Known> plans;  // by the storage of the last tensor, which is that of no other plan
  size_t most = 64;                              // when to look for those whose tensors are gone
};

Memory& memory() {
  static auto& kept = *new Memory;  // never destroyed: other threads may end later
  return kept;
}

// Only these can be told apart from what they were: inference tensors have no version, and others more than a size.
bool can_be_known(TensorList tensors) {
  return !tensors.empty() && std::all_of(tensors.begin(), tensors.end(), [](const Tensor& t) {
    return t.dim() == 1 && t.is_contiguous() && !t.is_inference();
  });
}

bool all_below(const Tensor& integers, int64_t limit) {
  const auto [from, end] = std::pair(ptr<int64_t>(integers), ptr<int64_t>(integers) + integers.size(0));
  return std::all_of(from, end, [limit](int64_t i) { return i >= 0 && i < limit; });
}

// perm: of a transpose, through which its values are read; null for A.
template <class I>
void check_block(const char* op, const Block& B, const I* perm) {
  const PatternView<I> A = B.view<I>();
  TORCH_CHECK_INDEX(kernels::in_bounds(torch_pool(), A), op, ": the block of the plan does not fit its shape ", A.rows,
                    " x ", A.cols);
  TORCH_CHECK_INDEX(all_below(B.send_rows, B.owned), op, ": the plan sends a row that is not among the own ", B.owned);
  const auto *range = ptr<int64_t>(B.interior), *last = range + B.interior.size(0);
  TORCH_CHECK_VALUE(range == last || (std::is_sorted(range, last) && range[0] >= 0 && last[-1] <= A.rows), op,
                    ": the interior rows must be ranges of the ", A.rows, " rows");
  for (int64_t k = 0; k < B.interior.size(0); k += 2) {
    const auto own = [&](I j) { return j < B.owned; };
    TORCH_CHECK_VALUE(std::all_of(A.indices + A.indptr[range[k]], A.indices + A.indptr[range[k + 1]], own), op,
                      ": the plan says that rows ", range[k], " to ", range[k + 1], " need no halo, but they do");
  }
  if (A.run_count == 0) return;
  TORCH_CHECK_VALUE(A.runs[0] == 0 && A.runs[A.run_count] == A.rows, op, ": runs must go from row 0 to row ", A.rows);
  for (int64_t k = 0; k < A.run_count; ++k) {
    const int64_t begin = A.runs[k], end = A.runs[k + 1];
    bool same = begin < end && end <= A.rows;
    for (int64_t i = begin + 1; same && i < end; ++i) same = kernels::continues_run(A, perm, begin, i);
    TORCH_CHECK_VALUE(same, op, ": the rows ", begin, " to ", end, " of the plan are no run");
  }
}

// A copy, unless they are on the host.
Block on_host(Block B) {
  for (Tensor* t : {&B.indptr, &B.indices, &B.send_rows, &B.interior, &B.runs}) *t = t->cpu().contiguous();
  return B;
}

template <class I>
void check_all(const char* op, const Exchange& exchange) {
  const Block A = on_host(exchange.block(false));
  check_block<I>(op, A, nullptr);
  if (!exchange.has_transpose()) return;
  const Block T = on_host(exchange.block(true));
  Route route = exchange.route(op);
  route.out = route.out.cpu().contiguous(), route.into = route.into.cpu();
  check_route(op, route, A.entries());
  const I *into = ptr<I>(route.into), *row = ptr<I>(T.indices);
  check_block(op, T, into);
  for (int64_t q = 0; q < T.entries(); ++q)  // interior rows of the transpose read own values alone
    TORCH_CHECK_VALUE((row[q] < T.owned) == (into[q] < A.entries()), op, ": entry ", q,
                      " of the transpose in the plan is of an own row, and its value is not, or the other way");
}

}  // namespace

bool known_to_be_good(TensorList tensors, IntArrayRef counts) {
  if (!can_be_known(tensors)) return false;
  Memory& kept = memory();
  const std::lock_guard lock(kept.mutex);
  const auto found = kept.plans.find(tensors.back().storage().unsafeGetStorageImpl());
  return found != kept.plans.end() && found->second.is(tensors, counts);
}

void remember(TensorList tensors, IntArrayRef counts) {
  if (!can_be_known(tensors)) return;
  Memory& kept = memory();
  const std::lock_guard lock(kept.mutex);
  if (kept.plans.size() >= kept.most) {
    std::erase_if(kept.plans, [](const auto& plan) { return plan.second.gone(); });
    kept.most = 2 * kept.plans.size() + 64;
  }
  Known known{{}, counts.vec()};
  for (const Tensor& t : tensors) known.pieces.emplace_back(t);
  kept.plans.insert_or_assign(tensors.back().storage().unsafeGetStorageImpl(), std::move(known));
}

void check_contents(const char* op, const Exchange& exchange) {
  with_index_type<void>(exchange.block(false).indptr.scalar_type(),
                        [&]<class, class I> { check_all<I>(op, exchange); });
}

void check_route(const char* op, const Route& route, int64_t entries) {
  const int64_t all = entries + std::accumulate(route.recv.begin(), route.recv.end(), int64_t{0});
  TORCH_CHECK_VALUE(route.out.size(0) + route.into.size(0) == all, op, ": the route has ",
                    route.out.size(0) + route.into.size(0), " places for ", all, " entries");
  std::vector<bool> seen(all);
  const auto once = [&](int64_t place, int64_t limit) {
    TORCH_CHECK_INDEX(place >= 0 && place < limit, op, ": the route has place ", place, ", but ", limit, " entries");
    TORCH_CHECK_VALUE(!seen[place], op, ": the route has place ", place, " twice");
    seen[place] = true;
  };
  for (int64_t k = 0; k < route.out.size(0); ++k) once(number_at(route.out, k), entries);
  for (int64_t q = 0; q < route.into.size(0); ++q) once(number_at(route.into, q), all);
}

}  // namespace gossamer::distributed
