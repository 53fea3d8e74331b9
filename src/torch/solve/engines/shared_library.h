// SPDX-License-Identifier: BSD-3-Clause
// A library that is found when the program runs, or not: no header and no linker need to know it.
#pragma once
#include <dlfcn.h>

#include <initializer_list>
#include <string>

namespace gossamer {

// A flag for a library that shall call its own BLAS, not the one torch has loaded. AddressSanitizer refuses it, because
// such a library would also have a malloc of its own.
#ifdef __SANITIZE_ADDRESS__
inline constexpr int own_symbols_first = 0;
#else
inline constexpr int own_symbols_first = RTLD_DEEPBIND;
#endif

// The first of the names that can be loaded; never unloaded. A name without a slash is looked up where the loader
// looks.
class SharedLibrary {
 public:
  explicit SharedLibrary(const std::initializer_list<std::string>& names, int flags = 0) {
    for (const std::string& name : names)
      if (!handle_) handle_ = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL | flags);
  }
  explicit operator bool() const { return handle_ && !incomplete_; }
  void* handle() const { return handle_; }

  // Sets `function` to what the library calls `name`. One that is missing makes the library as good as absent.
  template <class F>
  SharedLibrary& find(const char* name, F*& function) {
    function = handle_ ? reinterpret_cast<F*>(dlsym(handle_, name)) : nullptr;
    incomplete_ = incomplete_ || !function;
    return *this;
  }

 private:
  void* handle_ = nullptr;
  bool incomplete_ = false;
};

}  // namespace gossamer
