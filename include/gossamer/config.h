// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <string>

namespace gossamer::ops {

// What this build is and found, one "name: value" line each.
std::string show_config();

}  // namespace gossamer::ops
