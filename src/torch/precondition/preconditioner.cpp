// SPDX-License-Identifier: BSD-3-Clause
// Preconditioners as handles. Applying one is written in public ops, so it needs no derivative of its own.
#include <gossamer/preconditioner.h>

#include "core/op.h"
#include "precondition/matrix.h"
#include "solve/handles.h"

namespace gossamer {

Tensor ops::preconditioner_handle(linalg::PreconditionerPtr M) {
  return handle_of<linalg::Preconditioner>({std::move(M)}, {});
}

linalg::PreconditionerPtr ops::preconditioner_of(const Tensor& handle) {
  return object_of<linalg::Preconditioner>(handle);
}

Tensor ops::precondition(const Tensor& handle, const Tensor& r, bool t) {
  const auto M = preconditioner_of(handle);
  TORCH_CHECK_VALUE(r.dim() >= 1 && r.dim() <= 2 && r.size(0) == M->size(), "precondition: r must be (", M->size(),
                    ",) or (", M->size(), ", k), not ", shape_text(r));
  return M->apply(r, t);
}

static const Composites composites =
    Composites().def("precondition(Tensor handle, Tensor r, bool t=False) -> Tensor", ops::precondition);

}  // namespace gossamer
