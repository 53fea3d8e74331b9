// SPDX-License-Identifier: BSD-3-Clause
// The smallest process group: what a rank says to another lies in a store, under a number that both count.
#pragma once
#include <torch/torch.h>
#include <torch/csrc/distributed/c10d/GroupRegistry.hpp>
#include <torch/csrc/distributed/c10d/HashStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>

#include <string>
#include <vector>

class StoreBackend : public c10d::Backend {
 public:
  StoreBackend(c10::intrusive_ptr<c10d::Store> store, int rank, int size)
      : Backend(rank, size), store_(std::move(store)) {}

  const std::string getBackendName() const override { return "store"; }

  c10::intrusive_ptr<c10d::Work> alltoall_base(at::Tensor& out, at::Tensor& in, std::vector<int64_t>& out_sizes,
                                               std::vector<int64_t>& in_sizes, const c10d::AllToAllOptions&) override {
    ++calls_;
    const auto parts = in.split_with_sizes(in_sizes), places = out.split_with_sizes(out_sizes);
    for (int r = 0; r < size_; ++r) say(r, parts[r]);
    for (int r = 0; r < size_; ++r) places[r].copy_(hear(r, places[r]));
    return c10::make_intrusive<Done>();
  }

  c10::intrusive_ptr<c10d::Work> allreduce(std::vector<at::Tensor>& tensors,
                                           const c10d::AllreduceOptions& options) override {
    ++calls_;
    at::Tensor& t = tensors[0];
    for (int r = 0; r < size_; ++r) say(r, t);
    at::Tensor total = hear(0, t);
    for (int r = 1; r < size_; ++r)
      total = options.reduceOp == c10d::ReduceOp::MAX ? at::maximum(total, hear(r, t)) : total + hear(r, t);
    t.copy_(total);
    return c10::make_intrusive<Done>();
  }

 private:
  struct Done : c10d::Work {
    bool isCompleted() override { return true; }
    bool wait(std::chrono::milliseconds) override { return true; }
  };

  std::string key(int from, int to) const {
    return std::to_string(calls_) + "/" + std::to_string(from) + "/" + std::to_string(to);
  }
  void say(int to, const at::Tensor& t) {
    const at::Tensor bytes = t.contiguous().view({-1}).view(at::kByte);
    const uint8_t* first = bytes.const_data_ptr<uint8_t>();
    store_->set(key(rank_, to), std::vector<uint8_t>(first, first + bytes.numel()));
  }
  at::Tensor hear(int from, const at::Tensor& like) {
    const std::vector<uint8_t> said = store_->get(key(from, rank_));
    at::Tensor t = at::empty({static_cast<int64_t>(said.size())}, at::kByte);
    std::copy(said.begin(), said.end(), t.mutable_data_ptr<uint8_t>());
    return t.view(like.scalar_type()).view(like.sizes());
  }

  c10::intrusive_ptr<c10d::Store> store_;
  int64_t calls_ = 0;
};

// A group of this thread's own name, for as long as it lives.
class StoreGroup {
 public:
  StoreGroup(const c10::intrusive_ptr<c10d::Store>& store, int rank, int size)
      : name("rank" + std::to_string(rank)), group_(c10::make_intrusive<c10d::ProcessGroup>(store, rank, size)) {
    const auto kind = c10d::ProcessGroup::BackendType::CUSTOM;
    group_->setBackend(c10::DeviceType::CPU, kind, c10::make_intrusive<StoreBackend>(store, rank, size));
    group_->setDefaultBackend(kind);
    c10d::register_process_group(name, group_);
  }
  ~StoreGroup() { c10d::unregister_process_group(name); }

  const std::string name;

 private:
  const c10::intrusive_ptr<c10d::ProcessGroup> group_;  // which torch's registry does not keep
};
