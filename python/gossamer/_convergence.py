# SPDX-License-Identifier: BSD-3-Clause
"""What an iteration raises that does not arrive."""

import torch

ConvergenceError = torch.linalg.LinAlgError  # type: ignore[attr-defined]
"""An iteration did not reach its tolerance; the message has its steps and how far it came. What torch.linalg raises,
and so what arrives from C++ in a call and in its backward alike."""
