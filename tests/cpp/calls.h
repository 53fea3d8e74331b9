// SPDX-License-Identifier: BSD-3-Clause
// How often an op is called, for tests of what is computed once.
#pragma once
#include <ATen/record_function.h>

#include <memory>
#include <string>

namespace calls {

// What is counted on this thread; torch's observers are plain functions, so it has to be found here.
inline thread_local std::string counted;
inline thread_local int count = 0;

inline std::unique_ptr<at::ObserverContext> observe(const at::RecordFunction& function) {
  if (counted == function.name()) ++count;
  return nullptr;
}

}  // namespace calls

// The calls of an op, such as "aten::linear", that f makes on this thread.
template <class F>
int calls_of(const std::string& op, const F& f) {
  calls::counted = op, calls::count = 0;
  const auto handle = at::addThreadLocalCallback(at::RecordFunctionCallback(calls::observe));
  f();
  at::removeCallback(handle);
  return calls::count;
}
