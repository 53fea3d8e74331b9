// SPDX-License-Identifier: BSD-3-Clause
// PARDISO of Intel's MKL (PyPI's `mkl`; Intel Simplified Software License): LU and Cholesky by dense blocks. Loaded
// where it is installed, with MKL's sequential layer: no second pool of threads, one result for any number of threads.
#include <ATen/Parallel.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <mutex>

#include "solve/engines/ordering.h"
#include "solve/engines/shared_library.h"

namespace gossamer {
namespace {

// The lib folder of the Python environment that torch is installed in: there PyPI's wheel puts MKL, also for programs
// without Python. torch lies at lib/python3.x/site-packages/torch/lib.
std::string beside_torch() {
  Dl_info torch;
  if (!dladdr(reinterpret_cast<void*>(&at::get_num_threads), &torch)) return "";
  const std::string path = torch.dli_fname;
  const size_t packages = path.rfind("/site-packages/"), python = path.rfind("/python", packages);
  return packages == std::string::npos || python == std::string::npos ? "" : path.substr(0, python + 1);
}

struct Library {
  void (*pardiso)(void** handle, const int* max_factors, const int* which, const int* type, const int* phase,
                  const int* n, const double* values, const int* ptr, const int* indices, int* perm, const int* columns,
                  int* parameters, const int* verbose, double* b, double* x, int* error);
  void (*diagonal)(void** handle, double* factored, double* initial, const int* which, int* error);
  int (*set_threading_layer)(int layer);
  int (*set_interface_layer)(int layer);
  int (*set_num_threads)(int threads);
  void (*get_version)(char* text, int length);
  std::string version;

  Library() {
    if (another_is_linked()) return;
    const std::string folder = beside_torch();
    SharedLibrary library({folder + "libmkl_rt.so.3", folder + "libmkl_rt.so.2", "libmkl_rt.so.3", "libmkl_rt.so.2"});
    if (!library.find("pardiso", pardiso)
             .find("pardiso_getdiag", diagonal)
             .find("MKL_Set_Threading_Layer", set_threading_layer)
             .find("MKL_Set_Interface_Layer", set_interface_layer)
             .find("MKL_Set_Num_Threads_Local", set_num_threads)
             .find("MKL_Get_Version_String", get_version))
      return;
    constexpr int lp64 = 0, sequential = 1;
    set_interface_layer(lp64);
    set_threading_layer(sequential);  // in vain if another part of the program uses this MKL already, hence `OneThread`
    version = "(MKL)";
  }
  // A C++ program that links torch has torch's own MKL among its global symbols, and two of them do not mix.
  static bool another_is_linked() {
    void* program = dlopen(nullptr, RTLD_LAZY);
    return dlsym(program, "mkl_serv_set_num_threads") && !dlsym(program, "MKL_Set_Threading_Layer");
  }
};

const Library& library() {
  static const Library loaded;
  return loaded;
}

struct OneThread {
  int before = library().set_num_threads(1);
  ~OneThread() { library().set_num_threads(before); }
};

enum class Type { positive_definite = 2, general = 11 };

// A matrix and what PARDISO knows of it. PARDISO reads rows: the columns of A are the rows of Aᵀ. Of a symmetric matrix
// it wants the upper triangle by rows, which is the lower one by columns.
class PardisoMatrix {
 public:
  PardisoMatrix(const SquareColumns& A, Type type) : n_(A.n), type_(type), ptr_{0} {
    for (int j = 0; j < A.n; ++j) {
      for (int q = A.ptr[j]; q < A.ptr[j + 1]; ++q) {
        if (type == Type::positive_definite && A.rows[q] < j) continue;
        rows_.push_back(A.rows[q]);
        values_.push_back(A.values[q]);
      }
      ptr_.push_back(static_cast<int>(rows_.size()));
    }
    parameters_[0] = 1;   // all are given here
    parameters_[1] = 2;   // nested dissection
    parameters_[9] = 13;  // a pivot below 10⁻¹³ is replaced, and counted in [13]
    parameters_[34] = 1;  // indices start at 0
    parameters_[55] = 1;  // the diagonal will be asked for
  }
  ~PardisoMatrix() { call(-1, 0, nullptr, nullptr); }
  PardisoMatrix(const PardisoMatrix&) = delete;

  int call(int phase, int columns, double* b, double* x) {
    const OneThread one;
    const int first = 1, type = static_cast<int>(type_), silent = 0;
    int error = 0;
    library().pardiso(state_.data(), &first, &first, &type, &phase, &n_, values_.data(), ptr_.data(), rows_.data(),
                      perm_.data(), &columns, parameters_.data(), &silent, b, x, &error);
    return error;
  }
  // The ordering, found once for the pattern.
  std::vector<int> order() {
    constexpr int analyse = 11;
    perm_.resize(n_);
    parameters_[4] = 2;
    return call(analyse, 1, nullptr, nullptr) ? std::vector<int>() : perm_;
  }
  int factorize(std::vector<int> order) {
    constexpr int analyse_and_factorize = 12;
    perm_ = std::move(order);
    parameters_[4] = 1;
    return call(analyse_and_factorize, 1, nullptr, nullptr);
  }
  void solve(double* x, int64_t columns, bool t) {
    constexpr int substitute = 33, plain = 0, transposed = 2;
    std::vector<double> b(x, x + n_ * columns);
    parameters_[11] = t || type_ == Type::positive_definite ? plain : transposed;
    call(substitute, static_cast<int>(columns), b.data(), x);
  }
  std::vector<double> diagonal() {  // in the order of the steps
    std::vector<double> factored(n_), initial(n_);
    const int first = 1;
    int error = 0;
    library().diagonal(state_.data(), factored.data(), initial.data(), &first, &error);
    return factored;
  }
  int column(int64_t step) const { return perm_[step]; }
  int replaced_pivots() const { return parameters_[13]; }
  SquareColumns columns() const { return {n_, ptr_.data(), rows_.data(), values_.data()}; }

