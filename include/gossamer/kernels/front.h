// SPDX-License-Identifier: BSD-3-Clause
// The fronts of an assembly tree: where each is in memory, what it gets from those below or above it, and in which
// order they are worked on.
//
// Subtrees of the like work run at once, each on one thread; the fronts above them come one after the other, each on
// all threads. A front adds what its children bring in their order, and its dense products are the same for every
// thread count: so is the result, bit by bit.
#pragma once
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include <gossamer/kernels/assembly_tree.h>
#include <gossamer/kernels/dense_product.h>
#include <gossamer/kernels/exec.h>

namespace gossamer {

// Front s of a factor, or of what is stored like one.
template <class T>
struct Front {
  Block<T> all, J, R;  // the trapezoid, its triangle, and what is below

  Front(const AssemblyTree& tree, int64_t s, T* values)
      : all(by_columns(values + tree.value_ptr[s], tree.height(s), tree.columns(s), tree.height(s))),
        J(all.part(0, 0, all.columns, all.columns)),
        R(all.part(all.columns, 0, all.rows - all.columns, all.columns)) {}
};

namespace kernels {

// The fronts of a tree, divided among threads: subtrees of the like work, in bins, and the fronts above them.
struct TreeParts {
  std::vector<std::vector<int32_t>> bins;  // roots of subtrees, ascending
  std::vector<int32_t> top;                // ascending

  TreeParts(const AssemblyTree& tree, int64_t threads) {
    double total = 0;
    for (int64_t s = 0; s < tree.count(); ++s)
      if (tree.parent[s] < 0) total += tree.work[s];
    constexpr double worth_a_thread = 1e6;
    const double most = threads > 1 ? std::max(total / static_cast<double>(4 * threads), worth_a_thread) : total;
    std::vector<int32_t> roots;
    for (int64_t s = tree.count(); s-- > 0;) {
      if (threads > 1 && tree.work[s] <= most) {
        roots.push_back(static_cast<int32_t>(s));
        s = tree.youngest[s];
      } else {
        top.push_back(static_cast<int32_t>(s));
      }
    }
    std::reverse(top.begin(), top.end());
    bins.resize(std::max<int64_t>(threads, 1));
    std::vector<double> load(bins.size(), 0);
    std::stable_sort(roots.begin(), roots.end(), [&](int32_t a, int32_t b) { return tree.work[a] > tree.work[b]; });
    for (const int32_t s : roots) {
      const auto least = std::min_element(load.begin(), load.end()) - load.begin();
      load[least] += tree.work[s];
      bins[least].push_back(s);
    }
    for (auto& bin : bins) std::sort(bin.begin(), bin.end());
  }
};

// Adds what a child changes to the parent's trapezoid and to the parent's own update.
template <class T>
void add_child(const AssemblyTree& tree, int64_t child, const T* update, const Front<T>& F, T* parents_update) {
  const int64_t n = tree.below(child), columns = F.all.columns, below = F.R.rows;
  const int32_t* to = tree.in_parent.data() + tree.row_ptr[child] + tree.columns(child);
  for (int64_t c = 0; c < n; ++c, update += n) {
    T* column =
        to[c] < columns ? F.all.data + to[c] * F.all.right : parents_update + (to[c] - columns) * below - columns;
    for (int64_t r = c; r < n; ++r) column[to[r]] += update[r];
  }
}

// What the fronts below a front know: each front hands the changes on (R, R) up to its parent, who adds those of its
// children in their order. Symmetric (or skew) changes, of which the lower triangle is kept.
template <class T>
class Ascent {
 public:
  explicit Ascent(const AssemblyTree& tree) : tree_(tree), updates_(tree.count()), children_(tree.count()) {
    for (int64_t s = 0; s < tree.count(); ++s)
      if (tree.parent[s] >= 0) children_[tree.parent[s]].push_back(static_cast<int32_t>(s));
  }

  // Adds the changes of the children of s to the trapezoid F; gives those on (R, R), to be changed by s itself.
  Block<T> gathered(int64_t s, const Front<T>& F) {
    const int64_t n = F.R.rows;
    updates_[s].reset(new T[n * n]);
    const Block<T> update = by_columns(updates_[s].get(), n, n, n);
    for (int64_t c = 0; c < n; ++c) std::fill_n(update.data + c * n + c, n - c, T{0});
    for (const int32_t child : children_[s]) {
      add_child(tree_, child, updates_[child].get(), F, update.data);
      updates_[child].reset();
    }
    return update;
  }

