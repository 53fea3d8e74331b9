// SPDX-License-Identifier: BSD-3-Clause
// What Gossamer must know of CHOLMOD's memory to call it without its header, in our own words. The structs of a sparse
// matrix, a dense one and a factor have been the same in CHOLMOD 3, 4 and 5. So has the head of its parameters, which
// is all of them that is read or written here: the rest is room that CHOLMOD fills. tests/solve/test_cholmod_layout.py
// compares every field with the system's cholmod.h, and Library in cholmod.cpp what it can see at run time.
#pragma once
#include <algorithm>
#include <array>
#include <cstddef>

namespace gossamer::cholmod_abi {

inline constexpr int oldest = 3, newest = 5;  // the major versions that were compared
inline constexpr int int_indices = 0, real_values = 1, double_precision = 0, lower_triangle = -1, solve_all = 0;

struct Sparse {
  size_t rows, columns, capacity;
  void *ptr, *indices, *lengths, *values, *imaginary;
  int triangle, index_type, value_type, precision, sorted, packed;
};

struct Dense {
  size_t rows, columns, capacity, stride;
  void *values, *imaginary;
  int value_type, precision;
};

struct Factor {
  size_t n, first_bad_step;
  void *order, *counts, *inverse_order;
  size_t capacity;
  void *ptr, *indices, *values, *imaginary, *lengths, *next, *previous;
  size_t blocks, block_indices_size, block_values_size, largest_update, largest_rest;
  void *block_columns, *block_indices_ptr, *block_values_ptr, *block_indices;
  int ordering, is_ll, is_blocked, is_monotonic, index_type, value_type, precision, on_gpu;
};

struct Parameters {
  double smallest_pivot, growth[2];
  size_t slack, update_rank;
  double blocks_from;
  int kind, final_form[6];
  double relaxed_zeros[3];
  size_t relaxed_columns[3];
  int preferences[4], print;
  alignas(16) std::array<std::byte, 16384> rest;  // CHOLMOD 3 to 5 use less than 3 000 bytes of it

  // Whether these are the defaults that CHOLMOD documents. If a version had moved `print`, they would have moved, too.
  bool are_defaults() const {
    constexpr std::array zeros = {0.8, 0.1, 0.05};
    constexpr std::array<size_t, 3> columns = {4, 16, 48};
    return growth[0] == 1.2 && growth[1] == 1.2 && slack == 5 && update_rank == 8 && blocks_from == 40 &&
           std::equal(zeros.begin(), zeros.end(), relaxed_zeros) &&
           std::equal(columns.begin(), columns.end(), relaxed_columns) && print == 3;
  }
};

}  // namespace gossamer::cholmod_abi
