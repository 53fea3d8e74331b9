// SPDX-License-Identifier: BSD-3-Clause
// The choice of the engine that factors a matrix.
#include "solve/engines/engine.h"

#include <c10/util/Exception.h>
#include <gossamer/kernels/exec.h>

#include <algorithm>
#include <array>
#include <cstdlib>

#include "solve/device/cudss.h"

namespace gossamer {
namespace {

constexpr std::array all = {&multifrontal, &eigen, &cholmod, &umfpack, &pardiso};

constexpr const char* ours_on_devices = "device";  // the name of our own kernels for CUDA

bool is_for_devices(const std::string& name) {
  return name == ours_on_devices || name == "cudss";
}

// The name that is given, or what GOSSAMER_ENGINE says for "auto".
std::string name_of(const std::string& wanted) {
  const char* variable = std::getenv("GOSSAMER_ENGINE");
  return wanted == "auto" && variable && *variable ? variable : wanted;
}

const Engine& engine_named(const std::string& name) {
  TORCH_CHECK_VALUE(!is_for_devices(name), "factorize: the engine \"", name, "\" is for matrices on a CUDA device");
  std::string names;
  for (const Engine* engine : all) {
    const bool installed = !engine->version().empty();
    if (name == engine->name && installed) return *engine;
    TORCH_CHECK_VALUE(name != engine->name, "factorize: the engine \"", name, "\" is not installed");
    names += std::string(", \"") + engine->name + "\"";
  }
  TORCH_CHECK_VALUE(false, "factorize: engine must be \"auto\"", names, ", \"device\", \"cudss\", not \"", name, "\"");
}

}  // namespace

void EngineFactor::solve_rows(int64_t n, double* x, int64_t columns, bool t) const {
  if (columns == 1) return solve(x, 1, t);
  std::vector<double> by_columns(n * columns);
  for (int64_t i = 0; i < n; ++i)
    for (int64_t c = 0; c < columns; ++c) by_columns[c * n + i] = x[i * columns + c];
  solve(by_columns.data(), columns, t);
  for (int64_t i = 0; i < n; ++i)
    for (int64_t c = 0; c < columns; ++c) x[i * columns + c] = by_columns[c * n + i];
}

int64_t EngineFactor::lost_pivot(int64_t n) const {
  double most = 0;
  for (int64_t k = 0; k < n; ++k) most = std::max(most, pivot(k));
  for (int64_t k = 0; k < n; ++k)
    if (!(pivot(k) > rounding_of_pivots * most)) return k;
  return -1;
}

// What PARDISO's LU gains depends on the multiplications a row: 5 000 on a 2-D grid of 300², 40 000 on a 3-D grid of
// 20³. It is by dense blocks and Eigen's is not, which shows soon. Our Cholesky is faster than PARDISO's, whose
// ordering it takes where that is better (ordering.h). CHOLMOD and UMFPACK must be asked for by name: with Debian's
// plain BLAS they were slower on all grids. Measured in docs/linalg.md.
std::vector<const Engine*> engines_for(FactorKind kind, const std::string& wanted,
                                       const std::function<double()>& multiplications_a_row) {
  constexpr double least_work = 1e4;
  std::string name = name_of(wanted);
  if (wanted == "auto" && is_for_devices(name)) name = "auto";  // what the variable says of devices is not for the host
  std::vector<const Engine*> engines;
  if (name != "auto") {
    const Engine& engine = engine_named(name);
    if (engine.has(kind)) engines.push_back(&engine);
  } else {
    if (kind == FactorKind::lu && pardiso.has(kind) && multiplications_a_row() >= least_work)
      engines.push_back(&pardiso);
  }
  const Engine* always_there = kind == FactorKind::lu ? &eigen : &multifrontal;
  if (engines.empty() || engines.back() != always_there) engines.push_back(always_there);
  return engines;
}

std::string device_engine(const std::string& wanted) {
  const std::string name = name_of(wanted);
  const bool is_ours = name == ours_on_devices, is_cudss = name == "cudss";
  TORCH_CHECK_VALUE(!is_ours || &cuda_linked != nullptr, "factorize: this build of gossamer has no CUDA kernels");
  TORCH_CHECK_VALUE(!is_cudss || !cudss_version().empty(), "factorize: the engine \"cudss\" is not installed");
  if (is_ours || is_cudss) return name;
  return name == "auto" && &cuda_linked != nullptr ? ours_on_devices : "";
}

std::string device_engine_names() {
  const std::string version = cudss_version();
  const std::string ours = &cuda_linked == nullptr ? "none: matrices are copied to the host" : "device (LU, Cholesky)";
  return ours + (version.empty() ? "" : ", cudss " + version + " (LU, Cholesky; if it is named)");
}

std::string engine_names() {
  std::string names;
  for (const Engine* engine : all)
    if (const std::string version = engine->version(); !version.empty())
      names += (names.empty() ? "" : ", ") + std::string(engine->name) + " " + version + " (" +
               (engine->lu ? "LU" : "") + (engine->lu && engine->cholesky ? ", " : "") +
               (engine->cholesky ? "Cholesky" : "") + ")";
  return names;
}

// Every cycle of even length changes the sign.
int parity(std::vector<int> order) {
  int sign = 1;
  for (size_t k = 0; k < order.size(); ++k)
    while (order[k] != static_cast<int>(k)) {
      std::swap(order[k], order[order[k]]);
      sign = -sign;
    }
  return sign;
}

}  // namespace gossamer
