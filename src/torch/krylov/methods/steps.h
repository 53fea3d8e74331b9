// SPDX-License-Identifier: BSD-3-Clause
// A method as a coroutine: it reads like the textbook, and stops wherever it needs a product,
//
//   const Tensor q = co_await run.A(p);
//
// so that whoever drives it may multiply as he can: by a kernel, by a function of C++, or in Python.
#pragma once
#include <ATen/core/Tensor.h>

#include <coroutine>
#include <exception>
#include <utility>
#include <vector>

namespace gossamer::krylov {

using at::Tensor;

// What a method asks for: a product with the matrix, with its transpose or with the preconditioner; `report`: nothing,
// an iteration is done; `done`: the solution is there.
enum class Ask : int64_t { done = 0, A = 1, At = 2, M = 3, report = 4 };

class Steps {
 public:
  struct promise_type;
  using Handle = std::coroutine_handle<promise_type>;

  struct promise_type {
    Ask ask = Ask::done;
    Tensor question, answer;
    Steps* part = nullptr;  // a coroutine that this one waits for
    std::exception_ptr error;

    Steps get_return_object() { return Steps(Handle::from_promise(*this)); }
    std::suspend_always initial_suspend() noexcept { return {}; }
    std::suspend_always final_suspend() noexcept { return {}; }
    void return_void() {}
    void unhandled_exception() { error = std::current_exception(); }
  };

  explicit Steps(Handle handle) : handle_(handle) {}
  Steps(Steps&& other) noexcept : handle_(std::exchange(other.handle_, {})) {}
  Steps& operator=(Steps&&) = delete;
  ~Steps() {
    if (handle_) handle_.destroy();
  }

  // Goes on with the answer to the last question until the next one, which is left in `question`.
  Ask next(const Tensor& answer, Tensor& question) {
    auto& promise = handle_.promise();
    if (handle_.done()) return Ask::done;
    if (promise.part) {
      if (const Ask ask = promise.part->next(answer, question); ask != Ask::done) return ask;
      promise.part = nullptr;
    }
    promise.answer = answer;
    handle_.resume();
    if (promise.error) std::rethrow_exception(promise.error);
    if (handle_.done()) return Ask::done;
    if (promise.part) return next({}, question);
    question = std::move(promise.question);
    return promise.ask;
  }

  // co_await another coroutine: do all of it.
  bool await_ready() const { return false; }
  void await_suspend(Handle waiting) { waiting.promise().part = this; }
  void await_resume() const {}

 private:
  Handle handle_;
};

// co_await Question: the driver's answer; the question itself comes back at once if nobody needs to be asked.
struct Question {
  Ask ask;
  Tensor about;
  bool trivial = false;
  Steps::Handle waiting = {};

  bool await_ready() const { return trivial; }
  void await_suspend(Steps::Handle handle) {
    waiting = handle;
    handle.promise().ask = ask;
    handle.promise().question = about;
  }
  Tensor await_resume() { return trivial ? about : std::move(waiting.promise().answer); }
};

}  // namespace gossamer::krylov
