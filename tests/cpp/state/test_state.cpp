// SPDX-License-Identifier: BSD-3-Clause
// Random sequences of uses of matrices from C++, beside dense twins: the sister of tests/state, without Python.
// GOSSAMER_STATE says how many steps, GOSSAMER_STATE_SEED where they begin.
#include <gossamer/gossamer.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cstdlib>
#include <iostream>

#include "walk.h"

namespace {

int64_t number(const char* name, int64_t otherwise) {
  const char* text = std::getenv(name);
  return text ? std::atoll(text) : otherwise;
}

}  // namespace

// Every step compares; walks are short enough that a failure can be read.
TEST(State, WalksAgreeWithDenseTwins) {
  const int64_t steps = number("GOSSAMER_STATE", 3000), seed = number("GOSSAMER_STATE_SEED", 1), length = 40;
  int64_t done = 0;
  for (int64_t walk = 0; done < steps; ++walk) {
    Walk machine(static_cast<uint64_t>(seed + walk));
    std::string said;
    for (int64_t k = 0; k < length; ++k, ++done) {
      said += machine.step() + " ";
      ASSERT_EQ(machine.wrong(), "") << "seed " << seed + walk << ": " << said;
    }
  }
  std::cout << "state machine: " << done << " steps from C++, seed " << seed << "\n";
}
