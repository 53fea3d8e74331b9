// SPDX-License-Identifier: BSD-3-Clause
// MatrixMarket text without torch, under the sanitizers: every prefix and every changed byte of a file is read or
// refused within its memory, and the result does not depend on the executor.
#include <gtest/gtest.h>

#include <complex>

#include <gossamer/kernels/matrix_market_read.h>
#include <gossamer/kernels/matrix_market_write.h>
#include <gossamer/kernels/triplets.h>
#include "executors.h"

namespace gossamer::test {
namespace {

namespace mm = matrix_market;

template <class T>
struct Read {
  int64_t rows = 0, cols = 0;
  std::vector<int64_t> indptr, indices;
  std::vector<T> values;
  bool operator==(const Read&) const = default;
};

// The text in a piece of memory of exactly its size, plus the line end that must follow.
template <class T, Host E>
Read<T> read(const E& exec, const std::string& given) {
  const std::vector<char> text = [&] {
    std::vector<char> t(given.begin(), given.end());
    t.push_back('\n');
    t.shrink_to_fit();
    return t;
  }();
  const mm::Header h = mm::read_header({text.data(), given.size()});
  const auto parts = mm::split(exec, h, text.data() + given.size());
  if (h.format == mm::Format::array) {
    Read<T> result{h.rows, h.cols, {}, {}, std::vector<T>(h.rows * h.cols)};
    mm::read_array(exec, h, parts, result.values.data());
    return result;
  }
  if (h.rows > 1000) throw mm::Error(2, "too many rows for this test");
  std::vector<int64_t> rows(h.entries), cols(h.entries);
  std::vector<T> values(h.entries);
  mm::read_coordinates(exec, h, parts, rows.data(), cols.data(), values.data());
  const auto mirror = [&](T value) { return mm::mirrored(value, h.symmetry); };
  const auto assemble = [&](const auto& m) {
    const int64_t total = kernels::triplets_total(h.entries, rows.data(), cols.data(), m);
    Read<T> result{h.rows, h.cols, std::vector<int64_t>(h.rows + 1), std::vector<int64_t>(total),
                   std::vector<T>(total)};
    int64_t *p = result.indptr.data(), *i = result.indices.data();
    kernels::triplets_by_row(exec, h.rows, h.entries, rows.data(), cols.data(), values.data(), m, p, i,
                             result.values.data());
    kernels::sort_columns(exec, h.rows, p, i, result.values.data());
    const int64_t nnz = kernels::add_repeated(h.rows, p, i, result.values.data());
    result.indices.resize(nnz);
    result.values.resize(nnz);
    return result;
  };
  return h.symmetry == mm::Symmetry::general ? assemble(kernels::NotMirrored{}) : assemble(mirror);
}

const std::string general =
    "%%MatrixMarket matrix coordinate real general\n%c\n3 4 5\n3 1 1.5\n1 4 -2e1\n3 1 2\n1 2 0\n3 4 7\n";
const std::string symmetric = "%%MatrixMarket matrix coordinate real symmetric\n3 3 3\n1 1 1\n3 1 2\n3 2 4\n";
const std::string array = "%%MatrixMarket matrix array real skew-symmetric\n3 3\n1\n2\n3";

// Triplets that come row by row need no sorting by row; rows beyond the last entry, and between, are empty.
TEST(Triplets, InOrder) {
  std::vector<int> rows{1, 1, 3, 3, 3, 4}, indptr(7);
  ASSERT_TRUE(kernels::triplets_in_order(6, 6, rows.data(), indptr.data()));
  EXPECT_EQ(indptr, (std::vector<int>{0, 0, 2, 2, 5, 6, 6}));
  rows[2] = 0;
  EXPECT_FALSE(kernels::triplets_in_order(6, 6, rows.data(), indptr.data()));
}

// Short rows are sorted by insertion, long ones otherwise: equal columns stay as they came in both.
TEST(Triplets, SortColumns) {
  for (const int n : {2, 31, 32, 33, 200}) {
    const std::vector<int> indptr{0, n};
    std::vector<int> indices(n);
    std::vector<double> values(n);
    for (int k = 0; k < n; ++k) values[k] = k, indices[k] = (7 * (n - k)) % 11;
    std::vector<std::pair<int, double>> wanted;
    for (int column = 0; column < 11; ++column)
      for (int k = 0; k < n; ++k)
        if ((7 * (n - k)) % 11 == column) wanted.emplace_back(column, k);
    kernels::sort_columns(Serial{}, 1, indptr.data(), indices.data(), values.data());
    for (int k = 0; k < n; ++k) EXPECT_EQ(std::pair(indices[k], values[k]), wanted[k]);
  }
}

TEST(MatrixMarket, SmallFiles) {
  EXPECT_EQ(read<double>(Serial{}, general), (Read<double>{3, 4, {0, 2, 2, 4}, {1, 3, 0, 3}, {0, -20, 3.5, 7}}));
  EXPECT_EQ(read<double>(Serial{}, symmetric), (Read<double>{3, 3, {0, 2, 3, 5}, {0, 2, 2, 0, 1}, {1, 2, 4, 2, 4}}));
  EXPECT_EQ(read<double>(Serial{}, array), (Read<double>{3, 3, {}, {}, {0, -1, -2, 1, 0, -3, 2, 3, 0}}));
}

TEST(MatrixMarket, EveryPrefixAndEveryChangedByteIsReadOrRefused) {
  const auto attempt = [](const std::string& text) {
    try {
      const auto A = read<double>(Serial{}, text);
      if (!A.indptr.empty()) {
        const PatternView<int64_t> view{A.rows, A.cols, static_cast<int64_t>(A.indices.size()), A.indptr.data(),
                                        A.indices.data()};
        EXPECT_EQ(check_structure(view), "") << text;
      }
    } catch (const mm::Error& error) {
      EXPECT_GE(error.line(), 1);
      EXPECT_LE(error.line(), std::count(text.begin(), text.end(), '\n') + 1) << text << error.what();
    }
  };
  for (const std::string& text : {general, symmetric, array})
    for (size_t k = 0; k < text.size(); ++k) {
      attempt(text.substr(0, k));
      for (const char c : {'\0', ' ', '\n', '\r', '%', '-', '0', '1', '9', '.', 'e', 'n', '\xff'}) {
        std::string changed = text;
        changed[k] = c;
        attempt(changed);
        changed.insert(k, 1, c);
        attempt(changed);
      }
    }
}

// Large enough to be split; the executors differ in order and number of parts.
TEST(MatrixMarket, TheExecutorDoesNotMatter) {
  std::string body;
  constexpr int64_t n = 600000, m = 900;
  for (int64_t k = 0; k < n; ++k)
    body += std::to_string(k * 7919 % m + 1) + " " + std::to_string(k * k % 13 % (k * 7919 % m + 1) + 1) + " 0." +
            std::to_string(k) + "\n";
  for (const std::string symmetry : {"general", "symmetric"}) {
    const std::string text =
        "%%MatrixMarket matrix coordinate real " + symmetry + "\n900 900 " + std::to_string(n) + "\n" + body;
    const Threads threads(3);
    const Backwards backwards(5);
    const auto wanted = read<double>(Serial{}, text);
    EXPECT_TRUE(read<double>(threads, text) == wanted);
    EXPECT_TRUE(read<double>(backwards, text) == wanted);
    EXPECT_GT(threads.parts, 1);
  }
}

// Columns descend, and come round again: the sums tell the order in which equal places were added.
TEST(MatrixMarket, EqualPlacesAreAddedInTheOrderOfTheFile) {
  constexpr int n = 40;
  std::string text = "%%MatrixMarket matrix coordinate real general\n1 40 120\n";
  for (const char* value : {" 1e17", " 3", " -1e17"})
    for (int j = n; j > 0; --j) text += "1 " + std::to_string(j) + value + "\n";
  EXPECT_EQ(read<double>(Serial{}, text).values, std::vector<double>(n, (1e17 + 3) - 1e17));
}

TEST(MatrixMarket, WrittenTextReadsBack) {
  const auto A = read<std::complex<double>>(
      Serial{}, "%%MatrixMarket matrix coordinate complex hermitian\n3 3 3\n1 1 0.1 0\n3 1 1e-300 2\n3 2 -4 .3\n");
  const PatternView<int64_t> view{3, 3, 5, A.indptr.data(), A.indices.data()};
  mm::Header h{mm::Format::coordinate, mm::Field::complex, mm::Symmetry::hermitian, 3, 3, mm::lower_entries(view)};
  std::string text = mm::header_text(h, "two\nlines");
  mm::write_coordinates(Threads(2), view, A.values.data(), true, [&](std::string_view more) { text += more; });
  EXPECT_TRUE(read<std::complex<double>>(Serial{}, text) == A) << text;
}

}  // namespace
}  // namespace gossamer::test
