// SPDX-License-Identifier: BSD-3-Clause
#include "solve/device/cudss.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <map>
#include <mutex>

#include "core/host.h"
#include "solve/device/cudss_declarations.h"
#include "solve/engines/shared_library.h"

namespace gossamer {
namespace {

namespace abi = cudss_abi;

// Where `pip install nvidia-cudss-cu13` puts it; torch lies at site-packages/torch/lib. Empty without Python.
std::string beside_torch() {
  Dl_info torch;
  if (!dladdr(reinterpret_cast<void*>(&at::get_num_threads), &torch)) return "";
  const std::string path = torch.dli_fname, packages = "/site-packages/";
  const size_t found = path.rfind(packages);
  return found == std::string::npos ? "" : path.substr(0, found + packages.size()) + "nvidia/cu13/lib/";
}

struct Library : abi::Functions {
  std::string version;

  Library() {
    SharedLibrary library({beside_torch() + "libcudss.so.1", "libcudss.so.1"});
    if (!library.find("cudssCreate", create)
             .find("cudssSetStream", set_stream)
             .find("cudssGetProperty", property)
             .find("cudssConfigCreate", config_create)
             .find("cudssConfigDestroy", config_destroy)
             .find("cudssConfigSet", config_set)
             .find("cudssDataCreate", data_create)
             .find("cudssDataDestroy", data_destroy)
             .find("cudssDataGet", data_get)
             .find("cudssMatrixCreateDn", matrix_create_dense)
             .find("cudssMatrixCreateCsr", matrix_create_csr)
             .find("cudssMatrixSetValues", matrix_set_values)
             .find("cudssMatrixDestroy", matrix_destroy)
             .find("cudssExecute", execute))
      return;
    int numbers[3] = {};
    for (const abi::Property part : {abi::major, abi::minor, abi::patch})
      if (property(part, &numbers[part]) != abi::success) return;
    if (numbers[0] == abi::version)
      version = std::to_string(numbers[0]) + "." + std::to_string(numbers[1]) + "." + std::to_string(numbers[2]);
  }
};

const Library& library() {
  static const Library loaded;
  return loaded;
}

void check(abi::Status status, const char* what) {
  TORCH_CHECK(status == abi::success, "cudss: ", what, " failed with status ", static_cast<int>(status));
}

// While it lives, this thread alone calls cuDSS, on the device and the stream of the caller. There is one handle a
// device, for good: its end could come after that of CUDA.
class Session {
 public:
  explicit Session(at::Device device) : lock_(mutex()), guard_(device) {
    static auto* handles = new std::map<at::DeviceIndex, abi::Pointer>;
    abi::Pointer& known = (*handles)[device.index()];
    if (!known) check(library().create(&known), "cudssCreate");
    handle = known;
    const c10::Stream stream = c10::impl::VirtualGuardImpl(device.type()).getStream(device);
    check(library().set_stream(handle, stream.native_handle()), "cudssSetStream");
  }
  abi::Pointer handle;

