// SPDX-License-Identifier: BSD-3-Clause
// The C++ front end of matrices whose rows are on many processes.
#include <ATen/ATen.h>
#include <gossamer/distributed.h>
#include <gossamer/products.h>

#include <mutex>
#include <sstream>

#include "core/arguments.h"
#include "core/csr.h"
#include "distributed/exchange.h"

namespace gossamer {

using distributed::Group;

// The plan, which the transpose's part is added to, once, by all ranks together; and who owns what.
struct DistributedMatrix::Exchange {
  std::string group;
  std::array<Tensor, 2> offsets, keys;  // of rows, of columns
  std::vector<Tensor> plan;
  std::vector<int64_t> counts;
  Pattern block;
  std::mutex mutex;
  std::shared_ptr<Exchange> swapped;  // of the transpose, once somebody has asked for its arrays

  bool has_transpose() const { return plan.size() == distributed::all_tensors; }

  void prepare() {
    const std::lock_guard lock(mutex);
    if (!has_transpose()) std::tie(plan, counts) = ops::distributed_transpose(plan, counts, keys[0], group);
  }

  // With the transpose's part if the call needs it, or if a derivative by an operand of any rank will.
  void prepare_for(std::initializer_list<Tensor> operands, bool transpose) {
    if (has_transpose()) return;
    Tensor needed = at::full({1}, static_cast<int64_t>(transpose), at::kLong);
    if (!transpose && c10::GradMode::is_enabled()) {
      for (const Tensor& t : operands) needed.fill_(std::max<int64_t>(needed.item<int64_t>(), t.requires_grad()));
      Group(group).max_(needed);
    }
    if (needed.item<int64_t>() > 0) prepare();
  }

  void make_block() {
    const distributed::Exchange parts("DistributedMatrix", plan, counts);
    const distributed::Block& A = parts.block(false);
    block = Pattern(A.indptr, A.indices, {A.rows, A.owned + A.halo()}, /*check=*/false, Entries::unknown);
  }

