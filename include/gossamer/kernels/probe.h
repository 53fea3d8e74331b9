// SPDX-License-Identifier: BSD-3-Clause
// The places of the entries of a matrix that can only be multiplied with, J v, from a number of products that does not
// grow with its size.
//
// The columns are hashed into buckets, anew in each of a few tables. A bucket is probed with a random weight r_j on
// each of its columns, and again with r_j times each digit of j in some base:
//
//   y = Σ_{j in bucket} r_j J_ij,    z_k = Σ_{j in bucket} digit_k(j) r_j J_ij
//
// A row i with one entry in a bucket tells its column by the quotients z_k / y = digit_k(j), whole numbers. Its share
// is then taken out of the other tables, where another entry may be left alone, and so on until nothing is left
// (peeling, as in an invertible Bloom lookup table). A row is done if nothing is left and the entries found explain one
// more product, J v with random v. Others need more buckets.
//
// Work: O(tables · n) for the seeds of a product, O(probes) a row for peeling. Rows are independent of each other.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include <gossamer/kernels/exec.h>
#include <gossamer/kernels/types.h>

namespace gossamer::kernels {

// Which probes there are. Probe s is table s / (buckets · weights), then bucket, then weight: r_j, or r_j times a
// digit.
struct Probes {
  int64_t cols, buckets;
  uint64_t seed;
  int64_t base, digits;
  static constexpr int64_t tables = 5;

  // Digits so small that rounding errors of T, a thousand times over, leave a quotient beside its whole number.
  template <class T>
  static Probes of(int64_t cols, int64_t buckets, uint64_t seed) {
    const int64_t base = std::is_same_v<T, double> ? int64_t{1} << 26 : int64_t{1} << 8;
    int64_t digits = 1;
    for (int64_t reach = base; reach < cols; reach *= base) ++digits;
    return {cols, buckets, seed, base, digits};
  }

  int64_t weights() const { return digits + 1; }
  int64_t count() const { return tables * buckets * weights(); }

