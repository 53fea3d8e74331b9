// SPDX-License-Identifier: BSD-3-Clause
#include "distributed/group.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
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
  return t.resolve_conj().resolve_neg().contiguous().view({-1}).view(at::kByte).view({t.size(0), width});
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
  TORCH_CHECK_VALUE(!state_->alone() || rows == in.size(0), "distributed: a process alone sends ", in.size(0),
                    " rows to itself, but ", rows, " are to come");
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

namespace {

enum Kind : int64_t { none, value, type, index, not_implemented, other, kinds };

void raise(int64_t kind, const std::string& message) {
  TORCH_CHECK_TYPE(kind != type, message);
  TORCH_CHECK_INDEX(kind != index, message);
  TORCH_CHECK_NOT_IMPLEMENTED(kind != not_implemented, message);
  TORCH_CHECK(kind != other, message);
  TORCH_CHECK_VALUE(false, message);
}

// Texts as numbers: the same for every compiler. 40 bits, so that a sum of them over all ranks does not overflow.
int64_t fingerprint(std::string_view text) {
  uint64_t hash = 14695981039346656037u;  // FNV-1a
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211u;
  return static_cast<int64_t>((hash ^ (hash << 20)) >> 24);
}

// That of so many rows from one rank to another.
int64_t fingerprint(int64_t from, int64_t to, int64_t rows) {
  const int64_t all[] = {from, to, rows};
  return fingerprint(std::string_view(reinterpret_cast<const char*>(all), sizeof all));
}

Tensor letters(const std::string& text, int64_t length) {
  Tensor t = at::zeros({length}, at::kByte);
  std::copy(text.begin(), text.end(), t.mutable_data_ptr<uint8_t>());
  return t;
}

std::string text_of(const Tensor& letters) {
  const auto* first = letters.const_data_ptr<uint8_t>();
  return {first, std::find(first, first + letters.numel(), 0)};
}

}  // namespace

int64_t Group::balance(IntArrayRef send, IntArrayRef recv) const {
  int64_t sum = 0;
  for (int64_t other = 0; other < size(); ++other)
    sum += fingerprint(rank(), other, send[other]) - fingerprint(other, rank(), recv[other]);
  return sum;
}

void Group::agree(const std::string& error, const std::string& common) const {
  agree(error.empty() ? none : value, error, common, /*balance=*/0);
}

void Group::agree(const std::exception_ptr& error, const std::string& common, int64_t balance) const {
  if (!error) return agree(none, {}, common, balance);
  try {
    std::rethrow_exception(error);
  } catch (const c10::TypeError& e) {
    agree(type, e.what_without_backtrace(), common, balance);
  } catch (const c10::IndexError& e) {
    agree(index, e.what_without_backtrace(), common, balance);
  } catch (const c10::NotImplementedError& e) {
    agree(not_implemented, e.what_without_backtrace(), common, balance);
  } catch (const c10::ValueError& e) {
    agree(value, e.what_without_backtrace(), common, balance);
  } catch (const c10::Error& e) {
    agree(other, e.what_without_backtrace(), common, balance);
  } catch (const std::exception& e) {
    agree(other, e.what(), common, balance);
  }
}

// Three sums where nobody has anything to say; the texts follow only where somebody has.
void Group::agree(int64_t kind, const std::string& error, const std::string& common, int64_t balance) const {
  const int64_t print = fingerprint(common);
  Tensor said = at::zeros({3}, at::kLong);  // how many have an error, how far prints are from rank 0's, the balance
  auto* numbers = said.mutable_data_ptr<int64_t>();
  numbers[0] = kind != none;
  numbers[1] = (rank() == 0 ? size() * print : 0) - print;
  numbers[2] = balance;
  sum_(said);
  const bool failed = numbers[0] > 0;
  if (!failed && numbers[1] == 0) {
    TORCH_CHECK_VALUE(numbers[2] == 0, "the plans of the ranks are not those of one matrix: what one sends, another ",
                      "does not expect (", common, ")");
    return;
  }
  const std::string& text = failed ? error : common;
  Tensor most = at::zeros({2}, at::kLong);  // the first rank with an error, and its kind; the longest text
  auto* largest = most.mutable_data_ptr<int64_t>();
  largest[0] = kind == none ? 0 : (size() - rank()) * kinds + kind, largest[1] = static_cast<int64_t>(text.size());
  max_(most);
  const Tensor texts = all_gather(letters(text, largest[1]));
  if (failed) {
    const int64_t speaker = size() - largest[0] / kinds;
    const std::string rank = size() > 1 ? "rank " + std::to_string(speaker) + ": " : "";
    raise(largest[0] % kinds, rank + text_of(texts[speaker]));
  }
  const std::string first = text_of(texts[0]);
  for (int64_t r = 1; r < size(); ++r)
    TORCH_CHECK_VALUE(text_of(texts[r]) == first, "all ranks must call the same: rank 0 has ", first, ", but rank ", r,
                      " has ", text_of(texts[r]));
}

namespace {

void agree_op(std::string_view error, std::string_view common, std::string_view group) {
  Group(group).agree(std::string(error), std::string(common));
}

std::tuple<int64_t, int64_t> place_op(std::string_view name) {
  const Group group(name);
  return {group.rank(), group.size()};
}

bool any_op(bool mine, std::string_view group) {
  Tensor any = at::full({1}, static_cast<int64_t>(mine), at::kLong);
  Group(group).max_(any);
  return any.const_data_ptr<int64_t>()[0] > 0;
}

const Composites composites = Composites()
                                  .def("distributed_place(str group) -> (int rank, int size)", place_op)
                                  .def("distributed_any(bool mine, str group) -> bool", any_op)
                                  .def("distributed_bytes_sent() -> int", static_cast<int64_t (*)()>(bytes_sent))
                                  .def("distributed_agree(str error, str common, str group) -> ()", agree_op);

}  // namespace

}  // namespace distributed
}  // namespace gossamer
