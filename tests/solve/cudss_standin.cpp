// SPDX-License-Identifier: BSD-3-Clause
// Test only: the functions of cuDSS that Gossamer calls, on a stand-in for a device whose memory is the host's. They
// solve by dense elimination. Analyses are counted, and transposed solves can be refused, as cuDSS does for some.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <utility>
#include <vector>

#include "solve/device/cudss_declarations.h"

namespace {

using namespace gossamer::cudss_abi;

struct Matrix {
  int64_t rows = 0, columns = 0, stride = 0;
  const int *starts = nullptr, *indices = nullptr;
  const double* values = nullptr;
  MatrixType kind = general;
  View view = full;
};

struct Data {
  int64_t n = 0;
  std::vector<double> factors;  // L and U, or L of L Lᵀ, by rows
  std::vector<int64_t> order;   // row k of the factors is row order[k] of the matrix
  bool analysed = false, symmetric = false;
  int info = 0, replaced = 0;

  double& at(int64_t i, int64_t j) { return factors[i * n + j]; }
};

int analyses = 0;

void read(const Matrix& A, Data& data) {
  data.n = A.rows;
  data.factors.assign(A.rows * A.rows, 0.0);
  data.order.resize(A.rows);
  for (int64_t i = 0; i < A.rows; ++i) {
    data.order[i] = i;
    for (int p = A.starts[i]; p < A.starts[i + 1]; ++p) {
      const int64_t j = A.indices[p];
      if (A.view == lower && j > i) continue;
      data.at(i, j) = A.values[p];
      if (A.view == lower) data.at(j, i) = A.values[p];
    }
  }
}

void eliminate(Data& data) {
  const int64_t n = data.n;
  for (int64_t k = 0; k < n; ++k) {
    if (data.symmetric) {
      if (!(data.at(k, k) > 0) && data.info == 0) data.info = static_cast<int>(k) + 1;
    } else {
      int64_t best = k;
      for (int64_t i = k + 1; i < n; ++i)
        if (std::abs(data.at(i, k)) > std::abs(data.at(best, k))) best = i;
      std::swap(data.order[k], data.order[best]);
      for (int64_t j = 0; j < n && best != k; ++j) std::swap(data.at(k, j), data.at(best, j));
      if (std::abs(data.at(k, k)) < 1e-13) data.at(k, k) = 1e-13, ++data.replaced;
    }
    for (int64_t i = k + 1; i < n; ++i) {
      data.at(i, k) /= data.at(k, k);
      for (int64_t j = k + 1; j < n; ++j) data.at(i, j) -= data.at(i, k) * data.at(k, j);
    }
  }
}

void solve_one(Data& data, const double* b, double* x, bool transpose) {
  const int64_t n = data.n;
  std::vector<double> y(n);
  for (int64_t k = 0; k < n; ++k) y[k] = transpose ? b[k] : b[data.order[k]];
  if (transpose) {
    for (int64_t i = 0; i < n; ++i) {
      for (int64_t j = 0; j < i; ++j) y[i] -= data.at(j, i) * y[j];
      y[i] /= data.at(i, i);
    }
    for (int64_t i = n; i-- > 0;)
      for (int64_t j = i + 1; j < n; ++j) y[i] -= data.at(j, i) * y[j];
    for (int64_t k = 0; k < n; ++k) x[data.order[k]] = y[k];
    return;
  }
  for (int64_t i = 0; i < n; ++i)
    for (int64_t j = 0; j < i; ++j) y[i] -= data.at(i, j) * y[j];
  for (int64_t i = n; i-- > 0;) {
    for (int64_t j = i + 1; j < n; ++j) y[i] -= data.at(i, j) * y[j];
    y[i] /= data.at(i, i);
  }
  std::copy(y.begin(), y.end(), x);
}

Status wrong() {
  return static_cast<Status>(3);
}

}  // namespace

