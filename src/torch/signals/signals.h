// SPDX-License-Identifier: BSD-3-Clause
// Whether the user has pressed Ctrl-C, for loops that may take seconds. Python leaves functions here that tell; without
// Python a signal does what the program wants.
#pragma once

namespace gossamer {

// Throws then. Some times a second it really asks, so it may be called after every product; only the main thread hears
// of signals.
void throw_if_interrupted();

}  // namespace gossamer