 private:
  const AssemblyTree& tree_;
  std::vector<std::unique_ptr<T[]>> updates_;
  std::vector<std::vector<int32_t>> children_;
};

// The lower triangle is copied into the upper one; `sign` -1 makes it skew.
template <class T>
void mirror(const Block<T>& A, T sign = T{1}) {
  for (int64_t c = 0; c < A.columns; ++c)
    for (int64_t r = 0; r < c; ++r) A(r, c) = sign * A(c, r);
}

// What the fronts above a front know of a symmetric (or skew) matrix S: each front passes S on all its rows on to its
// children, who take the part on theirs.
template <class T>
class Descent {
 public:
  explicit Descent(const AssemblyTree& tree, T sign = T{1})
      : tree_(tree), sign_(sign), fronts_(tree.count()), waiting_(tree.count()) {
    for (int64_t s = 0; s < tree.count(); ++s)
      if (tree.parent[s] >= 0) ++waiting_[tree.parent[s]];
  }

  // S on (R, R) of front s, from its parent; whole, by columns. The last child to take it frees what the parent has.
  std::unique_ptr<T[]> taken(int64_t s) {
    const int64_t n = tree_.below(s);
    std::unique_ptr<T[]> S(new T[n * n]);
    if (n == 0) return S;
    const int64_t p = tree_.parent[s], height = tree_.height(p);
    const int32_t* at = tree_.in_parent.data() + tree_.row_ptr[s] + tree_.columns(s);
    for (int64_t c = 0; c < n; ++c) {
      const T* from = fronts_[p].get() + at[c] * height;
      for (int64_t r = 0; r < n; ++r) S[c * n + r] = from[at[r]];
    }
    if (--waiting_[p] == 0) fronts_[p].reset();
    return S;
  }

  // S on all rows of front s: on (R, R) as taken, on the columns J as found, the triangle of these whole.
  void pass_on(int64_t s, const Front<const T>& found, const T* taken) {
    if (waiting_[s] == 0) return;
    const int64_t height = tree_.height(s), columns = tree_.columns(s), below = height - columns;
    fronts_[s].reset(new T[height * height]);
    T* S = fronts_[s].get();
    std::copy_n(found.all.data, height * columns, S);
    for (int64_t r = 0; r < below; ++r) {
      T* column = S + (columns + r) * height;
      for (int64_t c = 0; c < columns; ++c) column[c] = sign_ * found.R(r, c);
      std::copy_n(taken + r * below, below, column + columns);
    }
  }

 private:
  const AssemblyTree& tree_;
  T sign_;
  std::vector<std::unique_ptr<T[]>> fronts_;
  std::vector<std::atomic<int32_t>> waiting_;  // children that have not taken their part
};

// Runs front(exec, s) for each front after its children: the subtrees at once, then the fronts above them. It gives -1,
// or the column at which it broke down; the first of these ends the walk and is the result, else -1.
template <Host E, class F>
int64_t for_each_front_up(const E& exec, const AssemblyTree& tree, const F& front) {
  const TreeParts parts(tree, exec.threads());
  std::vector<int64_t> broken(parts.bins.size(), tree.n);
  const auto bin = [&](int64_t k) {
    for (const int32_t root : parts.bins[k])
      for (int64_t s = tree.youngest[root]; s <= root; ++s)
        if (const int64_t column = front(Serial(), s); column >= 0) {
          broken[k] = column;
          return;
        }
  };
  if (exec.threads() > 1) exec.parallel_for(static_cast<int64_t>(parts.bins.size()), bin);
  int64_t first = *std::min_element(broken.begin(), broken.end());
  for (const int32_t s : parts.top) {
    if (tree.first[s] >= first) break;  // all fronts before `first` are there, as if they had come one by one
    if (const int64_t column = front(exec, s); column >= 0) first = column;
  }
  return first == tree.n ? -1 : first;
}

// Runs front(exec, s) for each front after its parent: those above the subtrees first, then the subtrees at once.
template <Host E, class F>
void for_each_front_down(const E& exec, const AssemblyTree& tree, const F& front) {
  const TreeParts parts(tree, exec.threads());
  for (size_t k = parts.top.size(); k-- > 0;) front(exec, parts.top[k]);
  if (exec.threads() == 1) return;
  exec.parallel_for(static_cast<int64_t>(parts.bins.size()), [&](int64_t k) {
    for (const int32_t root : parts.bins[k])
      for (int64_t s = root; s >= tree.youngest[root]; --s) front(Serial(), s);
  });
}

}  // namespace kernels
}  // namespace gossamer
