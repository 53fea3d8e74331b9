# SPDX-License-Identifier: BSD-3-Clause
# Bugs planted in the real kernels: copies of src/cuda with one text replaced, each compiled with kernels.cpp and run
# with a noun. The test passes only if the bug is seen. A text that is no longer there is an error: the bug would be
# planted nowhere.
set(race "ThreadSanitizer: data race")

function(mutant bug noun file from to report)
  set(copy ${CMAKE_CURRENT_BINARY_DIR}/mutants/${bug})
  file(GLOB headers ${cuda_dir}/*.cuh ${cuda_dir}/*.h)  # all of them: an include looks beside its own file first
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${headers})
  foreach(header ${headers})
    cmake_path(GET header FILENAME name)
    file(READ ${header} text)
    if(name STREQUAL file)
      string(FIND "${text}" "${from}" found)
      if(found EQUAL -1)
        message(FATAL_ERROR "mutant ${bug}: ${file} has no \"${from}\"")
      endif()
      string(REPLACE "${from}" "${to}" text "${text}")
    endif()
    file(GENERATE OUTPUT ${copy}/${name} CONTENT "${text}")
  endforeach()
  emulated_program(cuda_mutant_${bug} tsan planted/kernels.cpp)
  target_include_directories(cuda_mutant_${bug} BEFORE PRIVATE ${copy})
  target_link_libraries(cuda_mutant_${bug} PRIVATE GTest::gtest)
  add_test(NAME cuda_mutant_${bug} COMMAND cuda_mutant_${bug} ${noun})
  set_tests_properties(cuda_mutant_${bug} PROPERTIES LABELS cuda PASS_REGULAR_EXPRESSION "${report}" ENVIRONMENT
                                                                                         "TSAN_OPTIONS=halt_on_error=1")
endfunction()

# The control: no bug, nothing to report.
emulated_program(cuda_planted_kernels tsan planted/kernels.cpp)
target_link_libraries(cuda_planted_kernels PRIVATE GTest::gtest)
add_test(NAME cuda_planted_kernels_none COMMAND cuda_planted_kernels all)
set_tests_properties(cuda_planted_kernels_none PROPERTIES LABELS cuda PASS_REGULAR_EXPRESSION
                                                                      "^(as it should be\n)+$")

# Triangular solves: the flag without release, without acquire, before the value; rows not by tickets; the other lanes'
# columns not waited for.
mutant(release solve_vector triangular.cuh "device::store_release(progress.ready + i, 1)"
       "atomicExch(progress.ready + i, 1)" "${race}")
mutant(acquire solve_vector triangular.cuh "device::load_acquire(ready) == 0"
       "atomicAdd(const_cast<int*>(ready), 0) == 0" "${race}")
mutant(early_flag solve_vector triangular.cuh "solve_element(L, triangle, i, b, ldb, x, progress.bad,"
       "device::store_release(progress.ready + i, 1), solve_element(L, triangle, i, b, ldb, x, progress.bad," "${race}")
mutant(ticket solve_vector triangular.cuh
       "ticket = next_ticket(progress.tickets); ticket < L.rows; ticket = next_ticket(progress.tickets)"
       "ticket = device::warp(); ticket < L.rows; ticket += device::warps()" "emulator: livelock")
mutant(ticket_order solve_vector triangular.cuh "triangle.upper ? L.rows - 1 - ticket : ticket;"
       "triangle.upper ? ticket : L.rows - 1 - ticket;" "emulator: livelock")
mutant(tile_written solve_columns triangular.cuh "__syncwarp();  // all of the tile is written before lane 0 says so" ""
       "${race}")

# Sparse products: the next row of B before the last one is added; the table without atomics, or used before it is empty.
mutant(next_row spgemm spgemm.cuh "    __syncwarp();\n    const RowRange entries" "    const RowRange entries" "${race}")
mutant(table spgemm spgemm.cuh "while (atomicCAS(places + at, nobody, n) != nobody) at = (at + 1) % table_places"
       "for (; places[at] != nobody; at = (at + 1) % table_places) {\n      }\n      places[at] = n" "${race}")
mutant(empty_table spgemm spgemm.cuh "columns[n] = from[n];\n    __syncwarp();" "columns[n] = from[n];" "${race}")

# Pieces: added up by whoever comes; a piece forgotten; the remainder of a long row forgotten; a short row taken for long.
mutant(order spmm spmm.cuh "partial[run.place * total + q] = sum[k]"
       "atomicAdd(partial + (run.place - run.number) * total + q, sum[k])" "other bits")
mutant(forgotten spmm pieces.cuh "sum_in_order<Sum<T>>((piece.count - group + groups - 1) / groups"
       "sum_in_order<Sum<T>>((piece.count - group) / groups - 1" "wrong numbers")
mutant(remainder spmm pieces.cuh "number + 1 == count ? end : from + entries" "from + entries" "wrong numbers")
