// SPDX-License-Identifier: BSD-3-Clause
// C = A B on the pattern C, in three forms that are closed under differentiation (see the kernels). With G on C:
//   nn: C = A B     dA = nt(G, B | A)   dB = tn(A, G | B)
//   nt: C = A Bᵀ    dA = nn(G, B | A)   dB = tn(G, A | B)
//   tn: C = Aᵀ B    dA = nt(B, G | A)   dB = nn(A, G | B)        (complex: with the conjugates of A and B)
#include <gossamer/kernels/spgemm.h>
#include <gossamer/kernels/spgemm_pattern.h>

#include <ATen/ATen.h>

#include <limits>

#include <gossamer/products.h>
#include "core/batch.h"
#include "core/bilinear.h"
#include "core/csr.h"
#include "core/differentiable.h"
#include "core/host.h"
#include "core/launch.h"
#include "core/op.h"
#include "memory/pages.h"
#include "products/pairs.h"
#include "structure/device.h"

namespace gossamer {
namespace {

using Sizes = std::vector<SymInt>;

// The shape of C.
Sizes product_shape(SymIntArrayRef A, SymIntArrayRef B, int64_t form) {
  return {A[form == ops::tn ? 1 : 0], B[form == ops::nt ? 0 : 1]};
}

void check(const PatternTensors& A, const Tensor& a, const PatternTensors& B, const Tensor& b, SymIntArrayRef shape_A,
           SymIntArrayRef shape_B, int64_t form) {
  check_dense("spgemm", "the values of A", a, A, A.nnz(), "entries", /*or_integers=*/true);
  check_dense("spgemm", "the values of B", b, B, B.nnz(), "entries", /*or_integers=*/true);
  check_same_dtype("spgemm", "B", b, "A", a);
  TORCH_CHECK_VALUE(a.device() == b.device(), "spgemm: A is on ", a.device(), " but B is on ", b.device());
  TORCH_CHECK_VALUE(a.dim() == 1 && b.dim() == 1, "spgemm: values must be (nnz,), not ", shape_text(a), " and ",
                    shape_text(b));
  TORCH_CHECK_TYPE(A.indptr.scalar_type() == B.indptr.scalar_type(), "spgemm: A has ", A.indptr.scalar_type(),
                   " indices but B has ", B.indptr.scalar_type());
  const SymInt &inner_A = shape_A[form == ops::tn ? 0 : 1], &inner_B = shape_B[form == ops::nt ? 1 : 0];
  TORCH_CHECK_VALUE(inner_A == inner_B, "spgemm: A is ", shape_A[0], " x ", shape_A[1], " and B is ", shape_B[0], " x ",
                    shape_B[1],
                    form == ops::nn ? ", which do not multiply" : ", which do not multiply, one transposed");
}

// C is where the product is wanted: a mask that the user may have given.
void check_mask(const PatternTensors& A, const PatternTensors& C, const Sizes& shape) {
  TORCH_CHECK_VALUE(C.rows == shape[0] && C.cols == shape[1], "spgemm: the mask is ", C.rows, " x ", C.cols,
                    " but the product is ", shape[0], " x ", shape[1]);
  TORCH_CHECK_TYPE(A.indptr.scalar_type() == C.indptr.scalar_type(), "spgemm: A has ", A.indptr.scalar_type(),
                   " indices but the mask has ", C.indptr.scalar_type());
  TORCH_CHECK_VALUE(A.indptr.device() == C.indptr.device(), "spgemm: A is on ", A.indptr.device(),
                    " but the mask is on ", C.indptr.device());
}

Tensor forward(TensorList pattern_A, const Tensor& a, SymIntArrayRef shape_A, TensorList pattern_B, const Tensor& b,
               SymIntArrayRef shape_B, TensorList pattern_C, SymIntArrayRef shape_C, int64_t form) {
  if (a.is_complex()) {
    check_same_dtype("spgemm", "B", b, "A", a);
    return bilinear(a, b, [&](const Tensor& u, const Tensor& v) {
      return forward(pattern_A, u, shape_A, pattern_B, v, shape_B, pattern_C, shape_C, form);
    });
  }
  // The host reads A as it is for Aᵀ B, and a device its transpose.
  const PatternTensors A = unpack("spgemm", pattern_A, shape_A, form == ops::tn && !a.is_cpu());
  const PatternTensors B = unpack("spgemm", pattern_B, shape_B, /*t=*/false);
  const PatternTensors C = unpack("spgemm", pattern_C, shape_C, /*t=*/false);
  check(A, a, B, b, shape_A, shape_B, form);
  check_mask(A, C, product_shape(shape_A, shape_B, form));
  if (is_integral(a) && a.scalar_type() != at::kLong) {
    const auto in_int64 = [&](const Tensor& u, const Tensor& v) {
      return forward(pattern_A, u, shape_A, pattern_B, v, shape_B, pattern_C, shape_C, form);
    };
    return in_int64(a.to(at::kLong), b.to(at::kLong)).to(a.scalar_type());
  }
  const Tensor c = empty_result({C.nnz()}, a.options());
  const auto compute = [&]<class T, class I>(auto exec) {
    const Tensor in_A = a.contiguous(), in_B = b.contiguous();
    const auto u = A.view<T, I>(in_A, 1), v = B.view<T, I>(in_B, 1);
    if constexpr (Host<decltype(exec)>) {
      const auto kernel = form == ops::nn   ? kernels::spgemm_nn<Pool, T, I>
                          : form == ops::nt ? kernels::spgemm_nt<Pool, T, I>
                                            : kernels::spgemm_tn<Pool, T, I>;
      kernel(exec, u, v, C.view<I>(), mutable_ptr<T>(c));
    } else if (form == ops::nt) {
      kernels::spgemm_nt(exec, u, v, C.view<I>(), mutable_ptr<T>(c));
    } else {  // Aᵀ is what A is a view of
      const Tensor scratch = scratch_for(c, c.numel());
      kernels::spgemm_nn(exec, u, v, C.view<I>(), mutable_ptr<T>(c), mutable_ptr<Sum<T>>(scratch));
    }
  };
  if (!is_integral(a))
    launch("spgemm", a, A.indptr, compute);
  else if (!a.is_meta())
    with_index_type<int64_t>(A.indptr.scalar_type(), [&]<class T, class I> {
      if (a.is_cpu())
        compute.template operator()<T, I>(torch_pool());
      else
        compute.template operator()<T, I>(stream_of("spgemm", a.device()));
    });
  return c;
}

Tensor autograd(TensorList A, const Tensor& a, SymIntArrayRef shape_A, TensorList B, const Tensor& b,
                SymIntArrayRef shape_B, TensorList C, SymIntArrayRef shape_C, int64_t form) {
  return differentiable(
      "spgemm", {a, b},
      [&](const variable_list& in) { return ops::spgemm(A, in[0], shape_A, B, in[1], shape_B, C, shape_C, form); },
      spgemm_vjp(A, shape_A, B, shape_B, C, shape_C, form));
}

// The values of a batch share the patterns and nothing else.
Tensor batched(TensorList A, const Tensor& a, SymIntArrayRef shape_A, TensorList B, const Tensor& b,
               SymIntArrayRef shape_B, TensorList C, SymIntArrayRef shape_C, int64_t form) {
  return one_by_one("spgemm", C, {a, b}, [&](const variable_list& in) {
    return variable_list{ops::spgemm(A, in[0], shape_A, B, in[1], shape_B, C, shape_C, form)};
  })[0];
}

std::tuple<Tensor, Tensor> pattern_forward(TensorList pattern_A, at::IntArrayRef shape_A, TensorList pattern_B,
                                           at::IntArrayRef shape_B) {
  const KeptResults kept;
  const auto pair = host_pair("spgemm", pattern_A, shape_A, pattern_B, shape_B);
  const PatternTensors &A = pair.first, &B = pair.second;
  const auto type = A.indptr.scalar_type();
  check_they_multiply(shape_A, shape_B);
  const Tensor work = host_integers(shape_A[0] + 1), indptr = host_integers(shape_A[0] + 1);
  Tensor indices;
  with_index_type<void>(type, [&]<class, class I> {
    kernels::spgemm_work(torch_pool(), A.view<I>(), B.view<I>(), mutable_ptr<int64_t>(work));
    const auto rows = kernels::spgemm_pattern(torch_pool(), A.view<I>(), B.view<I>(), ptr<int64_t>(work),
                                              mutable_ptr<int64_t>(indptr));
    const int64_t nnz = ptr<int64_t>(indptr)[shape_A[0]];
    TORCH_CHECK_VALUE(nnz <= std::numeric_limits<I>::max(), "spgemm: the product has ", nnz,
                      " entries, more than int32 indices can count; use int64");
    indices = host_integers(nnz, type);
    kernels::join(torch_pool(), rows, ptr<int64_t>(indptr), mutable_ptr<I>(indices));
  });
  return {indptr.to(type), indices};
}

std::tuple<Tensor, Tensor> pattern_on_device(TensorList A, at::IntArrayRef shape_A, TensorList B,
                                             at::IntArrayRef shape_B) {
  check_device_pair("spgemm", A, shape_A, B, shape_B);
  check_they_multiply(shape_A, shape_B);
  TORCH_CHECK_VALUE(device_patterns::has_keys({shape_A[0], shape_B[1]}), "spgemm: ", shape_A[0], " x ", shape_B[1],
                    " places are more than a device can count");
  return device_patterns::product(A, shape_A, B, shape_B);
}

const Op<decltype(ops::spgemm)> op{{
    .schema = "spgemm(Tensor[] A, Tensor a, SymInt[] shape_A, Tensor[] B, Tensor b, SymInt[] shape_B, Tensor[] C, "
              "SymInt[] shape_C, int form) -> Tensor",
    .forward = forward,
    .autograd = autograd,
    .batched = batched,
}};

const Op<decltype(ops::spgemm_pattern)> pattern_op{{
    .schema = "spgemm_pattern(Tensor[] A, int[] shape_A, Tensor[] B, int[] shape_B) -> (Tensor indptr, Tensor indices)",
    .forward = pattern_forward,
    .on_device = pattern_on_device,
    .meta = false,
}};

}  // namespace

Vjp spgemm_vjp(TensorList A, SymIntArrayRef shape_A, TensorList B, SymIntArrayRef shape_B, TensorList C,
               SymIntArrayRef shape_C, int64_t form) {
  return [A = A.vec(), sA = shape_A.vec(), B = B.vec(), sB = shape_B.vec(), C = C.vec(), sC = shape_C.vec(), form](
             const Tensor& G, const variable_list& in, const Tensor&, const Wanted& wanted) {
    const Tensor u = in[0].conj(), v = in[1].conj();
    variable_list grads(2);
    using enum ops::ProductForm;
    if (wanted[0])
      grads[0] = form == nn   ? ops::spgemm(C, G, sC, B, v, sB, A, sA, nt)
                 : form == nt ? ops::spgemm(C, G, sC, B, v, sB, A, sA, nn)
                              : ops::spgemm(B, v, sB, C, G, sC, A, sA, nt);
    if (wanted[1])
      grads[1] = form == nn   ? ops::spgemm(A, u, sA, C, G, sC, B, sB, tn)
                 : form == nt ? ops::spgemm(C, G, sC, A, u, sA, B, sB, tn)
                              : ops::spgemm(A, u, sA, C, G, sC, B, sB, nn);
    return grads;
  };
}

Tensor ops::spgemm(TensorList A, const Tensor& a, SymIntArrayRef shape_A, TensorList B, const Tensor& b,
                   SymIntArrayRef shape_B, TensorList C, SymIntArrayRef shape_C, int64_t form) {
  return op(A, a, shape_A, B, b, shape_B, C, shape_C, form);
}

std::tuple<Tensor, Tensor> ops::spgemm_pattern(TensorList A, at::IntArrayRef shape_A, TensorList B,
                                               at::IntArrayRef shape_B) {
  return pattern_op(A, shape_A, B, shape_B);
}

}  // namespace gossamer
