// SPDX-License-Identifier: BSD-3-Clause
// MatrixMarket text: it is refused with a line number, or it becomes a matrix that, written and read again, is the
// same.
#include <gossamer/kernels/matrix_market_read.h>
#include <gossamer/kernels/matrix_market_write.h>
#include <gossamer/kernels/triplets.h>

#include <cstdlib>

using namespace gossamer;
namespace mm = matrix_market;

extern const std::vector<std::string> fuzz_words = {"%%MatrixMarket matrix ",
                                                    "coordinate ",
                                                    "array ",
                                                    "real ",
                                                    "integer ",
                                                    "pattern ",
                                                    "complex ",
                                                    "general\n",
                                                    "symmetric\n",
                                                    "skew-symmetric\n",
                                                    "hermitian\n",
                                                    "\n",
                                                    "\r\n",
                                                    " ",
                                                    "\t",
                                                    "%",
                                                    "\n%\n",
                                                    "\v",
                                                    "+",
                                                    "-",
                                                    ".",
                                                    "e",
                                                    "1 1 1\n",
                                                    "2 1 -1.5\n",
                                                    "3 2 1 0\n",
                                                    "2 2 2\n",
                                                    "inf",
                                                    "-nan",
                                                    "1e-400",
                                                    "0x1p3",
                                                    "1.0D0",
                                                    "0"};

namespace {

constexpr int64_t most_bytes = 1 << 16;  // of an index for every row

// The text as a reader gets it: a line end follows it, and nothing after that.
std::vector<char> with_line_end(std::string_view text) {
  std::vector<char> result(text.begin(), text.end());
  result.push_back('\n');
  return result;
}

template <class T, class I>
struct Matrix {
  std::vector<I> indptr, indices;
  std::vector<T> values;
};

template <class T, class I, class Mirror>
Matrix<T, I> assembled(const mm::Header& h, std::vector<I>& rows, std::vector<I>& cols, std::vector<T>& values,
                       const Mirror& mirror) {
  const int64_t total = kernels::triplets_total(h.entries, rows.data(), cols.data(), mirror);
  Matrix<T, I> A{std::vector<I>(static_cast<size_t>(h.rows) + 1), std::vector<I>(static_cast<size_t>(total)),
                 std::vector<T>(static_cast<size_t>(total))};
  kernels::triplets_by_row(Serial{}, h.rows, h.entries, rows.data(), cols.data(), values.data(), mirror,
                           A.indptr.data(), A.indices.data(), A.values.data());
  if (kernels::sort_columns(Serial{}, h.rows, A.indptr.data(), A.indices.data(), A.values.data()) != 0) {
    const int64_t nnz = kernels::add_repeated(h.rows, A.indptr.data(), A.indices.data(), A.values.data());
    A.indices.resize(static_cast<size_t>(nnz));
    A.values.resize(static_cast<size_t>(nnz));
  }
  return A;
}

template <class T, class I>
Matrix<T, I> read_matrix(std::string_view text) {
  const mm::Header h = mm::read_header(text);
  mm::check_rows(h, MemoryBound::of(text.size(), most_bytes));
  const auto parts = mm::split(Serial{}, h, text.data() + text.size());
  const auto n = static_cast<size_t>(h.entries);
  std::vector<I> rows(n), cols(n);
  std::vector<T> values(n);
  mm::read_coordinates(Serial{}, h, parts, rows.data(), cols.data(), values.data());
  if (h.symmetry == mm::Symmetry::general) return assembled(h, rows, cols, values, kernels::NotMirrored{});
  return assembled(h, rows, cols, values, [&](T value) { return mm::mirrored(value, h.symmetry); });
}

template <class T>
bool same(T a, T b) {
  if constexpr (mm::is_complex<T>) return same(a.real(), b.real()) && same(a.imag(), b.imag());
  return a == b || (a != a && b != b);
}

template <class T, class I>
void there_and_back(std::string_view text) {
  mm::Header h = mm::read_header(text);
  const Matrix<T, I> A = read_matrix<T, I>(text);
  const PatternView<I> view{h.rows, h.cols, static_cast<int64_t>(A.indices.size()), A.indptr.data(), A.indices.data()};
  h.symmetry = mm::Symmetry::general;
  h.entries = view.nnz;
  if (h.field == mm::Field::pattern) h.field = mm::Field::real;  // places named twice have become twos
  std::string written = mm::header_text(h, "again");
  mm::write_coordinates(Serial{}, view, A.values.data(), false, [&](std::string_view part) { written += part; });
  const auto again = with_line_end(written);
  const Matrix<T, I> B = read_matrix<T, I>({again.data(), again.size() - 1});
  bool equal = A.indptr == B.indptr && A.indices == B.indices && A.values.size() == B.values.size();
  for (size_t k = 0; equal && k < A.values.size(); ++k) equal = same(A.values[k], B.values[k]);
  if (!equal) std::abort();
}

template <class T>
void read_dense(std::string_view text) {
  const mm::Header h = mm::read_header(text);
  const auto parts = mm::split(Serial{}, h, text.data() + text.size());
  std::vector<T> dense(static_cast<size_t>(h.rows * h.cols));
  mm::read_array(Serial{}, h, parts, dense.data());
}

template <class T>
void read(std::string_view text, const mm::Header& h) {
  if (h.format == mm::Format::array) return read_dense<T>(text);
  if (text.size() % 2) return there_and_back<T, int64_t>(text);
  there_and_back<T, int32_t>(text);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto bytes = with_line_end({reinterpret_cast<const char*>(data), size});
  const std::string_view text(bytes.data(), size);
  try {
    const mm::Header h = mm::read_header(text);
    const bool narrow = size % 3 == 0;
    if (h.field == mm::Field::integer) {
      read<int64_t>(text, h);
    } else if (h.field == mm::Field::complex) {
      narrow ? read<std::complex<float>>(text, h) : read<std::complex<double>>(text, h);
    } else {
      narrow ? read<float>(text, h) : read<double>(text, h);
    }
  } catch (const mm::Error& error) {
    if (error.line() < 1) std::abort();
  }
  return 0;
}