 private:
  static std::mutex& mutex() {
    static auto* one = new std::mutex;
    return *one;
  }
  std::lock_guard<std::mutex> lock_;
  c10::DeviceGuard guard_;
};

// A dense matrix of cuDSS's, (n, k) by columns: a tensor (k, n).
class Columns {
 public:
  explicit Columns(const Tensor& t) {
    check(library().matrix_create_dense(&matrix, t.size(1), t.size(0), t.size(1), t.const_data_ptr(), abi::float64,
                                        abi::by_columns),
          "cudssMatrixCreateDn");
  }
  ~Columns() { library().matrix_destroy(matrix); }
  Columns(const Columns&) = delete;
  abi::Pointer matrix = nullptr;
};

// A pattern that was analysed, and the factors of the values on it that came last.
class Problem {
 public:
  Problem(const Tensor& indptr, const Tensor& indices, const Tensor& values, bool symmetric)
      : indptr_(indptr.to(at::kInt)), indices_(indices.to(at::kInt)), values_(values) {
    const int64_t n = indptr.size(0) - 1;
    const Session session(values.device());
    check(library().config_create(&config_), "cudssConfigCreate");
    check(library().data_create(session.handle, &data_), "cudssDataCreate");
    check(library().matrix_create_csr(&matrix_, n, n, indices.size(0), indptr_.const_data_ptr(), nullptr,
                                      indices_.const_data_ptr(), values_.const_data_ptr(), abi::int32, abi::int32,
                                      abi::float64, symmetric ? abi::positive_definite : abi::general,
                                      symmetric ? abi::lower : abi::full, abi::zero),
          "cudssMatrixCreateCsr");
    check(run(session, abi::analysis, nullptr, nullptr), "the analysis");
  }
  ~Problem() {
    try {
      const Session session(values_.device());
      library().matrix_destroy(matrix_);
      library().data_destroy(session.handle, data_);
      library().config_destroy(config_);
    } catch (...) {  // CUDA may be gone by now, and its memory with it
    }
  }
  Problem(const Problem&) = delete;

  // False where a pivot was replaced or, of a positive definite matrix, not positive.
  bool factorize(const Tensor& values) {
    const Session session(values.device());
    values_ = values;
    check(library().matrix_set_values(matrix_, values_.const_data_ptr()), "cudssMatrixSetValues");
    if (run(session, abi::factorization, nullptr, nullptr) != abi::success) return false;
    return number(session, abi::info) == 0 && number(session, abi::replaced_pivots) == 0;
  }

  // x for b, both (k, n); undefined where cuDSS has no transposed solve.
  Tensor solve(const Tensor& b, bool t) const {
    const Session session(b.device());
    const int mode = t ? abi::transposed : abi::normal;
    const Tensor x = at::empty_like(b);
    const Columns right(b), left(x);
    abi::Status status = library().config_set(config_, abi::solve_mode, &mode, sizeof(mode));
    if (status == abi::success) status = run(session, abi::solve, left.matrix, right.matrix);
    if (t && status == abi::not_supported) return {};
    check(status, "the solve");
    return x;
  }

 private:
  abi::Status run(const Session& session, abi::Phase phase, abi::Pointer x, abi::Pointer b) const {
    return library().execute(session.handle, phase, config_, data_, matrix_, x, b);
  }
  int number(const Session& session, abi::Fact fact) const {
    int value = 0;
    size_t written = 0;
    check(library().data_get(session.handle, data_, fact, &value, sizeof(value), &written), "cudssDataGet");
    return value;
  }

  Tensor indptr_, indices_, values_;  // cuDSS reads them where they are
  abi::Pointer config_ = nullptr, data_ = nullptr, matrix_ = nullptr;
};

// Problems that nobody uses, with what was found out of their pattern.
struct Spares {
  std::mutex mutex;
  std::map<bool, std::vector<std::unique_ptr<Problem>>> of_kind;  // symmetric or not

  std::unique_ptr<Problem> take(bool symmetric) {
    const std::lock_guard lock(mutex);
    auto& spares = of_kind[symmetric];
    if (spares.empty()) return nullptr;
    auto last = std::move(spares.back());
    spares.pop_back();
    return last;
  }
};

// The factors of one head; when they are dropped, their analysis serves others.
class Head {
 public:
  Head(const DevicePattern& A, Tensor values, bool symmetric)
      : A_(A.tensors), values_(std::move(values)), symmetric_(symmetric), spares_(A.kept_by_library<Spares>()) {
    problem_ = spares_->take(symmetric);
    if (!problem_) problem_ = std::make_unique<Problem>(A_[0], A_[1], values_, symmetric);
    is_good = problem_->factorize(values_);
  }
  ~Head() {
    const std::lock_guard lock(spares_->mutex);
    spares_->of_kind[symmetric_].push_back(std::move(problem_));
  }
  Head(const Head&) = delete;

