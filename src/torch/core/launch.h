// SPDX-License-Identifier: BSD-3-Clause
// From tensors to a typed kernel call: device × value type × index type, in one place.
//
//   launch("spmm", X, A.indptr, [&]<class T, class I>(auto exec) { kernels::spmm(exec, A.view<T, I>(…), …); });
#pragma once
#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <gossamer/kernels/exec.h>
#include <gossamer/kernels/half.h>

namespace gossamer {

// torch's own thread pool: torch.set_num_threads is obeyed, and there is one pool in the process.
struct TorchThreads {
  int64_t threads() const { return at::in_parallel_region() ? 1 : at::get_num_threads(); }
  template <class F>
  void parallel_for(int64_t n, const F& f) const {
    at::parallel_for(0, n, 1, [&](int64_t begin, int64_t end) {
      for (int64_t k = begin; k < end; ++k) f(k);
    });
  }
};
inline constexpr TorchThreads torch_threads;

// As the kernels of src/cpu want it.
inline Pool torch_pool() {
  return torch_threads;
}

template <class T, class F>
void with_index_type(at::ScalarType index, const F& f) {
  if (index == at::kInt)
    f.template operator()<T, int32_t>();
  else
    f.template operator()<T, int64_t>();
}

template <class F>
void with_types(const char* op, at::ScalarType value, at::ScalarType index, const F& f) {
  switch (value) {
    case at::kFloat:
      return with_index_type<float>(index, f);
    case at::kDouble:
      return with_index_type<double>(index, f);
    case at::kBFloat16:
      return with_index_type<bfloat16>(index, f);
    case at::kHalf:
      return with_index_type<float16>(index, f);
    default:
      TORCH_CHECK_TYPE(false, op, ": no kernel for ", value);
  }
}

// Where kernels are queued. Device-generic c10 only: compiles and loads with the CPU and the CUDA build of torch alike.
// The device is the current one already: op.h.
inline Cuda stream_of(const char* op, at::Device device) {
  TORCH_CHECK_NOT_IMPLEMENTED(&cuda_linked != nullptr, op, ": this build of gossamer has no CUDA kernels");
  return Cuda{c10::impl::VirtualGuardImpl(device.type()).getStream(device).native_handle()};
}

template <class F>
void launch(const char* op, const at::Tensor& data, const at::Tensor& index, const F& f) {
  if (data.is_meta()) return;  // shapes only: nothing to compute
  with_types(op, data.scalar_type(), index.scalar_type(), [&]<class T, class I> {
    if (data.is_cpu()) return f.template operator()<T, I>(torch_pool());
    f.template operator()<T, I>(stream_of(op, data.device()));
  });
}

}  // namespace gossamer
