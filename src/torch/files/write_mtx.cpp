// SPDX-License-Identifier: BSD-3-Clause
// Tensors to MatrixMarket files: one op, called by both front ends. Everything is checked before a file is touched.
#include <ATen/ATen.h>
#include <gossamer/kernels/atomic_file.h>
#include <gossamer/kernels/matrix_market_write.h>

#include <gossamer/io.h>
#include "core/csr.h"
#include "core/launch.h"
#include "core/op.h"
#include "files/mtx.h"

namespace gossamer {
namespace {

namespace mm = matrix_market;
using mm::Field;
using mm::Format;
using mm::Header;
using mm::Symmetry;
using Write = std::function<void(AtomicFile&)>;

// The values as they are written, and the field that says so.
std::pair<Tensor, Field> values_to_write(const Tensor& values) {
  const Tensor v = values.detach().cpu().contiguous().resolve_conj().resolve_neg();
  const auto type = v.scalar_type();
  if (at::isIntegralType(type, /*includeBool=*/true) && !at::isBarebonesUnsignedType(type))
    return {v.to(at::kLong), Field::integer};
  if (type == at::kHalf || type == at::kBFloat16) return {v.to(at::kFloat), Field::real};
  if (type == at::kFloat || type == at::kDouble) return {v, Field::real};
  TORCH_CHECK_TYPE(type == at::kComplexFloat || type == at::kComplexDouble, "write_mtx: cannot write ", type);
  return {v, Field::complex};
}

// Throws unless `values` equal those across the diagonal, exactly; NaN equals NaN.
void check_symmetry(const Header& h, const Tensor& values, const Tensor& across, bool same_pattern) {
  if (h.symmetry == Symmetry::general) return;
  const auto name = mm::symmetries[static_cast<int>(h.symmetry)];
  TORCH_CHECK_VALUE(h.rows == h.cols, "write_mtx: A is ", h.rows, " x ", h.cols, ", so it cannot be ", name);
  TORCH_CHECK_VALUE(h.symmetry != Symmetry::hermitian || h.field == Field::complex,
                    "write_mtx: hermitian is for complex values; write real ones as symmetric");
  const Tensor expected = h.symmetry == Symmetry::skew_symmetric ? across.neg()
                          : h.symmetry == Symmetry::hermitian    ? across.conj().resolve_conj()
                                                                 : across;
  TORCH_CHECK_VALUE(same_pattern && at::allclose(values, expected, /*rtol=*/0, /*atol=*/0, /*equal_nan=*/true),
                    "write_mtx: A is not ", name);
}

template <class T>
void write_dense(AtomicFile& file, Header h, const Tensor& dense, const std::string& comment) {
  h.entries = mm::array_entries(h);
  file.write(mm::header_text(h, comment));
  mm::write_array(torch_pool(), h.rows, h.cols, ptr<T>(dense), h.symmetry != Symmetry::general,
                  h.symmetry == Symmetry::skew_symmetric, [&](std::string_view text) { file.write(text); });
}

template <class T, class I>
void write_sparse(AtomicFile& file, Header h, const PatternView<I>& A, const Tensor& values,
                  const std::string& comment) {
  const bool one_triangle = h.symmetry != Symmetry::general;
  h.entries = one_triangle ? mm::lower_entries(A) : A.nnz;
  file.write(mm::header_text(h, comment));
  const T* written = h.field == Field::pattern ? nullptr : ptr<T>(values);
  mm::write_coordinates(torch_pool(), A, written, one_triangle, [&](std::string_view text) { file.write(text); });
}

Write dense_writer(Header h, const Tensor& values, const std::string& comment) {
  Tensor dense;
  std::tie(dense, h.field) = values_to_write(values);
  h.format = Format::array;
  check_symmetry(h, dense, h.rows == h.cols ? dense.t() : dense, true);
  return [=](AtomicFile& file) {
    with_value_type(dense.scalar_type(), [&]<class T> { write_dense<T>(file, h, dense, comment); });
  };
}

Write sparse_writer(Header h, TensorList tensors, const std::string& comment) {
  const std::array<SymInt, 2> shape = {h.rows, h.cols};
  const PatternTensors A = unpack("write_mtx", {tensors[0].cpu(), tensors[1].cpu()}, shape, /*t=*/false);
  const int64_t nnz = A.indices.size(0);
  Tensor values;
  if (tensors.size() == 3) {
    TORCH_CHECK_VALUE(tensors[2].dim() == 1 && tensors[2].size(0) == nnz, "write_mtx: a file holds one matrix of ", nnz,
                      " values, but values has shape ", shape_text(tensors[2]));
    std::tie(values, h.field) = values_to_write(tensors[2]);
  } else {
    TORCH_CHECK_VALUE(h.symmetry <= Symmetry::symmetric, "write_mtx: a pattern has no values to negate or conjugate");
    values = at::ones({nnz}, at::kDouble);
    h.field = Field::pattern;
  }
  if (h.symmetry != Symmetry::general && h.rows == h.cols) {
    const auto [indptr, indices, perm] = ops::transpose(A.indptr, A.indices, shape);
    check_symmetry(h, values, values.index_select(0, perm), indptr.equal(A.indptr) && indices.equal(A.indices));
  } else {
    check_symmetry(h, values, values, true);
  }
  return [=](AtomicFile& file) {
    with_value_type(values.scalar_type(), [&]<class T> {
      with_index_type<T>(A.indptr.scalar_type(),
                         [&]<class, class I> { write_sparse<T>(file, h, A.view<I>(), values, comment); });
    });
  };
}

Write writer(TensorList tensors, at::IntArrayRef shape, const std::string& comment, const std::string& symmetry) {
  const auto found = std::find(std::begin(mm::symmetries), std::end(mm::symmetries), symmetry);
  TORCH_CHECK_VALUE(found != std::end(mm::symmetries),
                    "write_mtx: symmetry must be general, symmetric, skew-symmetric or hermitian, not ", symmetry);
  TORCH_CHECK_VALUE(shape.size() == 2, "write_mtx: wants a matrix, not ", shape.size(), " dimensions");
  TORCH_CHECK_VALUE(tensors.size() >= 1 && tensors.size() <= 3,
                    "write_mtx: wants {dense} or {indptr, indices, values}");
  Header h;
  h.symmetry = static_cast<Symmetry>(found - std::begin(mm::symmetries));
  h.rows = shape[0];
  h.cols = shape[1];
  return tensors.size() == 1 ? dense_writer(h, tensors[0], comment) : sparse_writer(h, tensors, comment);
}

int64_t write(c10::string_view path_, TensorList tensors, at::IntArrayRef shape, c10::string_view comment,
              c10::string_view symmetry) {
  const std::string path = file_name("write_mtx", path_);
  const auto write_body = writer(tensors, shape, std::string(comment), std::string(symmetry));
  try {
    AtomicFile file(path);
    write_body(file);
    file.commit();
    return 0;
  } catch (const BadFile& error) {
    TORCH_CHECK_VALUE(false, path, ": ", error.what());
  } catch (const std::system_error& error) {
    return error.code().value();
  }
}

void call_write(const std::string& path, TensorList tensors, at::IntArrayRef shape, const std::string& comment,
                const std::string& symmetry) {
  check_system("write_mtx", path, write(path, tensors, shape, comment, symmetry));
}

}  // namespace

void write_mtx(const std::string& path, const SparseMatrix& A, const std::string& comment,
               const std::string& symmetry) {
  call_write(path, {A.pattern().indptr(), A.pattern().indices(), A.values()}, A.shape(), comment, symmetry);
}

void write_mtx(const std::string& path, const Pattern& pattern, const std::string& comment,
               const std::string& symmetry) {
  call_write(path, {pattern.indptr(), pattern.indices()}, pattern.shape(), comment, symmetry);
}

void write_mtx(const std::string& path, const Tensor& dense, const std::string& comment, const std::string& symmetry) {
  call_write(path, {dense}, dense.sizes(), comment, symmetry);
}

// parts: {dense}, {indptr, indices, values}, or {indptr, indices} for a pattern without values.
static const Composites composites =
    Composites().def("write_mtx(str path, Tensor[] parts, int[] shape, str comment, str symmetry) -> int error", write);

}  // namespace gossamer
