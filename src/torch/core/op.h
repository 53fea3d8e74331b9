// SPDX-License-Identifier: BSD-3-Clause
// One declaration an op: its schema, what computes it, its derivatives, its batching rule and how a device computes it.
//
//   static const Op<decltype(ops::spmm)> op{{
//       .schema = "spmm(Tensor[] pattern, Tensor values, Tensor X, SymInt[] shape, bool t=False) -> Tensor",
//       .forward = forward,
//       .autograd = autograd,
//       .batched = batched,
//       .autocast = true,
//   }};
//   Tensor ops::spmm(TensorList pattern, …) { return op(pattern, …); }
//
// The object registers the op when the library is loaded and takes it back when it is unloaded; calling it goes through
// the dispatcher, so that autograd, vmap, autocast and torch.compile see the call.
#pragma once
#include <c10/core/DeviceGuard.h>
#include <torch/library.h>

#include <string>
#include <utility>

#include "core/arguments.h"

namespace gossamer {

// The name and the schema of an op in torch's registry, for as long as this object lives.
class Registration {
 public:
  explicit Registration(const std::string& schema)
      : library_(torch::Library::FRAGMENT, "gossamer", std::nullopt, __FILE__, __LINE__),
        name_(schema.substr(0, schema.find('('))) {
    library_.def(schema.c_str());
  }

  void add(c10::DispatchKey key, torch::CppFunction kernel) {
    library_.impl(name_.c_str(), torch::dispatch(key, std::move(kernel)));
  }
  const std::string& name() const { return name_; }
  c10::OperatorHandle handle() const {
    return c10::Dispatcher::singleton().findSchemaOrThrow(("gossamer::" + name_).c_str(), "");
  }

 private:
  torch::Library library_;
  std::string name_;
};

template <class Signature>
class Op;

template <class R, class... A>
class Op<R(A...)> {
 public:
  struct Declaration {
    const char* schema;
    R (*forward)(A...);              // Serves CPU, CUDA and Meta: checks, allocates, launches.
    R (*on_device)(A...) = nullptr;  // Or, for CUDA, this: of an op whose forward knows the host.
    R (*autograd)(A...) = nullptr;   // Calls the op below autograd and records its derivatives: differentiable.h. Not
                                     // called where nobody wants any.
    R (*batched)(A...) = nullptr;    // The rule of vmap: batch.h.
    bool autocast = false;           // Casts every floating-point tensor to the precision that autocast asks for.
    bool full_precision = false;     // Or, within autocast, to float32.
    bool constant = false;           // The result has no derivative, although inputs may require one.
    bool meta = true;                // False: sizes of the result depend on data; its fake is in Python, _fakes.py.
  };

  explicit Op(const Declaration& op)
      : registration_(op.schema), handle_(registration_.handle().template typed<R(A...)>()) {
    using c10::DispatchKey;
    const auto add = [this](DispatchKey key, auto kernel) { registration_.add(key, torch::CppFunction(kernel)); };
    add(DispatchKey::CPU, op.forward);
    add(DispatchKey::CUDA, on_its_device(op.on_device ? op.on_device : op.forward));
    if (op.meta) add(DispatchKey::Meta, op.forward);
    if (op.autograd || op.constant)
      add(DispatchKey::Autograd, [this, record = op.autograd](A... arguments) -> R {
        if (record && (wants_derivative(arguments) || ...)) return record(arguments...);
        const at::AutoDispatchBelowADInplaceOrView below_autograd;
        return handle_.call(arguments...);
      });
    if (op.batched) {
      add(DispatchKey::FuncTorchBatched, op.batched);
      add(DispatchKey::Batched, op.batched);  // the older vmap: see Batch
    }
    if (op.autocast || op.full_precision) {
      add(DispatchKey::AutocastCPU, in_precision(c10::DeviceType::CPU, op.autocast));
      add(DispatchKey::AutocastCUDA, in_precision(c10::DeviceType::CUDA, op.autocast));
    }
  }
  Op(const Op&) = delete;  // The kernels above point here.

  R operator()(A... arguments) const { return handle_.call(arguments...); }

 private:
  // With the device of the tensors as the current one. They must be on one device; whether some may be on the host, the
  // op itself says.
  auto on_its_device(R (*kernel)(A...)) const {
    return [this, kernel](A... arguments) -> R {
      const c10::DeviceGuard guard(DeviceOf(registration_.name()).all(arguments...));
      return kernel(arguments...);
    };
  }

  auto in_precision(c10::DeviceType device, bool low) const {
    return [this, device, low](A... arguments) -> R {
      const Autocast autocast(device, low);
      return handle_.call(autocast.cast(arguments)...);
    };
  }

  Registration registration_;
  c10::TypedOperatorHandle<R(A...)> handle_;
};

// Ops that are written in other ops, and so need no derivatives, devices or batching rules of their own. C++ calls the
// functions themselves; their names in the dispatcher are for Python.
//
//   static const Composites composites = Composites().def("mean(Tensor[] pattern, …) -> Tensor", ops::mean);
class Composites {
 public:
  explicit Composites(const char* library = "gossamer")
      : library_(torch::Library::FRAGMENT, library, std::nullopt, __FILE__, __LINE__) {}

  // Under vmap the function is called as it is, and the ops it is written in batch one by one.
  template <class F>
  Composites&& def(const std::string& schema, F function) && {
    library_.def(schema.c_str(), function);
    for (const auto key : {c10::DispatchKey::FuncTorchBatched, c10::DispatchKey::Batched})
      library_.impl(schema.substr(0, schema.find('(')).c_str(), torch::dispatch(key, torch::CppFunction(function)));
    return std::move(*this);
  }

 private:
  torch::Library library_;
};

}  // namespace gossamer
