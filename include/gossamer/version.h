// SPDX-License-Identifier: BSD-3-Clause
// The version, for #if. The one place where C++ and CMake have it from; a test holds Python's to it.
#pragma once

#define GOSSAMER_VERSION_MAJOR 0
#define GOSSAMER_VERSION_MINOR 1
#define GOSSAMER_VERSION_PATCH 0
#define GOSSAMER_VERSION "0.1.0"
