// SPDX-License-Identifier: BSD-3-Clause
// The body of a MatrixMarket file as numbers. See matrix_market.h for the steps before.
//
//   coordinate   rows[k], cols[k] (from 0), values[k] for the k-th entry of the file; the mirrored half is not written
//   array        dense[i * cols + j], mirrored where the file is symmetric
//
// Values are double or float, int64_t, or complex of either. A number that overflows is an error, one that underflows
// is rounded; nan and inf are numbers. O(bytes), in parallel over the parts.
#pragma once
#include <locale.h>
#include <stdlib.h>

#include <charconv>
#include <cmath>

#include <gossamer/kernels/matrix_market.h>

namespace gossamer::matrix_market {

template <class T>
inline constexpr bool is_complex = false;
template <class T>
inline constexpr bool is_complex<std::complex<T>> = true;

// The value of the entry on the other side of the diagonal.
template <class T>
T mirrored(T value, Symmetry symmetry) {
  if constexpr (is_complex<T>)
    if (symmetry == Symmetry::hermitian) return std::conj(value);
  if (symmetry != Symmetry::skew_symmetric) return value;
  if constexpr (std::is_integral_v<T>) return static_cast<T>(0 - static_cast<std::make_unsigned_t<T>>(value));
  return -value;
}

// Walks over the entries of a part. Whatever complains is static and out of line: a reader whose address is taken would
// live in memory instead of registers, which costs a third of the time.
class Reader {
 public:
  explicit Reader(const Part& part) : at_(part.begin), end_(part.end), line_(part.line) {}

  // Goes to the next entry; false at the end.
  bool next() {
    while (at_ < end_ && !has_data(at_)) skip_line();
    return at_ < end_;
  }

  // An index of 1 … size, as 0 … size - 1.
  int64_t index(const char* one, const char* many, int64_t size) {
    skip_blanks();
    const char* begin = at_;
    uint64_t value = 0;
    while (static_cast<unsigned char>(*at_ - '0') < 10 && at_ - begin < 19)
      value = 10 * value + static_cast<uint64_t>(*at_++ - '0');
    const bool number = at_ > begin && at_word_end();
    if (number && value - 1 < static_cast<uint64_t>(size)) return static_cast<int64_t>(value - 1);
    bad_index(begin, end_, line_, one, many, size);
  }

  template <class T>
  T value() {
    if constexpr (is_complex<T>) {
      const auto real = number<typename T::value_type>();
      return {real, number<typename T::value_type>()};
    } else {
      return number<T>();
    }
  }

  void end_entry() {
    skip_blanks();
    if (*at_ != '\n') trailing(at_, end_, line_);
    at_ += at_ < end_;
    ++line_;
  }

  int64_t line() const { return line_; }

 private:
  void skip_blanks() {
    while (blank(*at_)) ++at_;
  }
  void skip_line() {
    at_ = std::min(line_end(at_, end_) + 1, end_);
    ++line_;
  }
  bool at_word_end() const { return blank(*at_) || *at_ == '\n'; }

  template <class T>
  T number() {
    skip_blanks();
    const char* begin = at_;
    const bool plus = end_ - at_ > 1 && *at_ == '+' && at_[1] != '-' && at_[1] != '+';
    T result{};
    const auto [stop, error] = std::from_chars(at_ + plus, end_, result);
    at_ = stop;
    bool plain = error == std::errc{} && at_word_end();
    if constexpr (std::is_floating_point_v<T>) plain = plain && !std::isinf(result);
    if (!plain) at_ = begin + word(begin, end_).size();
    return plain ? result : odd_number(begin, end_, line_, result, stop, error);
  }

  static std::string_view word(const char* at, const char* end) { return matrix_market::word(at, end); }

  [[noreturn, gnu::cold, gnu::noinline]] static void bad_index(const char* begin, const char* end, int64_t line,
                                                               const char* one, const char* many, int64_t size) {
    const std::string given(word(begin, end));
    if (given.empty()) throw Error(line, std::string("the ") + one + " is missing");
    if (given.find_first_not_of("0123456789", given[0] == '-') != std::string::npos)
      throw Error(line, std::string("the ") + one + " is " + in_quotes(given) + ", not a whole number");
    const std::string shown = given.size() > 24 ? in_quotes(given) : given;
    throw Error(line, std::string(one) + " " + shown + " is outside the " + std::to_string(size) + " " + many);
  }
  [[noreturn, gnu::cold, gnu::noinline]] static void trailing(const char* at, const char* end, int64_t line) {
    throw Error(line, in_quotes(word(at, end)) + " follows the last number of the entry");
  }

