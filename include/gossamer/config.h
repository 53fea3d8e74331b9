// SPDX-License-Identifier: BSD-3-Clause
// What this build is, and what it found on the machine.
#pragma once
#include <string>

#include <gossamer/version.h>

namespace gossamer {

// One "name: value" line each: std::cout << gossamer::show_config() << '\n';
std::string show_config();

}  // namespace gossamer
