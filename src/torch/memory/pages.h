// SPDX-License-Identifier: BSD-3-Clause
// Memory for large results and scratch on the host.
//
// The first touch of a page costs more than the arithmetic that fills it: 128 MB take 146 ms to write in fresh pages of
// 4 KB, 23 ms in fresh pages of 2 MB, and 5 ms in pages that were written before. An ordinary malloc gives what is
// large back to the system with every free, and so pays the first price in every call. Large tensors of this library
// lie in huge pages instead, and what they leave is kept for the next one.
//
// What is kept is marked free (MADV_FREE): the system takes it back as soon as it needs memory, and nobody else has to
// give up anything for it. It never exceeds a sixteenth of the machine's memory; GOSSAMER_KEEP_PAGES=0 keeps none.
#pragma once
#include <ATen/core/Tensor.h>

namespace gossamer {

// An uninitialised tensor, as at::empty makes it; a large one on the host from kept pages.
at::Tensor empty_result(c10::SymIntArrayRef size, const at::TensorOptions& options);

}  // namespace gossamer
