// SPDX-License-Identifier: BSD-3-Clause
// MatrixMarket, the text format of sparse collections: what a file says of itself, and how its body becomes numbers.
//
//   %%MatrixMarket matrix coordinate real symmetric        banner: format, field, symmetry
//   % any number of comments
//   5 5 8                                                  rows, cols, entries (array: rows, cols)
//   1 1 2.5                                                row, col (from 1), value; one entry a line
//
// A file is read in four steps, none of which trusts it:
//   read_header   the banner and the sizes
//   check_rows    whether an index for every row is within what the file may take
//   split         cuts the body into parts at line ends and counts: as many entries as announced, before anything of
//                 that size is allocated
//   read_*        the numbers, each part at its own place: the same result for every number of threads
// The text must be followed by a line end that does not belong to it, where the last line may stop.
// What is wrong is thrown as an Error with the number of its line. Comments and blank lines may stand anywhere after
// the banner; lines end with LF or CRLF.
#pragma once
#include <algorithm>
#include <atomic>
#include <complex>
#include <cstring>
#include <limits>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <gossamer/kernels/exec.h>
#include <gossamer/kernels/file.h>

namespace gossamer::matrix_market {

enum class Format { coordinate, array };
enum class Field { real, integer, pattern, complex };
enum class Symmetry { general, symmetric, skew_symmetric, hermitian };

// The words of the banner, in the order of the enumerators.
inline constexpr std::string_view formats[] = {"coordinate", "array"};
inline constexpr std::string_view fields[] = {"real", "integer", "pattern", "complex"};
inline constexpr std::string_view symmetries[] = {"general", "symmetric", "skew-symmetric", "hermitian"};

class Error : public std::runtime_error {
 public:
  Error(int64_t line, const std::string& what) : std::runtime_error(what), line_(line) {}
  int64_t line() const { return line_; }

