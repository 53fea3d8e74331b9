// SPDX-License-Identifier: BSD-3-Clause
// Test only: gives a CPU build of PyTorch a working device "cuda:0" whose memory is host memory. Linked with the
// emulated kernels of src/cuda it runs the CUDA half of the library end to end without a GPU: Python, dispatcher,
// device guard and stream, launch, autograd with its device thread.
//
// Whatever operator has no kernel for the device runs its CPU kernel on host twins of its arguments: tensors that share
// their bytes. Load it before `import torch`, which looks for CUDA once: see tests/cuda_standin.py. It uses torch's
// unstable C++ interface, and so belongs to the torch version this project pins.
#include <ATen/ATen.h>
#include <ATen/EmptyTensor.h>
#include <ATen/NativeFunctions.h>
#include <ATen/SparseCsrTensorImpl.h>
#include <ATen/SparseCsrTensorUtils.h>
#include <ATen/SparseTensorImpl.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/native/TensorFactories.h>
#include <c10/core/Allocator.h>
#include <torch/library.h>

#include "standin_graph.h"

#include <algorithm>
#include <atomic>
#include <set>
#include <string>
#include <vector>

namespace {

using at::DispatchKey;
using at::DispatchKeySet;
using at::Tensor;

const c10::Device cuda(c10::DeviceType::CUDA, 0);

// ---- twins: the same bytes on the other device ----------------------------------------------------------------------

struct Side {
  c10::Device device;
  DispatchKey dense, coo, csr;
};
const Side host_side{c10::kCPU, DispatchKey::CPU, DispatchKey::SparseCPU, DispatchKey::SparseCsrCPU};
const Side cuda_side{cuda, DispatchKey::CUDA, DispatchKey::SparseCUDA, DispatchKey::SparseCsrCUDA};

Tensor dense_twin(const Tensor& a, const Side& side) {
  if (a._is_zerotensor()) return at::_efficientzerotensor(a.sizes(), a.options().device(side.device));
  c10::DataPtr bytes(
      const_cast<void*>(a.storage().data()), new Tensor(a), [](void* kept) { delete static_cast<Tensor*>(kept); },
      side.device);
  c10::Storage storage(c10::Storage::use_byte_size_t(), a.storage().nbytes(), std::move(bytes),
                       c10::GetAllocator(side.device.type()), /*resizable=*/true);
  Tensor twin = at::detail::make_tensor<c10::TensorImpl>(std::move(storage), DispatchKeySet(side.dense), a.dtype());
  auto* tensor = twin.unsafeGetTensorImpl();
  tensor->set_sizes_and_strides(a.sizes(), a.strides(), a.storage_offset());
  if (a.is_complex()) tensor->_set_conj(a.is_conj());
  tensor->_set_neg(a.is_neg());
  return twin;
}

Tensor twin(const Tensor& a, const Side& side);

Tensor coo_twin(const Tensor& a, const Side& side) {
  auto* from = static_cast<at::SparseTensorImpl*>(a.unsafeGetTensorImpl());
  Tensor twin_of_a = at::detail::make_tensor<at::SparseTensorImpl>(DispatchKeySet(side.coo), a.dtype());
  auto* to = static_cast<at::SparseTensorImpl*>(twin_of_a.unsafeGetTensorImpl());
  to->resize_(from->sparse_dim(), from->dense_dim(), a.sizes());
  to->set_indices_and_values_unsafe(twin(from->indices(), side), twin(from->values(), side));
  to->set_coalesced(from->coalesced());
  return twin_of_a;
}

Tensor compressed_twin(const Tensor& a, const Side& side) {
  auto* from = static_cast<at::SparseCsrTensorImpl*>(a.unsafeGetTensorImpl());
  Tensor twin_of_a =
      at::detail::make_tensor<at::SparseCsrTensorImpl>(DispatchKeySet(side.csr), side.device, a.layout(), a.dtype());
  static_cast<at::SparseCsrTensorImpl*>(twin_of_a.unsafeGetTensorImpl())
      ->set_member_tensors(twin(from->compressed_indices(), side), twin(from->plain_indices(), side),
                           twin(from->values(), side), a.sizes());
  return twin_of_a;
}

Tensor twin(const Tensor& a, const Side& side) {
  if (!a.defined() || a.device() == side.device || a.device().is_meta()) return a;
  if (a.layout() == at::kSparse) return coo_twin(a, side);
  return at::sparse_csr::is_sparse_compressed(a) ? compressed_twin(a, side) : dense_twin(a, side);
}

// An argument as the host's kernel wants it.
c10::IValue hosted(const c10::IValue& value) {
  if (value.isTensor()) return twin(value.toTensor(), host_side);
  if (value.isDevice() && value.toDevice().is_cuda()) return host_side.device;
  if (value.isTensorList()) {
    c10::List<Tensor> list;
    for (const Tensor& t : value.toTensorVector()) list.push_back(twin(t, host_side));
    return list;
  }
  if (value.isOptionalTensorList()) {
    c10::List<std::optional<Tensor>> list;
    for (std::optional<Tensor> t : value.toOptionalTensorList())
      list.push_back(t ? std::optional(twin(*t, host_side)) : std::nullopt);
    return list;
  }
  return value;
}

// ---- operators ------------------------------------------------------------------------------------------------------

using Pairs = std::vector<std::pair<Tensor, Tensor>>;  // each tensor that came in, and its host twin

Pairs pair_up(const std::vector<c10::IValue>& given, const std::vector<c10::IValue>& hosts) {
  Pairs pairs;
  for (size_t k = 0; k < given.size(); ++k) {
    if (given[k].isTensor()) pairs.emplace_back(given[k].toTensor(), hosts[k].toTensor());
    if (!given[k].isTensorList()) continue;
    const auto tensors = given[k].toTensorVector(), twins = hosts[k].toTensorVector();
    for (size_t n = 0; n < tensors.size(); ++n) pairs.emplace_back(tensors[n], twins[n]);
  }
  return pairs;
}

// out= operators may give what they were given another size and other memory.
void follow_resize(const Tensor& given, const Tensor& host) {
  if (!given.defined() || !given.is_cuda() || given.layout() != at::kStrided) return;
  auto* tensor = given.unsafeGetTensorImpl();
  if (given.storage().data() != host.storage().data())
    tensor->set_storage_keep_dtype(dense_twin(host, cuda_side).storage());
  if (given.sizes() != host.sizes() || given.strides() != host.strides())
    tensor->set_sizes_and_strides(host.sizes(), host.strides(), host.storage_offset());
}

// What the caller gets for a result of the host's kernel: in-place operators return the tensor they were given.
Tensor returned(const Tensor& result, const Pairs& pairs) {
  if (!result.defined()) return result;
  for (const auto& [given, host] : pairs)
    if (host.is_same(result)) return given;
  return twin(result, cuda_side);
}

// What a real device would be waited for: copies between it and the host, and numbers that the host looks at.
std::atomic<int64_t> copies = 0, looks = 0;

void count_traffic(const std::string& op, const std::vector<c10::IValue>& given) {
  static const std::set<std::string> looking = {"aten::_local_scalar_dense", "aten::equal", "aten::nonzero",
                                                "aten::masked_select", "aten::is_nonzero"};
  const bool look = looking.contains(op);
  const bool copy = op == "aten::copy_" && given[0].toTensor().device() != given[1].toTensor().device();
  TORCH_CHECK(!standin::capturing() || !(look || copy), "cuda stand-in: ", op, " while a graph is captured");
  looks += look, copies += copy;
}

// An operator as a step of a graph: what it makes again goes to where the first results are.
void keep_operator(const c10::OperatorHandle& op, DispatchKey key, const std::vector<c10::IValue>& hosts,
                   const std::vector<c10::IValue>& results) {
  standin::keep_step([op, key, hosts, results] {
    torch::jit::Stack stack = hosts;
    op.redispatchBoxed(DispatchKeySet(key), &stack);
    for (size_t k = 0; k < results.size(); ++k) {
      if (!results[k].isTensor() || !results[k].toTensor().defined()) continue;
      const Tensor first = results[k].toTensor(), again = stack[k].toTensor();
      if (!first.is_alias_of(again)) first.copy_(again);
    }
  });
}

void run_on_host(const c10::OperatorHandle& op, DispatchKeySet keys, torch::jit::Stack* stack) {
  const auto first = stack->end() - static_cast<std::ptrdiff_t>(op.schema().arguments().size());
  const std::vector<c10::IValue> given(first, stack->end());
  count_traffic(op.schema().name(), given);
  std::vector<c10::IValue> hosts;
  for (const c10::IValue& value : given) hosts.push_back(hosted(value));
  std::copy(hosts.begin(), hosts.end(), first);
  const auto base = first - stack->begin();

  DispatchKey key = host_side.dense;
  if (keys.highestPriorityTypeId() == cuda_side.coo) key = host_side.coo;
  if (keys.highestPriorityTypeId() == cuda_side.csr) key = host_side.csr;
  op.redispatchBoxed(DispatchKeySet(key), stack);
  if (standin::capturing()) keep_operator(op, key, hosts, {stack->begin() + base, stack->end()});

  const Pairs pairs = pair_up(given, hosts);
  for (const auto& [tensor, host] : pairs) follow_resize(tensor, host);
  for (auto out = stack->begin() + base; out != stack->end(); ++out) {
    if (out->isTensor()) *out = returned(out->toTensor(), pairs);
    if (!out->isTensorList()) continue;
    c10::List<Tensor> list;
    for (const Tensor& t : out->toTensorVector()) list.push_back(returned(t, pairs));
    *out = std::move(list);
  }
}

Tensor empty(at::IntArrayRef size, std::optional<at::ScalarType> type, std::optional<at::Layout>,
             std::optional<at::Device>, std::optional<bool>, std::optional<at::MemoryFormat> format) {
  return at::detail::empty_generic(size, c10::GetAllocator(c10::kCUDA), DispatchKeySet(DispatchKey::CUDA),
                                   c10::dtype_or_default(type), format);
}
Tensor empty_strided(at::IntArrayRef size, at::IntArrayRef stride, std::optional<at::ScalarType> type,
                     std::optional<at::Layout>, std::optional<at::Device>, std::optional<bool>) {
  return at::detail::empty_strided_generic(size, stride, c10::GetAllocator(c10::kCUDA),
                                           DispatchKeySet(DispatchKey::CUDA), c10::dtype_or_default(type));
}
// The zeros of forward mode, which own no memory.
Tensor efficient_zeros(at::IntArrayRef size, std::optional<at::ScalarType> type, std::optional<at::Layout>,
                       std::optional<at::Device>, std::optional<bool>) {
  static at::native::ZeroTensorAllocator nothing(cuda);
  return at::detail::empty_generic(size, &nothing, DispatchKeySet({DispatchKey::CUDA, DispatchKey::ZeroTensor}),
                                   c10::dtype_or_default(type), std::nullopt);
}
Tensor& set_to_nothing(Tensor& a) {
  return a.set_(c10::Storage(c10::Storage::use_byte_size_t(), 0, c10::GetAllocator(c10::kCUDA), true), 0, {0}, {});
}
void record_stream(Tensor&, c10::Stream) {}

TORCH_LIBRARY_IMPL(aten, CUDA, m) {
  m.impl("empty.memory_format", &empty);
  m.impl("empty_strided", &empty_strided);
  m.impl("_efficientzerotensor", &efficient_zeros);
  m.impl("record_stream", &record_stream);
  // Views share the storage itself, which autograd, functionalization and users look at. The memory is the host's, so
  // the host's kernels for views and for storage serve as they are.
  m.impl("as_strided", &at::native::as_strided_tensorimpl);
  m.impl("view", TORCH_FN(static_cast<Tensor (*)(const Tensor&, at::IntArrayRef)>(&at::native::view)));
  m.impl("_reshape_alias", &at::native::_reshape_alias);
  m.impl("unfold", &at::native::unfold);
  m.impl("resize_", &at::native::resize_);
  m.impl("set_", &set_to_nothing);
  m.impl("set_.source_Tensor", &at::native::set_tensor_);
  m.impl("set_.source_Storage", TORCH_FN(static_cast<Tensor& (*)(Tensor&, at::Storage)>(&at::native::set_)));
  m.impl("set_.source_Storage_storage_offset", &at::native::set_storage_cpu_);
  // Has a kernel for every device, which would look for the copy of a real one.
  m.impl("copy_", torch::CppFunction::makeFromBoxedFunction<&run_on_host>());
}

// Sparse tensors: some operators have a kernel for every layout that only raises, and would hide the fallback.
void run_sparse_on_host(torch::Library& m, DispatchKey host_key) {
  auto& dispatcher = c10::Dispatcher::singleton();
  for (const c10::OperatorName& name : dispatcher.getAllOpNames()) {
    const auto op = dispatcher.findSchema(name);
    if (name.name.starts_with("aten::") && op && op->hasKernelForDispatchKey(host_key))
      m.impl(toString(name).c_str(), torch::CppFunction::makeFromBoxedFunction<&run_on_host>());
  }
}
TORCH_LIBRARY_IMPL(aten, SparseCUDA, m) {
  run_sparse_on_host(m, host_side.coo);
}
TORCH_LIBRARY_IMPL(aten, SparseCsrCUDA, m) {
  run_sparse_on_host(m, host_side.csr);
}

TORCH_LIBRARY_IMPL(_, CUDA, m) {
  m.fallback(torch::CppFunction::makeFromBoxedFunction<&run_on_host>());
}
TORCH_LIBRARY_IMPL(_, SparseCUDA, m) {
  m.fallback(torch::CppFunction::makeFromBoxedFunction<&run_on_host>());
}
TORCH_LIBRARY_IMPL(_, SparseCsrCUDA, m) {
  m.fallback(torch::CppFunction::makeFromBoxedFunction<&run_on_host>());
}

// The same numbers on a device "cuda:1", for what must be refused; nothing runs there.
Tensor on_second_device(const Tensor& a) {
  return dense_twin(a, {c10::Device(c10::DeviceType::CUDA, 1), cuda_side.dense, cuda_side.coo, cuda_side.csr});
}
TORCH_LIBRARY(gossamer_standin, m) {
  m.def("on_second_device(Tensor a) -> Tensor", &on_second_device);
}

}  // namespace

// The copies between host and device, and the numbers that the host looked at, since the last call.
extern "C" int64_t gossamer_standin_copies() {
  return copies.exchange(0);
}
extern "C" int64_t gossamer_standin_looks() {
  return looks.exchange(0);
}
