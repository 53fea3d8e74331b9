// SPDX-License-Identifier: BSD-3-Clause
// Golden vectors without Python: export_golden [FILE.npz [FOLDER]] writes every quantity of a two-layer GATv2 on the
// graph of a folder (docs/datasets.md), or on a synthetic one. docs/equations.md has the names and shapes.
#include <gossamer/gossamer.h>
#include <torch/torch.h>

#include <cstdio>

int main(int argc, char** argv) try {
  const std::string file = argc > 1 ? argv[1] : "golden.npz";
  const auto graph = argc > 2 ? gossamer::datasets::load(argv[2])
                              : gossamer::datasets::stochastic_block_model({60, 60, 60}, 0.1, 0.01, {12, 1.0}, 0);
  gossamer::GoldenOptions options;
  options.version = 2;
  options.hidden = {8};
  options.heads = {2, 1};
  const auto arrays = gossamer::golden(graph, options);
  gossamer::write_npz(file, arrays);
  for (const auto& [name, value] : arrays) {
    std::printf("%-20s", name.c_str());
    for (const int64_t size : value.sizes()) std::printf(" %lld", static_cast<long long>(size));
    std::printf("\n");
  }
} catch (const c10::Error& error) {
  std::fprintf(stderr, "export_golden: %s\n", error.what_without_backtrace());
  return 2;
}