 private:
  int64_t line_;
};

struct Header {
  Format format = Format::coordinate;
  Field field = Field::real;
  Symmetry symmetry = Symmetry::general;
  int64_t rows = 0, cols = 0;
  int64_t entries = 0;         // lines of data, of which symmetric files have only those of the lower triangle
  const char* body = nullptr;  // what follows the size line
  int64_t line = 1;            // its number
};

// A run of whole lines of the body.
struct Part {
  const char *begin = nullptr, *end = nullptr;
  int64_t line = 0;     // the number of its first line
  int64_t entries = 0;  // those before it
};

inline bool blank(char c) {
  return c == ' ' || (c >= '\t' && c <= '\r' && c != '\n');
}

inline const char* line_end(const char* at, const char* end) {
  const void* found = at == end ? nullptr : std::memchr(at, '\n', static_cast<size_t>(end - at));
  return found ? static_cast<const char*>(found) : end;
}

// The next word of the line that ends at `end`; empty if there is none.
inline std::string_view word(const char*& at, const char* end) {
  while (at < end && blank(*at)) ++at;
  const char* begin = at;
  while (at < end && !blank(*at) && *at != '\n') ++at;
  return {begin, static_cast<size_t>(at - begin)};
}

// For messages: in quotes, short, and printable whatever the file holds.
inline std::string in_quotes(std::string_view text) {
  std::string result = "'";
  for (const char c : text.substr(0, 24)) result += c >= ' ' && c <= '~' ? c : '?';
  return result + (text.size() > 24 ? "…'" : "'");
}

// Whether the line has data: neither blank nor a comment.
inline bool has_data(const char* at) {
  while (blank(*at)) ++at;
  return *at != '%' && *at != '\n';
}

template <size_t n>
int one_of(const std::string_view (&words)[n], std::string_view given, const char* what) {
  std::string lower(given), wanted;
  for (char& c : lower) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  for (size_t k = 0; k < n; ++k) {
    if (lower == words[k]) return static_cast<int>(k);
    wanted.append(k ? ", " : "").append(words[k]);
  }
  throw Error(1, std::string("the ") + what + " is " + in_quotes(given) + ", not one of " + wanted);
}

inline Header read_banner(std::string_view text) {
  const char *at = text.data(), *end = line_end(at, at + text.size());
  std::string_view words[6];
  for (auto& w : words) w = word(at, end);
  constexpr std::string_view banner[] = {"%%matrixmarket"}, object[] = {"matrix"};
  if (text.empty()) throw Error(1, "the file is empty");
  if (words[4].empty() || !words[5].empty() || words[0].substr(0, 2) != "%%")
    throw Error(1, "a MatrixMarket file begins with '%%MatrixMarket matrix', format, field and symmetry, not " +
                       in_quotes({text.data(), static_cast<size_t>(end - text.data())}));
  one_of(banner, words[0], "first word");
  one_of(object, words[1], "object");
  Header h;
  h.format = static_cast<Format>(one_of(formats, words[2], "format"));
  h.field = static_cast<Field>(one_of(fields, words[3], "field"));
  h.symmetry = static_cast<Symmetry>(one_of(symmetries, words[4], "symmetry"));
  h.body = std::min(end + 1, text.data() + text.size());
  h.line = 2;
  const bool pattern = h.field == Field::pattern;
  if (pattern && h.format == Format::array) throw Error(1, "an array file cannot have the field pattern");
  if (pattern && h.symmetry > Symmetry::symmetric) throw Error(1, "a pattern has no values to negate or conjugate");
  if (h.symmetry == Symmetry::hermitian && h.field != Field::complex)
    throw Error(1, "a hermitian file must have the field complex");
  return h;
}

inline int64_t read_size(const char*& at, const char* end, int64_t line, const char* what) {
  const std::string_view given = word(at, end);
  if (given.empty()) throw Error(line, std::string("the number of ") + what + " is missing");
  int64_t size = 0;
  for (const char c : given) {
    if (c < '0' || c > '9')
      throw Error(line, std::string("the number of ") + what + " is " + in_quotes(given) + ", not a size");
    if (__builtin_mul_overflow(size, int64_t{10}, &size) || __builtin_add_overflow(size, int64_t{c - '0'}, &size))
      throw Error(line, std::string("the number of ") + what + " is too large: " + in_quotes(given));
  }
  return size;
}

// The number of values in an array file: whole columns, or what they have on and below (skew: below) the diagonal.
inline int64_t array_entries(const Header& h) {
  int64_t all = 0;
  if (__builtin_mul_overflow(h.rows, h.cols, &all) || all > std::numeric_limits<int64_t>::max() / 16)
    throw Error(h.line, "the array is too large: " + std::to_string(h.rows) + " x " + std::to_string(h.cols));
  if (h.symmetry == Symmetry::general) return all;
  return (all + (h.symmetry == Symmetry::skew_symmetric ? -h.rows : h.rows)) / 2;
}

inline Header read_header(std::string_view text) {
  Header h = read_banner(text);
  const char* end = text.data() + text.size();
  const char* at = h.body;
  for (; at < end && !has_data(at); ++h.line) at = std::min(line_end(at, end) + 1, end);
  if (at == end) throw Error(h.line - (text.back() != '\n'), "the file ends before its size line");
  const char* stop = line_end(at, end);
  h.rows = read_size(at, stop, h.line, "rows");
  h.cols = read_size(at, stop, h.line, "columns");
  if (h.symmetry != Symmetry::general && h.rows != h.cols)
    throw Error(h.line, "a " + std::string(symmetries[static_cast<int>(h.symmetry)]) + " matrix is square, not " +
                            std::to_string(h.rows) + " x " + std::to_string(h.cols));
  h.entries = h.format == Format::array ? array_entries(h) : read_size(at, stop, h.line, "entries");
  if (const auto more = word(at, stop); !more.empty())
    throw Error(h.line, "the size line has " + in_quotes(more) + " after its last number");
  h.body = std::min(stop + 1, end);
  ++h.line;
  return h;
}

// An indptr has a number for every row, also for empty ones: a size line of a few bytes could fill the memory.
inline void check_rows(const Header& h, const MemoryBound& bound) {
  const uint64_t rows = static_cast<uint64_t>(h.rows), width = rows >> 31 ? 8 : 4;
  if (h.format == Format::array || rows < bound.bytes / width) return;
  throw Error(h.line - 1, std::to_string(rows) + " rows for " + std::to_string(h.entries) +
                              " entries are too many for a CSR matrix, whose index for every row takes " +
                              bound.text());
}

// Lines and, among them, entries.
struct Count {
  int64_t lines = 0, entries = 0;
};
inline Count count(const char* at, const char* end) {
  Count result;
  while (at < end) {
    result.entries += has_data(at);
    ++result.lines;
    at = std::min(line_end(at, end) + 1, end);
  }
  return result;
}

// Throws unless the body has the announced number of entries.
inline void check_count(const Header& h, const std::vector<Part>& parts, Count all) {
  if (all.entries < h.entries)
    throw Error(std::max<int64_t>(h.line + all.lines - 1, 1),
                "the file ends after " + std::to_string(all.entries) + " of " + std::to_string(h.entries) + " entries");
  if (all.entries == h.entries) return;
  size_t k = parts.size() - 1;
  while (k > 0 && parts[k].entries > h.entries) --k;
  const char *at = parts[k].begin, *end = parts[k].end;
  int64_t line = parts[k].line, left = h.entries - parts[k].entries;
  for (; left > 0 || !has_data(at); ++line) {
    left -= has_data(at);
    at = std::min(line_end(at, end) + 1, end);
  }
  throw Error(line, "there are more than the announced " + std::to_string(h.entries) + " entries");
}

// f(k) for k = 0 … n-1, each taken by whichever thread is free next, because on a busy machine one of them may be slow.
template <Host E, class F>
void for_each_dynamic(const E& exec, int64_t n, const F& f) {
  const int64_t workers = std::clamp<int64_t>(n / 4, 1, std::max<int64_t>(exec.threads(), 1));
  std::atomic<int64_t> next = 0;
  const auto work = [&](int64_t) {
    for (int64_t k = next++; k < n; k = next++) f(k);
  };
  if (workers == 1) return work(0);
  exec.parallel_for(workers, work);
}

// The body in parts of about equal length. O(bytes).
template <Host E>
std::vector<Part> split(const E& exec, const Header& h, const char* end) {
  constexpr int64_t part_size = 1 << 18;  // bytes: about a millisecond
  const int64_t size = end - h.body;
  const int64_t n = std::max<int64_t>(size / part_size, 1);
  std::vector<Part> parts(static_cast<size_t>(n));
  for (int64_t k = 0; k < n; ++k) {
    parts[k].begin = k == 0 ? h.body : parts[k - 1].end;
    const char* target = std::max(parts[k].begin, h.body + size / n * (k + 1));
    parts[k].end = k + 1 == n ? end : std::min(line_end(target, end) + 1, end);
  }
  std::vector<Count> counts(static_cast<size_t>(n));
  for_each_dynamic(exec, n, [&](int64_t k) { counts[k] = count(parts[k].begin, parts[k].end); });
  Count sum;
  for (int64_t k = 0; k < n; ++k) {
    parts[k].line = h.line + sum.lines;
    parts[k].entries = sum.entries;
    sum.lines += counts[k].lines;
    sum.entries += counts[k].entries;
  }
  check_count(h, parts, sum);
  return parts;
}

}  // namespace gossamer::matrix_market
