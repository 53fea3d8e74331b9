// SPDX-License-Identifier: BSD-3-Clause
// What an error says, for tests of errors.
#pragma once
#include <c10/util/Exception.h>

#include <string>

template <class F>
std::string message(const F& f) {
  try {
    f();
  } catch (const c10::Error& e) {
    return e.what_without_backtrace();
  }
  return "no error";
}
