// SPDX-License-Identifier: BSD-3-Clause
// A matrix as MatrixMarket text: every number in the fewest digits that read back as the same number.
// Entries are formatted in blocks, in parallel, and handed to `sink(text)` in order: the text is the same for every
// number of threads, and little of it is in memory at once.
#pragma once
#include <charconv>

#include <gossamer/kernels/matrix_market.h>
#include <gossamer/kernels/matrix_market_read.h>

namespace gossamer::matrix_market {

inline constexpr int64_t entries_a_block = 1 << 15;
inline constexpr int64_t longest_entry = 112;  // two indices of 20 digits, two numbers of 25, and what stands between

template <class T>
char* put(char* at, T value) {
  if constexpr (is_complex<T>) {
    at = put(at, value.real());
    *at++ = ' ';
    return put(at, value.imag());
  } else {
    return std::to_chars(at, at + 32, value).ptr;
  }
}

// Banner, comment (each of its lines behind a %), size line.
inline std::string header_text(const Header& h, std::string_view comment) {
  std::string text = "%%MatrixMarket matrix ";
  text.append(formats[static_cast<int>(h.format)]).append(" ").append(fields[static_cast<int>(h.field)]);
  text.append(" ").append(symmetries[static_cast<int>(h.symmetry)]).append("\n");
  while (!comment.empty()) {
    const size_t length = std::min(comment.find_first_of("\r\n"), comment.size());
    text.append("%").append(comment.substr(0, length)).append("\n");
    comment.remove_prefix(std::min(length + 1, comment.size()));
  }
  text.append(std::to_string(h.rows)).append(" ").append(std::to_string(h.cols));
  if (h.format == Format::coordinate) text.append(" ").append(std::to_string(h.entries));
  return text.append("\n");
}

// n entries through put_entries(at, begin, end), which writes those of a range and returns where it stopped.
template <Host E, class F, class Sink>
void write_blocks(const E& exec, int64_t n, const F& put_entries, const Sink& sink) {
  const int64_t blocks = (n + entries_a_block - 1) / entries_a_block;
  const int64_t at_once = std::clamp<int64_t>(blocks, 1, std::max<int64_t>(exec.threads(), 1));
  std::vector<std::vector<char>> text(static_cast<size_t>(at_once));
  for (auto& t : text) t.resize(static_cast<size_t>(std::min(n, entries_a_block) * longest_entry));
  std::vector<char*> end(text.size());
  for (int64_t first = 0; first < blocks; first += at_once) {
    const int64_t now = std::min(at_once, blocks - first);
    exec.parallel_for(now, [&](int64_t k) {
      const int64_t begin = (first + k) * entries_a_block;
      end[k] = put_entries(text[k].data(), begin, std::min(n, begin + entries_a_block));
    });
    for (int64_t k = 0; k < now; ++k)
      sink(std::string_view(text[k].data(), static_cast<size_t>(end[k] - text[k].data())));
  }
}

// The entries of A on and below the diagonal.
template <class I>
int64_t lower_entries(const PatternView<I>& A) {
  int64_t count = 0;
  for (int64_t i = 0; i < A.rows; ++i)
    for (int64_t p = A.indptr[i]; p < A.indptr[i + 1]; ++p) count += A.indices[p] <= i;
  return count;
}

// All entries of A in row order, or (half) those on and below the diagonal. Without values: a pattern.
template <Host E, class T, class I, class Sink>
void write_coordinates(const E& exec, const PatternView<I>& A, const T* values, bool half, const Sink& sink) {
  write_blocks(
      exec, A.nnz,
      [&](char* at, int64_t begin, int64_t end) {
        int64_t i = std::upper_bound(A.indptr, A.indptr + A.rows + 1, static_cast<I>(begin)) - A.indptr - 1;
        for (int64_t p = begin; p < end; ++p) {
          while (p >= A.indptr[i + 1]) ++i;
          if (half && A.indices[p] > i) continue;
          at = put(at, i + 1);
          *at++ = ' ';
          at = put(at, int64_t{A.indices[p]} + 1);
          if (values) {
            *at++ = ' ';
            at = put(at, values[p]);
          }
          *at++ = '\n';
        }
        return at;
      },
      sink);
}

// dense: rows * cols, row by row; written column by column, or (half) what the columns have from `below` rows under the
// diagonal on.
template <Host E, class T, class Sink>
void write_array(const E& exec, int64_t rows, int64_t cols, const T* dense, bool half, int64_t below,
                 const Sink& sink) {
  write_blocks(
      exec, rows * cols,
      [&](char* at, int64_t begin, int64_t end) {
        for (int64_t k = begin; k < end; ++k) {
          const int64_t i = k % rows, j = k / rows;
          if (half && i < j + below) continue;
          at = put(at, dense[i * cols + j]);
          *at++ = '\n';
        }
        return at;
      },
      sink);
}

}  // namespace gossamer::matrix_market
