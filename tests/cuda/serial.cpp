// SPDX-License-Identifier: BSD-3-Clause
// Defines what serial.h declares.
#define GOSSAMER_EXTERN
#include "serial.h"
