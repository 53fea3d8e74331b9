// SPDX-License-Identifier: BSD-3-Clause
// All rows, in their original order, on every rank or on one: a halo that is everything.
#include <ATen/ATen.h>
#include <gossamer/distributed.h>

#include "core/csr.h"
#include "core/op.h"
#include "distributed/exchange.h"

namespace gossamer::distributed {
namespace {

Tensor gather_rows(const Tensor& t, const Tensor& keys, int64_t total, std::optional<int64_t> only,
                   std::string_view name) {
  const Group group(name);
  const int64_t p = group.size(), me = group.rank();
  const std::string common = "gather: t " + row_text(t) + " of " + std::to_string(total) + " rows, to " +
                             (only ? "rank " + std::to_string(*only) : "all");
  group.check_on_all(common, [&] {
    TORCH_CHECK_TYPE(keys.scalar_type() == at::kLong && keys.dim() == 1 && keys.is_cpu(),
                     "gather: keys must be a vector of int64 on the host");
    TORCH_CHECK_VALUE(t.dim() > 0 && t.size(0) == keys.size(0), "gather: t has shape ", shape_text(t),
                      ", but this rank owns ", keys.size(0), " rows");
    TORCH_CHECK_VALUE(total >= 0, "gather: there cannot be ", total, " rows in all");
    TORCH_CHECK_VALUE(!only || (*only >= 0 && *only < p), "gather: rank must be in 0 … ", p - 1, ", not ", *only);
  });
  const int64_t own = keys.size(0);
  const Tensor counts = group.all_gather(at::scalar_tensor(own, at::kLong));
  const auto receives = [&](int64_t rank) { return !only || *only == rank; };
  std::vector<int64_t> send(p), recv(p);
  for (int64_t r = 0; r < p; ++r) {
    send[r] = receives(r) ? own : 0;
    recv[r] = receives(me) ? number_at(counts, r) : 0;
  }
  const Tensor index = at::arange(own, at::kLong).repeat({only ? 1 : p});
  const Tensor all = ops::halo(t, index.to(t.device()), send, recv, name);
  const Tensor all_keys = group.all_to_all(keys.index_select(0, index), send, recv);
  const bool fits =
      !receives(me) || (all_keys.size(0) == total && at::equal(std::get<0>(all_keys.sort()), at::arange(total)));
  group.agree(fits ? "" : "gather: the keys of all ranks are not 0, 1, 2, … once");
  return all.index_select(0, all_keys.argsort().to(t.device()));
}

Tensor gather_op(const Tensor& t, const Tensor& keys, int64_t total, std::optional<int64_t> only,
                 c10::string_view group) {
  return gather_rows(t, keys.contiguous(), total, only, group);
}

const Composites composites =
    Composites().def("distributed_gather(Tensor t, Tensor keys, int total, int? rank, str group) -> Tensor", gather_op);

}  // namespace

Tensor gather(const Tensor& t, const DistributedMatrix& A, std::optional<int64_t> rank) {
  return gather_rows(t, A.row_keys(), A.shape()[0], rank, A.group());
}

}  // namespace gossamer::distributed
