// SPDX-License-Identifier: BSD-3-Clause
// With V the basis of j vectors, H = Vᵀ M T V (j, j) and its eigenpairs (θ, s): x = V s has the residual β |s_j|, where
// β is the norm of the next vector. A restart keeps the best V s and the next vector.
#include "spectral/lanczos.h"

#include <ATen/ATen.h>
#include <gossamer/convergence.h>
#include <gossamer/kernels/basis.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>

#include "core/launch.h"
#include "signals/signals.h"

namespace gossamer {
namespace {

constexpr double eps = std::numeric_limits<double>::epsilon(), tiny = std::numeric_limits<double>::min();

// Rounding errors of ill-conditioned solves may keep the residual above what is asked for: it is then accepted up to
// `most` times that, when restarts do not make it smaller any more.
struct Patience {
  double most, least = std::numeric_limits<double>::infinity();
  int without_progress = 0;

  bool worn_out(double residual) {
    without_progress = residual < 0.5 * least ? 0 : without_progress + 1;
    least = std::min(least, residual);
    return residual <= most && without_progress >= 4;
  }
};

Tensor numbers(at::IntArrayRef size) {
  return at::zeros(size, at::TensorOptions().dtype(at::kDouble));
}

// An M-orthonormal basis that grows vector by vector, beside one that is given.
class Basis {
 public:
  Basis(const SpectralTransform& T, int64_t most, const Pairs& beside)
      : T_(T), beside_(beside), V_(numbers({most, T.n()})), MV_(T.has_mass() ? numbers({most, T.n()}) : V_) {}

  Tensor V(int64_t j) const { return V_.narrow(0, j, 1); }
  Tensor MV(int64_t j) const { return MV_.narrow(0, j, 1); }

  // w loses what the basis of j vectors and the one beside it span; h (j) is what it had. Twice is enough.
  void orthogonalise(const Tensor& w, int64_t j, std::vector<double>& h) const {
    h.assign(static_cast<size_t>(j), 0.0);
    std::vector<double> c(static_cast<size_t>(std::max(j, count_beside())));
    for (int pass = 0; pass < 2; ++pass) {
      project(w, count_beside(), beside_.X, beside_.MX, c);
      project(w, j, V_, MV_, c);
      for (size_t i = 0; i < h.size(); ++i) h[i] += c[i];
    }
  }

  // w / ‖w‖ as vector j; returns ‖w‖, and adds nothing if that is at most `least`.
  double append(const Tensor& w, int64_t j, double least) const {
    const Tensor Mw = T_.mass(w);
    const double norm = std::sqrt(std::max(row_products(Mw, w).item<double>(), 0.0));
    if (!(norm > least)) return norm;
    V(j).copy_(w.div(norm));
    if (T_.has_mass()) MV(j).copy_(Mw.div(norm));
    return norm;
  }

  // A random vector as vector j; false if the basis is the whole space.
  bool append_random(int64_t j, uint64_t seed) const {
    const Tensor w = random_row(T_.n(), seed);
    const double before = norm_of_row(w);
    std::vector<double> h;
    orthogonalise(w, j, h);
    const double after = norm_of_row(w);
    if (!(after > 1e-8 * before)) return false;
    w.div_(after);
    orthogonalise(w, j, h);
    return append(w, j, 0) > 0;
  }

  // The first vectors become S V, S (m, j), and the next one vector j.
  void restart(const Tensor& S, int64_t j) const {
    for (const Tensor& basis : {V_, MV_}) {
      basis.narrow(0, 0, S.size(0)).copy_(combined(S, basis));
      basis[S.size(0)].copy_(basis[j]);
      if (!T_.has_mass()) break;
    }
  }

  Pairs pairs(std::vector<double> theta, const Tensor& S) const {
    const Tensor X = combined(S, V_);
    return {std::move(theta), X, T_.has_mass() ? combined(S, MV_) : X};
  }