extern "C" {

int standin_analyses() {
  return std::exchange(analyses, 0);
}

Status cudssCreate(Pointer* handle) {
  *handle = new int(7);
  return success;
}
Status cudssSetStream(Pointer handle, Pointer) {
  return *static_cast<int*>(handle) == 7 ? success : wrong();
}
Status cudssGetProperty(Property which, int* value) {
  *value = which == major ? version : static_cast<int>(which);
  return success;
}
Status cudssConfigCreate(Pointer* config) {
  *config = new int(normal);
  return success;
}
Status cudssConfigDestroy(Pointer config) {
  delete static_cast<int*>(config);
  return success;
}
Status cudssConfigSet(Pointer config, Setting setting, const void* value, size_t bytes) {
  if (setting != solve_mode || bytes != sizeof(int)) return wrong();
  *static_cast<int*>(config) = *static_cast<const int*>(value);
  return success;
}
Status cudssDataCreate(Pointer, Pointer* data) {
  *data = new Data;
  return success;
}
Status cudssDataDestroy(Pointer, Pointer data) {
  delete static_cast<Data*>(data);
  return success;
}
Status cudssDataGet(Pointer, Pointer data, Fact fact, void* value, size_t bytes, size_t* written) {
  if (bytes != sizeof(int) || (fact != info && fact != replaced_pivots)) return wrong();
  const auto& from = *static_cast<Data*>(data);
  *static_cast<int*>(value) = fact == info ? from.info : from.replaced;
  *written = bytes;
  return success;
}
Status cudssMatrixCreateDn(Pointer* matrix, int64_t rows, int64_t columns, int64_t stride, const void* values,
                           NumberType type, Layout layout) {
  if (type != float64 || layout != by_columns || stride < rows) return wrong();
  *matrix = new Matrix{rows, columns, stride, nullptr, nullptr, static_cast<const double*>(values), general, full};
  return success;
}
Status cudssMatrixCreateCsr(Pointer* matrix, int64_t rows, int64_t columns, int64_t nnz, const void* row_starts,
                            const void* row_ends, const void* indices, const void* values, NumberType start_type,
                            NumberType index_type, NumberType value_type, MatrixType kind, View view, IndexBase base) {
  const auto* starts = static_cast<const int*>(row_starts);
  if (row_ends || start_type != int32 || index_type != int32 || value_type != float64 || base != zero) return wrong();
  if (rows != columns || starts[rows] != nnz) return wrong();
  *matrix = new Matrix{rows, columns, 0, starts, static_cast<const int*>(indices), static_cast<const double*>(values),
                       kind, view};
  return success;
}
Status cudssMatrixSetValues(Pointer matrix, const void* values) {
  static_cast<Matrix*>(matrix)->values = static_cast<const double*>(values);
  return success;
}
Status cudssMatrixDestroy(Pointer matrix) {
  delete static_cast<Matrix*>(matrix);
  return success;
}
Status cudssExecute(Pointer, int phase, Pointer config, Pointer data, Pointer matrix, Pointer x, Pointer b) {
  auto& state = *static_cast<Data*>(data);
  const auto& A = *static_cast<Matrix*>(matrix);
  if (phase == analysis) {
    ++analyses;
    state.analysed = true;
    state.symmetric = A.kind == positive_definite;
    return success;
  }
  if (!state.analysed) return wrong();
  if (phase == factorization) {
    state.info = state.replaced = 0;
    read(A, state);
    eliminate(state);
    return success;
  }
  const bool transpose = *static_cast<int*>(config) == transposed;
  if (transpose && std::getenv("CUDSS_STANDIN_REFUSES_TRANSPOSES")) return not_supported;
  const auto &from = *static_cast<Matrix*>(b), &to = *static_cast<Matrix*>(x);
  if (phase != solve || from.rows != state.n || to.rows != state.n || from.columns != to.columns) return wrong();
  for (int64_t c = 0; c < from.columns; ++c)
    solve_one(state, from.values + c * from.stride, const_cast<double*>(to.values) + c * to.stride, transpose);
  return success;
}
}
