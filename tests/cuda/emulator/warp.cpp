// SPDX-License-Identifier: BSD-3-Clause
// Warp collectives: lanes meet, exchange words, and go on. A collective is complete when every lane of its mask has
// arrived; lanes that a short last warp never had do not count.
#include "grid.h"
#include "sanitizer.h"

namespace emulator {

static bool has(unsigned lanes, unsigned lane) {
  return lanes >> lane & 1;
}

// What lane `lane` takes out of the collective.
static Collected result(const Warp& warp, const Pending& met, unsigned lane) {
  const Thread& me = *warp.lanes[lane];
  Collected out{{}, 0, met.arrived};
  if (met.op == Op::shuffle) {
    if (!has(met.arrived, me.source)) fail("shuffle reads a lane that does not take part");
    out.value = warp.lanes[me.source]->value;
  } else if (met.op != Op::sync) {
    for (unsigned k = 0; k < 32; ++k) {
      if (!has(met.arrived, k)) continue;
      const Word& word = warp.lanes[k]->value;
      const bool agrees = met.op == Op::ballot ? word.low != 0 : word.low == me.value.low && word.high == me.value.high;
      out.bits |= static_cast<unsigned>(agrees) << k;
    }
  }
  return out;
}

static void complete_if_all_here(Warp& warp, unsigned which) {
  const Pending met = warp.pending[which];
  if (met.arrived != (met.mask & warp.born)) return;
  warp.pending[which] = warp.pending[--warp.pendings];
  Collected out[32];
  for (unsigned k = 0; k < 32; ++k)
    if (has(met.arrived, k)) out[k] = result(warp, met, k);
  for (unsigned k = 0; k < 32; ++k) {
    if (!has(met.arrived, k)) continue;
    Thread& lane = *warp.lanes[k];
    lane.value = out[k].value;
    lane.bits = out[k].bits;
    lane.lanes = out[k].lanes;
    running_grid->make_ready(&lane);
  }
  if (met.op == Op::sync) ++warp.synced;
  ++warp.met;
  ++stats.collectives;
  stats.shuffles += met.op == Op::shuffle;
}

// The pending collective this lane joins, opened if it is the first to arrive.
static unsigned join(Warp& warp, Op op, unsigned mask) {
  for (unsigned k = 0; k < warp.pendings; ++k) {
    if (!(warp.pending[k].mask & mask)) continue;
    if (warp.pending[k].mask != mask) fail("warp collective: lanes disagree about the mask");
    if (warp.pending[k].op != op) fail("warp collective: lanes are in different operations");
    return k;
  }
  warp.pending[warp.pendings] = {op, mask, 0};
  return warp.pendings++;
}

Collected collective(Op op, unsigned mask, Word value, unsigned source) {
  Thread& me = *running;
  Warp& warp = *me.warp;
  if (!has(mask, me.lane)) fail("warp collective called by a lane outside its own mask");
  if (mask & warp.born & ~warp.live) fail("warp collective names a lane that has returned");
  const unsigned which = join(warp, op, mask);
  me.value = value;
  me.source = source;
  me.state = State::in_collective;
  warp.pending[which].arrived |= 1u << me.lane;
  // Only __syncwarp orders memory; shuffles and votes do not (CUDA C++ Programming Guide, warp functions).
  char* phase = &warp.phase[warp.synced % 2];
  if (op == Op::sync) sanitizer::release(phase);
  complete_if_all_here(warp, which);
  leave();
  if (op == Op::sync) sanitizer::acquire(phase);
  return {me.value, me.bits, me.lanes};
}

}  // namespace emulator