  // Steele, Lea and Flood's finaliser: every bit of the result depends on every bit of z.
  static uint64_t mixed(uint64_t z) {
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  uint64_t random(int64_t j, int64_t stream) const {
    return mixed(mixed(seed * 0x9e3779b97f4a7c15u + static_cast<uint64_t>(stream)) + static_cast<uint64_t>(j));
  }
  int64_t bucket(int64_t j, int64_t table) const {
    return static_cast<int64_t>(random(j, table) % static_cast<uint64_t>(buckets));
  }
  double weight(int64_t j) const { return 1 + static_cast<double>(random(j, tables) >> 11) * 0x1p-53; }
  // Of the vector v that checks: 1 to 2, with either sign.
  double direction(int64_t j) const {
    const uint64_t bits = random(j, tables + 1);
    return (bits & 1 ? -1 : 1) * (1 + static_cast<double>(bits >> 11) * 0x1p-53);
  }
  int64_t digit(int64_t j, int64_t k) const {
    for (; k > 0; --k) j /= base;
    return j % base;
  }
};

// What is a rounding error beside the numbers it came from.
template <class T>
double negligible() {
  return std::pow(static_cast<double>(std::numeric_limits<T>::epsilon()), 2.0 / 3.0);
}

// How far from a whole number a quotient may be. Several entries in a bucket may look like one by chance; what is then
// taken out wrongly shows in other tables, and is put back when it is found there.
template <class T>
constexpr double whole_window() {
  return std::is_same_v<T, double> ? 0x1p-16 : 0x1p-6;
}

template <class T>
void probe_direction(const Probes& probes, T* v) {
  for (int64_t j = 0; j < probes.cols; ++j) v[j] = static_cast<T>(probes.direction(j));
}

// The vectors to multiply with, probes first … last - 1: seeds (last - first, cols).
template <class T>
void probe_seeds(const Probes& probes, int64_t first, int64_t last, T* seeds) {
  const int64_t n = probes.cols, weights = probes.weights(), table_size = probes.buckets * weights;
  std::fill(seeds, seeds + (last - first) * n, T{0});
  for (int64_t t = first / table_size; t * table_size < last; ++t)
    for (int64_t j = 0; j < n; ++j) {
      const int64_t s = t * table_size + probes.bucket(j, t) * weights;
      if (s + weights <= first || s >= last) continue;
      // r_j is rounded to T before it is used, so that each digit's weight is a multiple of the same number.
      const T r = static_cast<T>(probes.weight(j));
      for (int64_t k = std::max<int64_t>(first - s, 0); k < std::min(weights, last - s); ++k)
        seeds[(s + k - first) * n + j] = k == 0 ? r : static_cast<T>(static_cast<T>(probes.digit(j, k - 1)) * r);
    }
}

enum class Row : int8_t { open = 0, done = 1, not_finite = 2 };

struct Found {
  int64_t column;
  double value;  // of J, times r of the column
};

// Entries from `first` on, each column once, without those that were taken out and put back.
inline void merge(std::vector<Found>& found, size_t first, double small) {
  std::sort(found.begin() + static_cast<int64_t>(first), found.end(),
            [](const Found& a, const Found& b) { return a.column < b.column; });
  size_t kept = first;
  for (size_t k = first; k < found.size();) {
    Found sum = found[k];
    while (++k < found.size() && found[k].column == sum.column) sum.value += found[k].value;
    if (std::abs(sum.value) > small) found[kept++] = sum;
  }
  found.resize(kept);
}

// One row: `cells` are its products with all probes, and are used up. Entries are appended to `found`.
template <class T>
Row peel(const Probes& probes, double product, double* cells, std::vector<Found>& found) {
  const int64_t weights = probes.weights(), buckets = probes.buckets, count = probes.count();
  double scale = 0;
  bool finite = std::isfinite(product);
  for (int64_t s = 0; s < count; s += weights) scale = std::max(scale, std::abs(cells[s]));
  for (int64_t s = 0; s < count; ++s) finite &= std::isfinite(cells[s]);
  if (!finite) return Row::not_finite;
  const double small = negligible<T>() * scale;
  const size_t first = found.size(), most = first + static_cast<size_t>(Probes::tables * buckets);

  const auto column_of = [&](const double* cell) -> int64_t {  // -1: more than one entry is in it
    int64_t j = 0;
    for (int64_t k = probes.digits; k > 0; --k) {
      const double digit = cell[k] / cell[0], whole = std::round(digit);
      if (!(std::abs(digit - whole) < whole_window<T>() && whole >= 0 && whole < static_cast<double>(probes.base)))
        return -1;
      j = j * probes.base + static_cast<int64_t>(whole);
    }
    return j < probes.cols ? j : -1;
  };
  for (bool more = true; more && found.size() < most;) {
    more = false;
    for (int64_t s = 0; s < count && found.size() < most; s += weights) {
      if (std::abs(cells[s]) <= small) continue;
      const int64_t j = column_of(cells + s), t = s / (buckets * weights);
      if (j < 0 || (t * buckets + probes.bucket(j, t)) * weights != s) continue;
      const double value = cells[s];
      found.push_back({j, value});
      for (int64_t other = 0; other < Probes::tables; ++other) {
        double* cell = cells + (other * buckets + probes.bucket(j, other)) * weights;
        cell[0] -= value;
        for (int64_t k = 1; k < weights; ++k) cell[k] -= value * static_cast<double>(probes.digit(j, k - 1));
      }
      more = true;
    }
  }
  bool done = true;
  for (int64_t s = 0; s < count; ++s)
    done &= std::abs(cells[s]) <= small * (s % weights == 0 ? 1 : static_cast<double>(probes.base));
  double sum = 0, size = std::abs(product);
  for (size_t k = first; k < found.size(); ++k) {
    const double share = found[k].value / probes.weight(found[k].column) * probes.direction(found[k].column);
    sum += share, size += std::abs(share);
  }
  done = done && std::abs(sum - product) <= negligible<T>() * size;
  if (!done) found.resize(first);
  merge(found, first, small);
  return done ? Row::done : Row::open;
}

// The entries of the rows `open` (count of them) of a matrix of m rows, from Y (probes.count(), m) and Y v = `product`
// (m,). status: count; places: pairs (row, column), by the order of `open`.
template <Host E, class T>
std::vector<std::pair<int64_t, int64_t>> peel_rows(const E& exec, const Probes& probes, int64_t m, const T* Y,
                                                   const T* product, int64_t count, const int64_t* open,
                                                   int8_t* status) {
  constexpr int64_t block = 256;  // rows of Y that are read together: it is stored probe by probe
  const int64_t blocks = (count + block - 1) / block, size = probes.count();
  std::vector<std::vector<std::pair<int64_t, int64_t>>> of_block(static_cast<size_t>(blocks));
  exec.parallel_for(blocks, [&](int64_t b) {
    const int64_t begin = b * block, end = std::min(begin + block, count);
    std::vector<double> cells(static_cast<size_t>((end - begin) * size));
    for (int64_t s = 0; s < size; ++s)
      for (int64_t q = begin; q < end; ++q) cells[(q - begin) * size + s] = static_cast<double>(Y[s * m + open[q]]);
    std::vector<Found> found;
    for (int64_t q = begin; q < end; ++q) {
      found.clear();
      const double p = static_cast<double>(product[open[q]]);
      status[q] = static_cast<int8_t>(peel<T>(probes, p, cells.data() + (q - begin) * size, found));
      for (const Found& entry : found) of_block[b].emplace_back(open[q], entry.column);
    }
  });
  std::vector<std::pair<int64_t, int64_t>> places;
  for (const auto& some : of_block) places.insert(places.end(), some.begin(), some.end());
  return places;
}

// The rows in which J does not multiply v as it should, in order, in one pass over J. A row fits if
//
//   |(J v)_i - product_i| ≤ share size_i + floor max_k size_k,    size_i = Σ_j |J_ij v_j| + |product_i|, finite
template <Host E, class T, class I>
std::vector<int64_t> mismatched_rows(const E& exec, const Csr<T, I>& J, const T* v, const T* product, double share,
                                     double floor) {
  struct Part {
    double largest = 0;
    std::vector<std::pair<int64_t, double>> doubtful;  // a row that `share` alone does not excuse, and by how much
  };
  std::vector<Part> parts(std::clamp<int64_t>(J.nnz / 65536, 1, exec.threads()));
  exec.parallel_for(static_cast<int64_t>(parts.size()), [&](int64_t k) {
    Part& part = parts[k];
    const RowRange rows = row_range(J, k, static_cast<int64_t>(parts.size()));
    for (int64_t i = rows.begin; i < rows.end; ++i) {
      double sum = 0, size = std::abs(static_cast<double>(product[i]));
      for (int64_t p = J.indptr[i]; p < J.indptr[i + 1]; ++p) {
        const double term = static_cast<double>(J.values[p]) * static_cast<double>(v[J.indices[p]]);
        sum += term, size += std::abs(term);
      }
      const double over =
          std::isfinite(size) ? std::abs(sum - static_cast<double>(product[i])) - share * size : INFINITY;
      if (std::isfinite(size)) part.largest = std::max(part.largest, size);
      if (!(over <= 0)) part.doubtful.emplace_back(i, over);
    }
  });
  double largest = 0;
  for (const Part& part : parts) largest = std::max(largest, part.largest);
  std::vector<int64_t> found;
  for (const Part& part : parts)
    for (const auto& [row, over] : part.doubtful)
      if (!(over <= floor * largest)) found.push_back(row);
  return found;
}

// Under Pool, compiled once: src/cpu/probe.cpp.
#define GOSSAMER_MISMATCH(T, I, ...)                                                                                   \
  __VA_ARGS__ template std::vector<int64_t> mismatched_rows(const Pool&, const Csr<T, I>&, const T*, const T*, double, \
                                                            double);
#define GOSSAMER_PROBE(T, ...)                                                \
  __VA_ARGS__ template void probe_direction(const Probes&, T*);               \
  __VA_ARGS__ template void probe_seeds(const Probes&, int64_t, int64_t, T*); \
  __VA_ARGS__ template std::vector<std::pair<int64_t, int64_t>> peel_rows(    \
      const Pool&, const Probes&, int64_t, const T*, const T*, int64_t, const int64_t*, int8_t*);
#ifdef GOSSAMER_COMPILED
GOSSAMER_PROBE(float, extern)
GOSSAMER_PROBE(double, extern)
GOSSAMER_FOR_EACH_TYPE(GOSSAMER_MISMATCH, extern)
#endif

}  // namespace gossamer::kernels