  // What std::from_chars did not take for a finite number: inf, an underflow (rounded), or a mistake.
  template <class T>
  [[gnu::cold, gnu::noinline]] static T odd_number(const char* begin, const char* end, int64_t line, T result,
                                                   const char* stop, std::errc error) {
    const std::string given(word(begin, end));
    if (given.empty()) throw Error(line, "a value is missing");
    const bool whole = begin + given.size() == stop;
    if (whole && error == std::errc{} && given.find_first_of("iI") != std::string::npos) return result;
    if (!whole || (error != std::errc{} && error != std::errc::result_out_of_range))
      throw Error(line, in_quotes(given) + " is not a" + (std::is_integral_v<T> ? " whole number" : " number"));
    if constexpr (std::is_floating_point_v<T>) {
      static const locale_t c_locale = newlocale(LC_ALL_MASK, "C", nullptr);
      const double wide = strtod_l(given.c_str(), nullptr, c_locale);  // underflow is rounded, overflow is not
      if (std::abs(wide) < 1) return static_cast<T>(wide);
    }
    throw Error(line, in_quotes(given) + " is too large for " +
                          (std::is_integral_v<T> ? "int64"
                           : sizeof(T) == 8      ? "float64"
                                                 : "float32"));
  }

  const char *at_, *end_;
  int64_t line_;
};

// f(reader, k) for every part, k being its first entry; of several errors, that of the first line is thrown.
template <Host E, class F>
void for_each_part(const E& exec, const std::vector<Part>& parts, const F& f) {
  std::vector<std::optional<Error>> errors(parts.size());
  for_each_dynamic(exec, static_cast<int64_t>(parts.size()), [&](int64_t k) {
    try {
      f(Reader(parts[k]), parts[k].entries);
    } catch (const Error& error) {
      errors[k] = error;
    }
  });
  for (const auto& error : errors)
    if (error) throw *error;
}

// What a half-stored matrix demands of the entry (i, j).
template <class T>
void check_half(int64_t line, Symmetry symmetry, int64_t i, int64_t j, T value) {
  const auto place = [&] { return "entry (" + std::to_string(i + 1) + ", " + std::to_string(j + 1) + ")"; };
  const auto kind = [&] { return std::string(symmetries[static_cast<int>(symmetry)]); };
  if (j > i) throw Error(line, place() + " is above the diagonal, but a " + kind() + " file holds the lower triangle");
  if (i != j) return;
  if (symmetry == Symmetry::skew_symmetric && value != T{})
    throw Error(line, place() + " is on the diagonal of a skew-symmetric file but not zero");
  if constexpr (is_complex<T>)
    if (symmetry == Symmetry::hermitian && value.imag() != 0)
      throw Error(line, place() + " is on the diagonal of a hermitian file but not real");
}

// rows, cols, values: h.entries each. The values of a pattern are 1.
template <class T, class I, Host E>
void read_coordinates(const E& exec, const Header& h, const std::vector<Part>& parts, I* rows, I* cols, T* values) {
  for_each_part(exec, parts, [&](Reader reader, int64_t k) {
    for (; reader.next(); ++k) {
      const int64_t i = reader.index("row", "rows", h.rows), j = reader.index("column", "columns", h.cols);
      const T value = h.field == Field::pattern ? T{1} : reader.template value<T>();
      if (h.symmetry != Symmetry::general) check_half(reader.line(), h.symmetry, i, j, value);
      reader.end_entry();
      rows[k] = static_cast<I>(i);
      cols[k] = static_cast<I>(j);
      values[k] = value;
    }
  });
}

// dense: rows * cols, row by row. The diagonal of a skew-symmetric array is set to zero.
template <class T, Host E>
void read_array(const E& exec, const Header& h, const std::vector<Part>& parts, T* dense) {
  const bool half = h.symmetry != Symmetry::general;
  const int64_t below = h.symmetry == Symmetry::skew_symmetric;  // a column begins this far below the diagonal
  if (below)
    for (int64_t i = 0; i < h.rows; ++i) dense[i * h.cols + i] = T{};
  for_each_part(exec, parts, [&](Reader reader, int64_t k) {
    int64_t i = 0, j = 0;  // where entry k stands: after so many whole columns
    if (half) {
      while (j < h.cols && k >= h.rows - j - below) k -= h.rows - j++ - below;
      i = j + below + k;
    } else if (h.rows > 0) {
      i = k % h.rows;
      j = k / h.rows;
    }
    for (; reader.next(); ++i) {
      if (i == h.rows) {
        ++j;
        i = half ? j + below : 0;
      }
      const T value = reader.template value<T>();
      if (half) check_half(reader.line(), h.symmetry, i, j, value);
      reader.end_entry();
      dense[i * h.cols + j] = value;
      if (half && i != j) dense[j * h.cols + i] = mirrored(value, h.symmetry);
    }
  });
}

}  // namespace gossamer::matrix_market