 private:
  int64_t count_beside() const { return beside_.X.defined() ? beside_.X.size(0) : 0; }
  void project(const Tensor& w, int64_t j, const Tensor& V, const Tensor& MV, std::vector<double>& c) const {
    if (j == 0) return;
    kernels::coefficients(torch_pool(), j, T_.n(), ptr<double>(MV), ptr<double>(w), c.data());
    kernels::subtract(torch_pool(), j, T_.n(), ptr<double>(V), c.data(), mutable_ptr<double>(w));
  }
  Tensor combined(const Tensor& S, const Tensor& V) const {
    const Tensor out = at::empty({S.size(0), T_.n()}, S.options());
    kernels::combine(torch_pool(), S.size(0), S.size(1), T_.n(), ptr<double>(S), ptr<double>(V),
                     mutable_ptr<double>(out));
    return out;
  }

  const SpectralTransform& T_;
  const Pairs& beside_;
  Tensor V_, MV_;
};

// Eigenpairs of H (j, j), best first: θ, and their vectors as rows.
std::pair<std::vector<double>, Tensor> ritz(const Tensor& H, int64_t j, Which which) {
  const auto [theta, S] = at::linalg_eigh(H.narrow(0, 0, j).narrow(1, 0, j));
  std::vector<int64_t> order(static_cast<size_t>(j));
  std::iota(order.begin(), order.end(), 0);
  const double* t = ptr<double>(theta);
  std::stable_sort(order.begin(), order.end(),
                   [&](int64_t a, int64_t b) { return rank(which, t[a]) > rank(which, t[b]); });
  std::vector<double> sorted;
  for (const int64_t i : order) sorted.push_back(t[i]);
  return {sorted, S.index_select(1, at::tensor(order)).t().contiguous()};
}

// search.k pairs in the complement of `beside`. A single one that is sure not to exceed `rival` in rank may be rough.
Pairs sweep(const SpectralTransform& T, const Search& search, const Pairs& beside, const double* rival) {
  const int64_t k = search.k, ncv = search.ncv;
  const Basis basis(T, ncv + 1, beside);
  const Tensor H = numbers({ncv, ncv});
  const auto entry = [&H, ncv](int64_t i, int64_t j) -> double& { return mutable_ptr<double>(H)[i * ncv + j]; };
  uint64_t seed = 100;
  std::vector<double> h, theta;
  Tensor S, w = search.start.clone();
  basis.orthogonalise(w, 0, h);
  if (!(basis.append(w, 0, 0) > 0)) basis.append_random(0, ++seed);
  double size = 0;
  const double tol = search.tol > 0 ? search.tol : 1e-13;
  Patience patience{search.tol > 0 ? 1.0 : 1e3};
  for (int64_t restarts = 0, first = 0; restarts < search.maxiter; ++restarts) {
    double beta = 0;
    int64_t j = first;
    for (bool more = true; more && j < ncv; ++j) {
      throw_if_interrupted();
      w = T.apply(basis.V(j), basis.MV(j)).clone();
      basis.orthogonalise(w, j + 1, h);
      for (int64_t i = 0; i <= j; ++i) entry(i, j) = entry(j, i) = h[static_cast<size_t>(i)];
      for (const double c : h) size = std::max(size, std::abs(c));
      beta = basis.append(w, j + 1, 100 * eps * size);
      if (beta > 100 * eps * size) continue;
      beta = 0;  // an invariant space: what is beside it is found from another vector
      more = basis.append_random(j + 1, ++seed);
    }
    std::tie(theta, S) = ritz(H, j, search.which);
    TORCH_CHECK_VALUE(std::isfinite(theta[0]), "eigsh: the iteration met numbers that are not finite");
    const auto residual = [&](int64_t i) { return std::abs(beta * ptr<double>(S)[i * j + j - 1]); };
    const int64_t found = std::min(k, j);
    double worst = 0;  // residual, in units of what is asked for
    for (int64_t i = 0; i < found; ++i)
      worst = std::max(worst, residual(i) / std::max({tol * std::abs(theta[i]), 16 * eps * size, tiny}));
    const bool converged = worst <= 1 || patience.worn_out(worst);
    const bool beaten = rival && rank(search.which, theta[0]) + 2 * residual(0) < *rival;
    if (converged || beaten) {
      theta.resize(static_cast<size_t>(found));
      return basis.pairs(theta, S.narrow(0, 0, found).contiguous());
    }
    first = std::min(k + (ncv - k) / 2, ncv - 1);
    basis.restart(S.narrow(0, 0, first).contiguous(), j);
    H.zero_();
    for (int64_t i = 0; i < first; ++i) entry(i, i) = theta[i];
  }
  throw_not_converged("eigsh", "Lanczos did not converge in ", search.maxiter,
                      " restarts; give sigma, a larger ncv, maxiter or tol");
}

// The pairs of `all` with the k largest ranks.
Pairs best(const Pairs& all, int64_t k, Which which) {
  std::vector<int64_t> order(all.theta.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](int64_t a, int64_t b) { return rank(which, all.theta[a]) > rank(which, all.theta[b]); });
  order.resize(static_cast<size_t>(k));
  Pairs result;
  for (const int64_t i : order) result.theta.push_back(all.theta[i]);
  const Tensor rows = at::tensor(order);
  result.X = all.X.index_select(0, rows);
  result.MX = all.MX.is_same(all.X) ? result.X : all.MX.index_select(0, rows);
  return result;
}

Pairs joined(const Pairs& a, const Pairs& b) {
  Pairs all = a;
  all.theta.insert(all.theta.end(), b.theta.begin(), b.theta.end());
  all.X = at::cat({a.X, b.X});
  all.MX = a.MX.is_same(a.X) ? all.X : at::cat({a.MX, b.MX});
  return all;
}

// One kind of θ, in the complement of `beside`.
Pairs of_one_kind(const SpectralTransform& T, const Search& search, const Pairs& beside) {
  Pairs found = sweep(T, search, beside, nullptr);
  for (uint64_t seed = 10;; ++seed) {
    double worst = std::numeric_limits<double>::infinity(), size = 0;
    for (const double theta : found.theta) {
      worst = std::min(worst, rank(search.which, theta));
      size = std::max(size, std::abs(theta));
    }
    const Pairs known = beside.X.defined() ? joined(beside, found) : found;
    const int64_t ncv = std::min<int64_t>({search.ncv, 14, T.n() - known.X.size(0)});
    if (ncv < 2) return found;
    const Search one{1, search.which, ncv, search.maxiter, search.tol, random_row(T.n(), seed)};
    const double rival = worst + 1e-10 * size;
    const Pairs extra = sweep(T, one, known, &rival);
    if (extra.theta.empty() || rank(search.which, extra.theta[0]) <= rival) return found;
    found = best(joined(found, extra), search.k, search.which);
  }
}

}  // namespace

