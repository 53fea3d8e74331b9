// SPDX-License-Identifier: BSD-3-Clause
#include <gossamer/linalg.h>
#include <gossamer/pattern.h>

#include <ATen/ops/equal.h>
#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <atomic>
#include <limits>
#include <map>
#include <mutex>
#include <ostream>
#include <sstream>

#include <gossamer/products.h>
#include "core/csr.h"
#include "matrix/kept.h"

namespace gossamer {

struct Pattern::State {
  Tensor indptr, indices;
  Shape shape;
  std::atomic<Entries> entries;
  std::once_flag transposed;
  std::atomic<bool> has_transpose = false;
  std::atomic<bool> has_vectors = false;  // a product with a vector was made
  Tensor indptr_t, indices_t, perm_t;
  std::weak_ptr<State> transpose_of;

  // What was derived, by name and, if it took a second pattern, by that one's address: it counts while that one lives.
  struct Kept {
    std::weak_ptr<State> other;
    std::any what;
  };
  std::recursive_mutex mutex;
  std::map<std::pair<std::string, const State*>, Kept> kept;

  // Whether this is of the transform of torch.func in which it was made; then so is all that is kept with it.
  bool is_of_transform() const { return is_wrapped(indptr) || is_wrapped(indices); }

  void transpose() {
    std::call_once(transposed, [this] {
      std::optional<KeptTensors> kept_tensors;
      if (!is_of_transform()) kept_tensors.emplace();
      const std::array<c10::SymInt, 2> size = {shape[0], shape[1]};
      std::tie(indptr_t, indices_t, perm_t) = ops::transpose(indptr, indices, size);
      has_transpose = true;
    });
  }
};

Pattern::Pattern(Tensor indptr, Tensor indices, Shape shape, bool check, Entries entries)
    : state_(std::make_shared<State>()) {
  if (check) ops::check_pattern(indptr, indices, shape, /*simple=*/entries == Entries::unique);
  state_->entries = entries;
  state_->indptr = std::move(indptr);
  state_->indices = std::move(indices);
  state_->shape = shape;
}

Pattern::Pattern()
    : Pattern(at::zeros({1}, at::kInt), at::zeros({0}, at::kInt), {0, 0}, /*check=*/false, Entries::unique) {}

Pattern Pattern::adopt(at::TensorList tensors, Shape shape, Entries entries) {
  unpack("Pattern", tensors, {SymInt(shape[0]), SymInt(shape[1])}, /*t=*/false);  // for its checks
  Pattern pattern(tensors[0], tensors[1], shape, /*check=*/false, entries);
  if (tensors.size() >= 5)
    std::call_once(pattern.state_->transposed, [&] {
      pattern.state_->indptr_t = tensors[2], pattern.state_->indices_t = tensors[3],
      pattern.state_->perm_t = tensors[4];
      pattern.state_->has_transpose = true;
    });
  return pattern;
}

const Tensor& Pattern::indptr() const {
  return state_->indptr;
}
const Tensor& Pattern::indices() const {
  return state_->indices;
}
const Shape& Pattern::shape() const {
  return state_->shape;
}

Entries Pattern::entries() const {
  return state_->entries;
}

bool Pattern::simple() const {
  if (state_->entries == Entries::unknown)
    state_->entries = ops::has_parallel_entries(indptr(), indices()) ? Entries::parallel : Entries::unique;
  return state_->entries == Entries::unique;
}

void Pattern::check_simple(const char* op) const {
  TORCH_CHECK_VALUE(simple(), op,
                    ": the pattern has parallel edges, several entries at one place; A.coalesce() adds them up");
}

Tensor Pattern::row_indices() const {
  return ops::row_indices(indptr(), indices());
}

Pattern Pattern::T() const {
  if (auto original = state_->transpose_of.lock()) return Pattern(std::move(original));
  return keep<Pattern>("T", [this] {
    state_->transpose();
    Pattern T(state_->indptr_t, state_->indices_t, {cols(), rows()}, /*check=*/false, entries());
    T.state_->transpose_of = state_;
    return T;
  });
}

Tensor Pattern::transpose_perm() const {
  state_->transpose();
  return state_->perm_t;
}

std::tuple<Tensor, Tensor, Tensor> Pattern::transpose() const {
  state_->transpose();
  return {state_->indptr_t, state_->indices_t, state_->perm_t};
}

static const char* levels_key(bool upper) {
  return upper ? "upper levels" : "lower levels";
}

// The host launches the levels one after the other, so level_ptr is its own.
std::vector<Tensor> Pattern::levels(bool upper) const {
  check_simple("solve_triangular");
  return keep<std::vector<Tensor>>(levels_key(upper), [&] {
    const auto [level_ptr, order] = ops::levels(indptr(), indices(), sym_shape(), upper);
    return std::vector<Tensor>{level_ptr.is_cuda() ? level_ptr.cpu() : level_ptr, order};
  });
}

std::vector<Tensor> Pattern::levels_at_hand(bool upper) const {
  const std::lock_guard lock(state_->mutex);
  return state_->kept.contains({levels_key(upper), nullptr}) ? levels(upper) : std::vector<Tensor>();
}

Tensor Pattern::analysis() const {
  check_simple("factorize");
  return keep<Tensor>("analysis", [this] { return ops::analyze(tensors(/*with_transpose=*/true), sym_shape()); });
}

Pattern Pattern::to(at::Device device) const {
  if (device == this->device()) return *this;
  return Pattern(indptr().to(device), indices().to(device), shape(), /*check=*/false, entries());
}

Pattern Pattern::widened() const {
  if (index_type() == at::kLong) return *this;
  return keep<Pattern>("int64", [this] {
    return Pattern(indptr().to(at::kLong), indices().to(at::kLong), shape(), /*check=*/false, entries());
  });
}

Pattern Pattern::with_index_type(at::ScalarType type) const {
  TORCH_CHECK_TYPE(type == at::kInt || type == at::kLong,
                   "with_index_type: an index type is torch::kInt32 or torch::kInt64, not ", type);
  if (type == index_type()) return *this;
  if (type == at::kLong) return widened();
  TORCH_CHECK_VALUE(std::max({rows(), cols(), nnz()}) <= std::numeric_limits<int32_t>::max(),
                    "with_index_type: ", rows(), " x ", cols(), " with ", nnz(), " entries does not fit int32");
  return Pattern(indptr().to(type), indices().to(type), shape(), /*check=*/false, entries());
}

Pattern Pattern::product(const Pattern& other) const {
  if (index_type() != other.index_type()) return widened().product(other.widened());
  const auto derive = [&] {
    const auto [indptr, indices] = ops::spgemm_pattern(tensors(), shape(), other.tensors(), other.shape());
    return Pattern(indptr, indices, {rows(), other.cols()}, /*check=*/false);
  };
  return keep<Pattern>("product", derive, other);
}

Pattern::Merged Pattern::merge(const Pattern& other, bool intersect) const {
  check_simple(intersect ? "hadamard" : "spadd");
  other.check_simple(intersect ? "hadamard" : "spadd");
  if (index_type() != other.index_type()) return widened().merge(other.widened(), intersect);
  using Found = std::tuple<std::optional<Pattern>, Tensor, Tensor>;
  const auto derive = [&]() -> Found {
    const auto [indptr, indices, at_A, at_B] = ops::merge(tensors(), other.tensors(), shape(), intersect);
    return {intersect ? unless_this(indptr, indices) : union_of(other, indptr, indices), at_A, at_B};
  };
  const auto [pattern, at_A, at_B] = keep<Found>(intersect ? "intersection" : "union", derive, other);
  return {pattern.value_or(*this), at_A, at_B};
}

std::pair<Pattern, Tensor> Pattern::first_sum(const Tensor& a, const Pattern& other, const Tensor& b) const {
  check_simple("spadd"), other.check_simple("spadd");
  if (index_type() != other.index_type()) return widened().first_sum(a, other.widened(), b);
  const auto [indptr, indices, at_A, at_B, c] = ops::first_sum(tensors(), a, other.tensors(), b, shape());
  const auto pattern = union_of(other, indptr, indices);
  using Found = std::tuple<std::optional<Pattern>, Tensor, Tensor>;
  if (at_A.size(0) == nnz() && at_B.size(0) == other.nnz())
    keep<Found>("union", [&, at_A = at_A, at_B = at_B] { return Found{pattern, at_A, at_B}; }, other);
  return {pattern.value_or(*this), c};
}

// A union or intersection as large as this pattern is this pattern. It is kept as nothing, because a State that held
// itself would never be freed.
std::optional<Pattern> Pattern::unless_this(const Tensor& indptr, const Tensor& indices) const {
  if (indices.size(0) == nnz()) return std::nullopt;
  return Pattern(indptr, indices, shape(), /*check=*/false);
}

// One object for all sums of a pair, whether the maps into it are known yet or not.
std::optional<Pattern> Pattern::union_of(const Pattern& other, const Tensor& indptr, const Tensor& indices) const {
  return keep<std::optional<Pattern>>("union pattern", [&] { return unless_this(indptr, indices); }, other);
}

bool Pattern::equals(const Pattern& other) const {
  const auto compare = [&] {
    return shape() == other.shape() && index_type() == other.index_type() && device() == other.device() &&
           nnz() == other.nnz() && at::equal(indices(), other.indices()) && at::equal(indptr(), other.indptr());
  };
  return same_as(other) || keep<bool>("equal", compare, other);
}

bool Pattern::operator==(const Pattern& other) const {
  if (same_as(other)) return true;
  if (shape() != other.shape() || nnz() != other.nnz() || device() != other.device()) return false;
  const Pattern P = index_type() == other.index_type() ? *this : widened();
  const Pattern Q = index_type() == other.index_type() ? other : other.widened();
  return at::equal(P.indptr(), Q.indptr()) && at::equal(P.indices(), Q.indices());
}

std::string Pattern::repr() const {
  std::ostringstream text;
  text << "Pattern(" << rows() << " x " << cols() << ", nnz=" << nnz() << ", " << c10::getDtypeNames(index_type()).first
       << ", " << device() << ")";
  return text.str();
}

std::ostream& operator<<(std::ostream& out, const Pattern& P) {
  return out << P.repr();
}

std::vector<Tensor> Pattern::tensors(bool with_transpose) const {
  if (with_transpose) state_->transpose();
  if (!state_->has_transpose) return {state_->indptr, state_->indices};
  return {state_->indptr, state_->indices, state_->indptr_t, state_->indices_t, state_->perm_t};
}

std::vector<Tensor> Pattern::tensors_for(std::initializer_list<Tensor> operands, bool with_transpose) const {
  const auto differentiated = [](const Tensor& t) { return t.defined() && t.requires_grad(); };
  return tensors(with_transpose || (c10::GradMode::is_enabled() && std::ranges::any_of(operands, differentiated)));
}

std::vector<Tensor> Pattern::with_runs(std::vector<Tensor> tensors) const {
  if (!state_->has_vectors.exchange(true) || !indptr().is_cpu()) return tensors;
  std::vector<Tensor> runs = {keep<Tensor>("runs", [&] { return ops::runs(tensors[0], tensors[1], {}, sym_shape()); })};
  if (tensors.size() == 5)
    runs.push_back(keep<Tensor>("runs of the transpose", [&] {
      const std::array<c10::SymInt, 2> turned = {cols(), rows()};
      return ops::runs(tensors[2], tensors[3], tensors[4], turned);
    }));
  if (std::ranges::any_of(runs, [](const Tensor& t) { return t.numel() > 0; }))
    tensors.insert(tensors.end(), runs.begin(), runs.end());
  return tensors;
}

bool Pattern::keeps(const std::string& key, const Pattern& other) const {
  if (is_inside_transform()) return true;  // what is made together with values is the transform's: not for keeping
  const std::lock_guard lock(state_->mutex);
  const auto found = state_->kept.find({key, other.state_.get()});
  return found != state_->kept.end() && !found->second.other.expired();
}

std::any Pattern::kept(const std::string& name, const std::shared_ptr<State>& other,
                       const std::function<std::any()>& make) const {
  const std::lock_guard lock(state_->mutex);
  auto& all = state_->kept;
  std::erase_if(all, [](const auto& item) { return item.first.second && item.second.other.expired(); });
  const std::pair<std::string, const State*> key{name, other.get()};
  if (const auto found = all.find(key); found != all.end()) return found->second.what;
  std::optional<KeptTensors> kept_tensors;
  if (!state_->is_of_transform() && !(other && other->is_of_transform())) kept_tensors.emplace();
  return all.emplace(key, State::Kept{other, make()}).first->second.what;
}

}  // namespace gossamer
