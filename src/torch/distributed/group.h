// SPDX-License-Identifier: BSD-3-Clause
// The processes that share a matrix.
#pragma once
#include <ATen/core/Tensor.h>

#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>

namespace gossamer::distributed {

using at::IntArrayRef;
using at::Tensor;

// What is under way between processes. It is to be waited for; whoever drops it, because of an exception, leaves the
// buffers to the backend, which holds them until it is done.
class Pending {
 public:
  Pending(Tensor result, std::function<Tensor(Tensor)> wait) : result_(std::move(result)), wait_(std::move(wait)) {}
  Tensor wait();

 private:
  Tensor result_;
  std::function<Tensor(Tensor)> wait_;
};

// The processes by the name that torch gives their group (c10d::resolve_process_group). "" is this process alone: no
// collective is called. All methods but rank, size and name are collectives: every rank calls them, in the same order.
class Group {
 public:
  explicit Group(std::string_view name);
  int64_t rank() const;
  int64_t size() const;
  const std::string& name() const;

  // Rows of `in` to the ranks, send[r] of them to rank r; what comes, recv[r] rows from rank r, in the order of ranks.
  Tensor all_to_all(const Tensor& in, IntArrayRef send, IntArrayRef recv) const;
  Pending all_to_all_begin(const Tensor& in, IntArrayRef send, IntArrayRef recv) const;

  void sum_(Tensor& t) const;  // over the ranks, in place; int64 or floating point
  void max_(Tensor& t) const;
  Tensor all_gather(const Tensor& t) const;  // (size, ...) of tensors that have equal shapes

  // Raises on every rank, as ValueError, the message of the first rank that has one ("" = none):
  // "rank 2: spmm: X must have 5 rows, not 6". `common` is what all ranks must have in common, in words: where two
  // differ, that is the message. One sum of three numbers where all is well.
  void agree(const std::string& error, const std::string& common = {}) const;

  // A number whose sum over the ranks is 0 if each is sent what it expects: send and recv have one number a rank.
  int64_t balance(IntArrayRef send, IntArrayRef recv) const;

  // check() on every rank. What it raises on one, it raises on all, as an error of the same kind. If it returns a
  // number, a balance, their sum must be 0: a rank that waits for rows that nobody sends would wait for ever.
  template <class F>
  void check_on_all(const std::string& common, const F& check) const {
    const auto balance_of = [&]() -> int64_t {
      if constexpr (std::is_void_v<decltype(check())>)
        return check(), 0;
      else
        return check();
    };
    if (size() == 1) return void(balance_of());
    std::exception_ptr error;
    int64_t balance = 0;
    try {
      balance = balance_of();
    } catch (...) {
      error = std::current_exception();
    }
    agree(error, common, balance);
  }

 private:
  void agree(const std::exception_ptr& error, const std::string& common, int64_t balance) const;
  void agree(int64_t kind, const std::string& error, const std::string& common, int64_t balance) const;

  struct State;
  std::shared_ptr<const State> state_;
};

// What this process has sent to others so far: rows of all_to_all, its own not counted. The few numbers of sum_, max_,
// all_gather and agree are not counted either.
int64_t bytes_sent();

}  // namespace gossamer::distributed
