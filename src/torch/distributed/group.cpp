// SPDX-License-Identifier: BSD-3-Clause
#include "distributed/group.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <atomic>
#include <numeric>
#include <utility>
#include <vector>

#include "core/op.h"

#ifdef USE_DISTRIBUTED
#include <torch/csrc/distributed/c10d/GroupRegistry.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#endif

namespace gossamer {
namespace distributed {
namespace {

std::atomic<int64_t> bytes = 0;

// A backend knows some types of numbers, and not bfloat16: rows travel as bytes.
Tensor as_bytes(const Tensor& t) {
  const int64_t width = c10::multiply_integers(t.sizes().slice(1)) * static_cast<int64_t>(t.element_size());
  return t.contiguous().view({-1}).view(at::kByte).view({t.size(0), width});
}

}  // namespace

int64_t bytes_sent() {
  return bytes;
}

Tensor Pending::wait() {
  return wait_(std::move(result_));
}

#ifdef USE_DISTRIBUTED

struct Group::State {
  std::string name;
  c10::intrusive_ptr<c10d::ProcessGroup> processes;  // null: this process alone
  int64_t rank = 0, size = 1;
  at::Device device = at::kCPU;  // where the backend takes tensors: the host, if it can

  bool alone() const { return size == 1; }
  Tensor reachable(const Tensor& t) const { return t.is_cpu() ? t.to(device) : t; }
};

Group::Group(std::string_view name) {
  auto state = std::make_shared<State>();
  state->name = name;
  if (!name.empty()) {
    state->processes = c10d::resolve_process_group(state->name);
    state->rank = state->processes->getRank();
    state->size = state->processes->getSize();
    const auto devices = state->processes->getDeviceTypes();
    const auto host = [](const at::Device& device) { return device.is_cpu(); };
    if (!devices.empty() && std::none_of(devices.begin(), devices.end(), host)) state->device = devices.front();
  }
  state_ = std::move(state);
}

Pending Group::all_to_all_begin(const Tensor& in, IntArrayRef send, IntArrayRef recv) const {
  const int64_t mine = rank(), rows = std::accumulate(recv.begin(), recv.end(), int64_t{0});
  auto sizes = in.sizes().vec();
  sizes[0] = rows;
  if (state_->alone()) return {in.clone(), [](Tensor t) { return t; }};
  Tensor from = state_->reachable(as_bytes(in)), into = at::empty({rows, from.size(1)}, from.options());
  auto send_sizes = send.vec(), recv_sizes = recv.vec();
  bytes += (std::accumulate(send.begin(), send.end(), int64_t{0}) - send[mine]) * from.size(1);
  const auto work = state_->processes->all_to_all_single(into, from, recv_sizes, send_sizes);
  return {into, [work, from, sizes, like = in.options()](Tensor t) {
            work->wait();
            return t.view({-1}).view(like.dtype().toScalarType()).view(sizes).to(like.device());
          }};
}

void Group::sum_(Tensor& t) const {
  if (state_->alone()) return;
  std::vector<Tensor> tensors = {state_->reachable(t)};
  state_->processes->allreduce(tensors)->wait();
  if (!tensors[0].is_same(t)) t.copy_(tensors[0]);
}

void Group::max_(Tensor& t) const {
  if (state_->alone()) return;
  std::vector<Tensor> tensors = {state_->reachable(t)};
  c10d::AllreduceOptions options;
  options.reduceOp = c10d::ReduceOp::MAX;
  state_->processes->allreduce(tensors, options)->wait();
  if (!tensors[0].is_same(t)) t.copy_(tensors[0]);
}

#else

struct Group::State {
  std::string name;
  int64_t rank = 0, size = 1;
};

Group::Group(std::string_view name) : state_(std::make_shared<State>()) {
  TORCH_CHECK_NOT_IMPLEMENTED(name.empty(),
                              "gossamer.distributed: this build of torch has no torch.distributed, so "
                              "there is no group \"",
                              name, "\"");
}

Pending Group::all_to_all_begin(const Tensor& in, IntArrayRef, IntArrayRef) const {
  return {in.clone(), [](Tensor t) { return t; }};
}
void Group::sum_(Tensor&) const {}
void Group::max_(Tensor&) const {}

#endif

int64_t Group::rank() const {
  return state_->rank;
}
int64_t Group::size() const {
  return state_->size;
}
const std::string& Group::name() const {
  return state_->name;
}

Tensor Group::all_to_all(const Tensor& in, IntArrayRef send, IntArrayRef recv) const {
  return all_to_all_begin(in, send, recv).wait();
}

// What each rank says to all is a sum, of bytes, in which all others have zeros: for a few numbers no slower than a
// gather, and exact.
Tensor Group::all_gather(const Tensor& t) const {
  auto sizes = t.sizes().vec();
  sizes.insert(sizes.begin(), size());
  const Tensor mine = as_bytes(t.unsqueeze(0));
  Tensor all = at::zeros({size(), mine.size(1)}, mine.options());
  all.select(0, rank()).copy_(mine[0]);
  sum_(all);
  return all.view({-1}).view(t.scalar_type()).view(sizes);
}

// One number where nobody has anything to say; the text follows only where somebody has.
void Group::agree(const std::string& error) const {
  Tensor first = at::zeros({2}, at::kLong);  // size - rank of the first that has an error, and the longest text
  if (!error.empty()) first[0] = size() - rank(), first[1] = static_cast<int64_t>(error.size());
  max_(first);
  const int64_t* said = first.const_data_ptr<int64_t>();
  if (said[0] == 0) return;
  const int64_t speaker = size() - said[0];
  Tensor text = at::zeros({said[1]}, at::kLong);
  if (rank() == speaker)
    for (size_t k = 0; k < error.size(); ++k)
      text.mutable_data_ptr<int64_t>()[k] = static_cast<unsigned char>(error[k]);
  sum_(text);
  std::string message;
  for (int64_t k = 0; k < said[1]; ++k)
    if (const auto c = static_cast<char>(text.const_data_ptr<int64_t>()[k])) message += c;
  TORCH_CHECK_VALUE(size() > 1, message);
  TORCH_CHECK_VALUE(false, "rank ", speaker, ": ", message);
}

namespace {
const Composites composites =
    Composites().def("distributed_bytes_sent() -> int", static_cast<int64_t (*)()>(bytes_sent));
}

}  // namespace distributed
}  // namespace gossamer