  std::shared_ptr<Exchange> transpose() {
    prepare();
    const std::lock_guard lock(mutex);
    if (!swapped) {
      swapped = std::make_shared<Exchange>();
      swapped->group = group;
      swapped->offsets = {offsets[1], offsets[0]}, swapped->keys = {keys[1], keys[0]};
      std::tie(swapped->plan, swapped->counts) = ops::distributed_swap(plan, counts);
      swapped->make_block();
    }
    return swapped;
  }
};

DistributedMatrix DistributedMatrix::adopt(std::shared_ptr<Exchange> exchange, Tensor values) {
  DistributedMatrix A;
  A.exchange_ = std::move(exchange), A.values_ = std::move(values);
  return A;
}

Pattern DistributedMatrix::pattern() const {
  return transposed_ ? exchange_->transpose()->block : exchange_->block;
}

Tensor DistributedMatrix::values() const {
  if (!transposed_) return values_;
  exchange_->prepare();
  const distributed::Exchange parts("DistributedMatrix", exchange_->plan, exchange_->counts);
  const auto& route = parts.route("DistributedMatrix");
  return ops::route(values_, route.out, route.into, route.send, route.recv, /*back=*/false, group());
}

Shape DistributedMatrix::shape() const {
  const auto size = [&](bool columns) {
    return number_at(exchange_->offsets[columns], exchange_->offsets[columns].size(0) - 1);
  };
  return {size(transposed_), size(!transposed_)};
}

Shape DistributedMatrix::local_shape() const {
  const auto& counts = exchange_->counts;
  return {counts[transposed_], counts[!transposed_]};
}

Tensor DistributedMatrix::offsets() const {
  return exchange_->offsets[transposed_];
}
Tensor DistributedMatrix::column_offsets() const {
  return exchange_->offsets[!transposed_];
}
Tensor DistributedMatrix::row_keys() const {
  return exchange_->keys[transposed_];
}
Tensor DistributedMatrix::col_keys() const {
  return exchange_->keys[!transposed_];
}
const std::string& DistributedMatrix::group() const {
  return exchange_->group;
}

std::string DistributedMatrix::repr() const {
  std::ostringstream text;
  const Shape all = exchange_->block.shape();
  text << "DistributedMatrix(" << shape()[0] << " x " << shape()[1] << ", rows=" << local_shape()[0];
  if (!transposed_) text << ", nnz=" << exchange_->block.nnz() << ", halo=" << all[1] - local_shape()[1];
  text << ", " << c10::getDtypeNames(dtype()).first << ", group='" << group() << "', " << device() << ")";
  return text.str();
}

DistributedMatrix DistributedMatrix::requires_grad_(bool on) const {
  values_.requires_grad_(on);
  return *this;
}

std::optional<DistributedMatrix> DistributedMatrix::grad() const {
  if (!values_.grad().defined()) return std::nullopt;
  DistributedMatrix found = *this;
  found.values_ = values_.grad();
  return found;
}

DistributedMatrix DistributedMatrix::with_values(Tensor values) const {
  DistributedMatrix found = adopt(transposed_ ? exchange_->transpose() : exchange_, std::move(values));
  found.keep_halo = keep_halo;
  return found;
}

DistributedMatrix DistributedMatrix::T() const {
  DistributedMatrix found = *this;
  found.transposed_ = !transposed_;
  return found;
}

const DistributedMatrix& DistributedMatrix::prepare() const {
  exchange_->prepare();
  return *this;
}

Tensor DistributedMatrix::matmul(const Tensor& X) const {
  return spmm(*this, X);
}

Tensor DistributedMatrix::halo(const Tensor& x) const {
  const auto exchange = transposed_ ? exchange_->transpose() : exchange_;
  const distributed::Exchange parts("halo", exchange->plan, exchange->counts);
  const distributed::Block& A = parts.block(false);
  if (x.dim() < 1 || x.sym_size(0) != A.owned)  // in place of the op, which first asks whether all ranks are well
    distributed::Group(group()).agree("halo: x " + shape_text(x) + " must have the " + std::to_string(A.owned) +
                                      " columns of this rank");
  return at::cat({x, ops::halo(x, A.send_rows, A.send, A.recv, group())});
}

DistributedMatrix DistributedMatrix::pow(double p) const {
  return with_values(local().pow(p).values());
}
DistributedMatrix DistributedMatrix::scale_rows(const Tensor& d) const {
  return with_values(local().scale_rows(d).values());
}
DistributedMatrix DistributedMatrix::scale_cols(const Tensor& d) const {
  return with_values(local().scale_cols(halo(d)).values());
}
DistributedMatrix DistributedMatrix::row_softmax() const {
  return with_values(local().row_softmax().values());
}

Tensor DistributedMatrix::sum(int64_t dim) const {
  TORCH_CHECK_NOT_IMPLEMENTED(dim == 1 || dim == -1, "sum: dim ", dim,
                              " of a DistributedMatrix is on many ranks; A.T().sum(1) is dim 0");
  return local().sum(1);
}

Tensor DistributedMatrix::diagonal() const {
  TORCH_CHECK_NOT_IMPLEMENTED(at::equal(offsets(), column_offsets()),
                              "diagonal: different ranks own rows and columns of this DistributedMatrix");
  const Pattern P = pattern();
  const Tensor rows = P.row_indices(), places = (rows == P.indices()).nonzero().flatten();
  const Tensor found = values().index_select(0, places);
  auto size = found.sizes().vec();
  size[0] = P.rows();
  return at::zeros(size, found.options()).index_add(0, rows.index_select(0, places), found);
}

Tensor spmm(const DistributedMatrix& A, const Tensor& X, bool transpose) {
  const bool t = transpose != A.transposed_;
  const auto [v, x] = without_integers(A.values_, X);
  auto& exchange = *A.exchange_;
  exchange.prepare_for({v, x}, t);
  return ops::spmm_rows(exchange.plan, exchange.counts, v, x, t, /*halo=*/{}, A.keep_halo, exchange.group);
}

DistributedMatrix sddmm(const DistributedMatrix& A, const Tensor& U, const Tensor& V) {
  auto& exchange = A.transposed_ ? *A.exchange_->transpose() : *A.exchange_;
  exchange.prepare_for({U, V}, /*transpose=*/false);
  return A.with_values(ops::sddmm_rows(exchange.plan, exchange.counts, U, V, /*halo=*/{}, A.keep_halo, exchange.group));
}

DistributedMatrix operator*(const DistributedMatrix& A, const Tensor& s) {
  const Tensor values = A.values();
  TORCH_CHECK_NOT_IMPLEMENTED(s.dim() < values.dim(), "mul: s must be one number, or one a head, not ", shape_text(s));
  return A.with_values(values * s);
}
DistributedMatrix operator*(const DistributedMatrix& A, double s) {
  return A.with_values(A.values() * s);
}
DistributedMatrix operator/(const DistributedMatrix& A, double s) {
  return A.with_values(A.values() / s);
}
DistributedMatrix operator-(const DistributedMatrix& A) {
  return A.with_values(-A.values());
}

namespace {
void check_same_pattern(const char* op, const DistributedMatrix& A, const DistributedMatrix& B) {
  TORCH_CHECK_NOT_IMPLEMENTED(A.pattern().same_as(B.pattern()), op,
                              ": the two DistributedMatrix have patterns of their own; make B with A.with_values");
}
}  // namespace

DistributedMatrix operator+(const DistributedMatrix& A, const DistributedMatrix& B) {
  check_same_pattern("add", A, B);
  return A.with_values(A.values() + B.values());
}
DistributedMatrix operator-(const DistributedMatrix& A, const DistributedMatrix& B) {
  check_same_pattern("sub", A, B);
  return A.with_values(A.values() - B.values());
}

namespace {

Tensor own_keys(const std::optional<Tensor>& keys, const Tensor& offsets, int64_t rank) {
  const int64_t first = number_at(offsets, rank), last = number_at(offsets, rank + 1);
  if (!keys) return at::arange(first, last, at::kLong);
  check_integers("from_rows", "keys", *keys);
  TORCH_CHECK_VALUE(keys->size(0) == last - first, "from_rows: there are ", keys->size(0), " keys for ", last - first,
                    " own rows or columns");
  return keys->to(at::kCPU, at::kLong);
}

}  // namespace

DistributedMatrix distributed::from_rows(const Tensor& indptr, const Tensor& columns, const Tensor& values,
                                         const Tensor& offsets, Shape shape, const std::string& name,
                                         const RowsOptions& options) {
  const Group group(name);
  auto exchange = std::make_shared<DistributedMatrix::Exchange>();
  const Tensor rows = offsets.to(at::kCPU, at::kLong).contiguous(),
               cols = options.column_offsets ? options.column_offsets->to(at::kCPU, at::kLong).contiguous() : rows;
  std::tie(exchange->plan, exchange->counts) = ops::distributed_plan(indptr, columns, rows, cols, name);
  group.check_on_all("from_rows", [&] {
    TORCH_CHECK_VALUE((Shape{number_at(rows, group.size()), number_at(cols, group.size())} == shape),
                      "from_rows: the shape is ", shape[0], " x ", shape[1], ", but the offsets end elsewhere");
    TORCH_CHECK_VALUE(values.dim() >= 1 && values.dim() <= 2 && values.size(0) == columns.size(0), "from_rows: values ",
                      shape_text(values), " must have ", columns.size(0), " rows");
    const bool same = !options.column_offsets && !options.column_keys;
    exchange->keys = {own_keys(options.keys, rows, group.rank()),
                      own_keys(same ? options.keys : options.column_keys, cols, group.rank())};
  });
  exchange->group = name, exchange->offsets = {rows, cols};
  exchange->make_block();
  return DistributedMatrix::adopt(exchange, values);
}

DistributedMatrix distributed::scatter(const SparseMatrix& A, const std::string& name,
                                       const std::optional<Tensor>& parts, const std::optional<Tensor>& column_parts) {
  const Group group(name);
  const auto owners = [&](const std::optional<Tensor>& given, int64_t n) {
    return given ? *given : at::floor_divide(at::arange(n, at::kLong) * group.size(), std::max<int64_t>(n, 1));
  };
  const bool same = A.rows() == A.cols() && !column_parts;
  const Tensor of_rows = owners(parts, A.rows()), of_cols = same ? of_rows : owners(column_parts, A.cols());
  std::optional<std::tuple<Tensor, Tensor, Tensor, std::vector<Tensor>, std::vector<Tensor>>> part;
  group.check_on_all("scatter", [&] {
    part = ops::distributed_part(A.indptr(), A.indices(), of_rows, of_cols, group.size(), group.rank());
  });
  const auto& [entries, indptr, columns, offsets, keys] = *part;
  RowsOptions options{.keys = keys[0]};
  if (!same) options.column_offsets = offsets[1], options.column_keys = keys[1];
  return from_rows(indptr, columns, A.values().index_select(0, entries), offsets[0], A.shape(), name, options);
}

}  // namespace gossamer