 private:
  int n_;
  Type type_;
  std::vector<int> ptr_, rows_, perm_;
  std::vector<double> values_;
  std::array<void*, 64> state_{};
  std::array<int, 64> parameters_{};
};

class PardisoFactor final : public EngineFactor {
 public:
  PardisoFactor(std::unique_ptr<PardisoMatrix> matrix, Type type)
      : matrix_(std::move(matrix)), type_(type), pivots_(matrix_->columns().n) {
    const std::vector<double> diagonal = matrix_->diagonal();
    for (size_t k = 0; k < diagonal.size(); ++k) pivots_[matrix_->column(k)] = std::abs(diagonal[k]);
  }
  void solve(double* x, int64_t columns, bool t) const override {
    const std::lock_guard lock(mutex_);  // PARDISO has one workspace a matrix
    matrix_->solve(x, columns, t);
  }
  double pivot(int64_t k) const override { return pivots_[k]; }
  // PARDISO does not tell which rows it exchanged: Eigen must find the sign of an LU.
  int sign() const override {
    if (type_ == Type::positive_definite) return 1;
    const SquareColumns A = matrix_->columns();
    const Factored again = eigen.lu(A)->factorize(A);
    return again.factor ? again.factor->sign() : 0;
  }
  // Rows are exchanged within a block of columns only. Pivots may then differ by all digits in a matrix that is far
  // from singular, so they do not tell: `solves` does.
  int64_t lost_pivot(int64_t n) const override { return type_ == Type::general ? -1 : EngineFactor::lost_pivot(n); }

  // Whether some b is solved, |b - A x| ≤ 10⁻¹² (|A| |x| + |b|) in each row after the few refinements that linalg.solve
  // makes as well, by an x that is not as large as only a singular matrix makes it. A is scaled to entries of size 1.
  bool solves() const {
    constexpr int refinements = 3;
    constexpr double enough = 1e-12, largest = 1e14;
    const SquareColumns A = matrix_->columns();
    std::vector<double> b(A.n), x(A.n, 0.0), r, size;
    for (int i = 0; i < A.n; ++i) b[i] = (i * 2654435761u >> 16 & 1) ? 1 : -1;  // no pattern that a matrix might share
    r = b;
    double error = INFINITY, most = 0;
    for (int step = 0; step <= refinements && error > enough; ++step) {
      solve(r.data(), 1, /*t=*/false);
      for (int i = 0; i < A.n; ++i) most = std::max(most, std::abs(x[i] += r[i]));
      r = b;
      size.assign(A.n, 1.0);
      for (int j = 0; j < A.n; ++j)
        for (int q = A.ptr[j]; q < A.ptr[j + 1]; ++q) {
          r[A.rows[q]] -= A.values[q] * x[j];
          size[A.rows[q]] += std::abs(A.values[q] * x[j]);
        }
      error = 0;
      for (int i = 0; i < A.n; ++i) error = std::isfinite(r[i]) ? std::max(error, std::abs(r[i]) / size[i]) : INFINITY;
      if (error == INFINITY) return false;
    }
    return error <= enough && most <= largest;
  }

 private:
  std::unique_ptr<PardisoMatrix> matrix_;
  Type type_;
  std::vector<double> pivots_;
  mutable std::mutex mutex_;
};

class PardisoAnalysis final : public Analysis {
 public:
  PardisoAnalysis(const SquareColumns& A, Type type) : type_(type), order_(PardisoMatrix(A, type).order()) {}

  Factored factorize(const SquareColumns& A) const override {
    constexpr int no_pivot = -4;
    if (order_.empty()) return {};
    auto matrix = std::make_unique<PardisoMatrix>(A, type_);
    const int error = matrix->factorize(order_);
    if (type_ == Type::positive_definite) {
      if (error == no_pivot) return {nullptr, first_bad(matrix->diagonal())};
      if (error) return {};
      return {std::make_unique<PardisoFactor>(std::move(matrix), type_), -1};
    }
    if (error || matrix->replaced_pivots()) return {};  // singular, or in need of more pivoting
    auto factor = std::make_unique<PardisoFactor>(std::move(matrix), type_);
    if (!factor->solves()) return {};
    return {std::move(factor), -1};
  }

 private:
  int64_t first_bad(const std::vector<double>& diagonal) const {
    for (size_t k = 0; k < diagonal.size(); ++k)
      if (!(diagonal[k] > 0)) return order_[k];
    return order_.back();
  }
  Type type_;
  std::vector<int> order_;
};

template <Type type>
std::unique_ptr<Analysis> analyzed(const SquareColumns& A) {
  return std::make_unique<PardisoAnalysis>(A, type);
}

}  // namespace

std::vector<int> pardiso_order(const SquareColumns& A) {
  return library().version.empty() ? std::vector<int>() : PardisoMatrix(A, Type::positive_definite).order();
}

const Engine pardiso = {"pardiso", [] { return library().version; }, analyzed<Type::general>,
                        analyzed<Type::positive_definite>};

}  // namespace gossamer