  Tensor solve(const Tensor& b, bool t) const {
    const Tensor x = problem_->solve(b, t && !symmetric_);
    if (x.defined()) return x;
    const std::lock_guard lock(mutex_);
    if (!of_transpose_) {  // this cuDSS has no transposed solve for such a matrix: Aᵀ is factored, too
      const Tensor values = values_.index_select(0, A_[4]);
      of_transpose_ = std::make_unique<Problem>(A_[2], A_[3], values, false);
      of_transpose_->factorize(values);
    }
    return of_transpose_->solve(b, false);
  }
  bool is_good = false;

 private:
  std::vector<Tensor> A_;
  Tensor values_;
  bool symmetric_;
  std::shared_ptr<Spares> spares_;
  std::unique_ptr<Problem> problem_;
  mutable std::mutex mutex_;
  mutable std::unique_ptr<Problem> of_transpose_;
};

class FactoredByCudss final : public DeviceEngineFactor, public std::enable_shared_from_this<FactoredByCudss> {
 public:
  using Heads = std::vector<std::shared_ptr<const Head>>;
  using Ours = std::function<Objects<FactoredMatrix>()>;
  FactoredByCudss(Heads heads, bool symmetric, Ours ours)
      : heads_(std::move(heads)), symmetric_(symmetric), ours_(std::move(ours)) {}

  const char* engine() const override { return "cudss"; }
  bool symmetric() const override { return symmetric_; }
  Tensor good(const Tensor& values) const override {
    return at::ones({static_cast<int64_t>(heads_.size())}, values.options().dtype(at::kBool));
  }
  Tensor solve(const Tensor& b, bool t) const override {
    std::vector<Tensor> x;
    for (size_t h = 0; h < heads_.size(); ++h)
      x.push_back(heads_[h]->solve(b.select(1, static_cast<int64_t>(h)).t().contiguous(), t).t());
    return at::stack(x, 1);
  }
  Tensor log_abs_det() const override {
    return for_heads(our_factors(), 0, [](const DeviceFactor& f, int64_t, int64_t) { return f.log_abs_det(); });
  }
  Tensor sign() const override {
    return for_heads(our_factors(), 0, [](const DeviceFactor& f, int64_t, int64_t) { return f.sign(); });
  }
  std::shared_ptr<const DeviceEngineFactor> heads(int64_t first, int64_t count) const override {
    const auto ours = [all = shared_from_this(), first, count] {
      const auto factors = all->our_factors();
      return Objects<FactoredMatrix>(factors.begin() + first, factors.begin() + first + count);
    };
    return std::make_shared<FactoredByCudss>(Heads(heads_.begin() + first, heads_.begin() + first + count), symmetric_,
                                             ours);
  }

 private:
  const Objects<FactoredMatrix>& our_factors() const {
    std::call_once(made_, [this] { our_factors_ = ours_(); });
    return our_factors_;
  }

  Heads heads_;
  bool symmetric_;
  Ours ours_;
  mutable std::once_flag made_;
  mutable Objects<FactoredMatrix> our_factors_;
};

}  // namespace

std::string cudss_version() {
  return library().version;
}

std::shared_ptr<const DeviceEngineFactor> factored_by_cudss(const DevicePattern& A, const Tensor& values,
                                                            bool symmetric,
                                                            std::function<Objects<FactoredMatrix>()> ours) {
  FactoredByCudss::Heads heads;
  for (int64_t h = 0; h < values.size(1); ++h) {
    const auto head = std::make_shared<const Head>(A, values.select(1, h).contiguous(), symmetric);
    if (!head->is_good) return nullptr;
    heads.push_back(head);
  }
  return std::make_shared<FactoredByCudss>(std::move(heads), symmetric, std::move(ours));
}

}  // namespace gossamer
