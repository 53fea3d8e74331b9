// SPDX-License-Identifier: BSD-3-Clause
// How a device cuts long rows, so that none belongs to one warp alone. A row of more than `longest_row` entries is cut
// into ⌊entries / piece_entries⌋ pieces, counted from its first entry; the last one takes the remainder as well. What
// is found for a piece goes to a place of its own in scratch memory, and a second pass puts the pieces of a row
// together in their order: a row's bits depend on the row alone.
#pragma once
#include <cstdint>

#include <gossamer/kernels/host_device.h>

namespace gossamer::kernels {

inline constexpr int64_t piece_entries = 512, longest_row = 2 * piece_entries;

// Places for the pieces of every pattern with so many entries, whichever its rows: pieces begin at least piece_entries
// apart, so the one that begins among the entries c · piece_entries … (c + 1) · piece_entries - 1, if any, has place c.
// It covers the last of these, because it is not shorter; beyond ⌊nnz / piece_entries⌋ nothing can begin.
GOSSAMER_HD constexpr int64_t piece_places(int64_t nnz) {
  return nnz > longest_row ? nnz / piece_entries : 0;
}

}  // namespace gossamer::kernels
