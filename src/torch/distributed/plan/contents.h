// SPDX-License-Identifier: BSD-3-Clause
// The integers of a plan, which say what is read and written. Ops are called with whatever plan the caller has, so they
// are looked at, O(entries), the first time that a plan is seen. One that was found good is remembered by its memory,
// and by the version that torch counts up when a tensor is changed in place: looking it up takes less than a
// microsecond.
#pragma once
#include "distributed/exchange.h"

namespace gossamer::distributed {

// Raises unless every integer stays in the arrays that it points into.
void check_contents(const char* op, const Exchange& exchange);
// out and into together: each of `entries` own entries, and each that comes, exactly once.
void check_route(const char* op, const Route& route, int64_t entries);

// Whether a check of these tensors and numbers went well before; and that it did now.
bool known_to_be_good(TensorList tensors, IntArrayRef counts);
void remember(TensorList tensors, IntArrayRef counts);

// check(), unless it was well with these tensors and numbers before. Tensors without numbers, of tracers and of meta
// devices, are not checked.
template <class F>
void check_once(TensorList tensors, IntArrayRef counts, const F& check) {
  if (!has_contents(tensors) || known_to_be_good(tensors, counts)) return;
  check();
  remember(tensors, counts);
}

}  // namespace gossamer::distributed
