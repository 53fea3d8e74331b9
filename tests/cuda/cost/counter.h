// SPDX-License-Identifier: BSD-3-Clause
// Counts what kernels do to memory while the emulator runs them: the requests of warps, the sectors these move, the
// lanes that take part, and the traffic behind models of the caches of two GPUs.
//
// The compiler tells of every load and store (-fsanitize=thread, whose calls loads.cpp answers in place of
// ThreadSanitizer). Lanes run one after the other between two collectives of their warp; what they do at the same place
// in the code, for the same time since the last collective, is one request of the warp, as a GPU would make it.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>

namespace cost {

// What the emulated device has for memory: arrays that begin at multiples of 256 bytes, as cudaMalloc gives them. All
// else that a kernel touches is registers, parameters or shared memory. `reset` frees all arrays at once.
void* allocate(size_t bytes);
void reset();

enum class Kind : uint8_t { load, store, atomic };  // an acquire is an atomic: it must not be answered by a first level

struct Totals {
  uint64_t loads = 0, stores = 0, atomics = 0;  // requests of warps
  uint64_t lanes = 0;                           // that took part, over all requests: 32 a request without divergence
  uint64_t bytes = 0, sectors = 0;              // asked for, an address twice in a request once; moved, 32 bytes each
  uint64_t shared = 0;                          // accesses of lanes to shared memory
  uint64_t first_read = 0, first_written = 0;   // distinct sectors that were read before anything wrote them; written
};

// Everything since the last start. Kernels may be launched several times between the two.
void start();
Totals stop();
// The same as JSON, with the emulator's counts of launches and shuffles and the traffic of each GPU in bytes.
std::string report();

// One lane touches memory, at the place `site` of the code.
void touch(const void* address, size_t bytes, Kind kind, const void* site);

}  // namespace cost