Which which_named(c10::string_view name) {
  static const std::map<std::string, Which> names = {{"LM", Which::largest_magnitude},
                                                     {"SM", Which::smallest_magnitude},
                                                     {"LA", Which::largest},
                                                     {"SA", Which::smallest},
                                                     {"BE", Which::both_ends}};
  const auto found = names.find(std::string(name));
  TORCH_CHECK_VALUE(found != names.end(), "eigsh: which must be \"LM\", \"SM\", \"LA\", \"SA\" or \"BE\", not \"", name,
                    "\"");
  return found->second;
}

double rank(Which which, double theta) {
  switch (which) {
    case Which::largest_magnitude:
      return std::abs(theta);
    case Which::smallest_magnitude:
      return -std::abs(theta);
    case Which::smallest:
      return -theta;
    default:
      return theta;
  }
}

Pairs lanczos(const SpectralTransform& T, const Search& search) {
  if (search.which != Which::both_ends) return of_one_kind(T, search, {});
  Search high = search, low = search;  // the larger half from the high end, as in SciPy
  high.which = Which::largest, high.k = search.k - search.k / 2;
  low.which = Which::smallest, low.k = search.k / 2;
  const Pairs above = of_one_kind(T, high, {});
  return low.k == 0 ? above : joined(above, of_one_kind(T, low, above));
}

}  // namespace gossamer
