// SPDX-License-Identifier: BSD-3-Clause
// The equations as torch.ops.gossamer_equations.*: composite ops, differentiable because what they are made of is.
#include <ATen/ATen.h>

#include <gossamer/equations.h>
#include "core/csr.h"
#include "core/op.h"

namespace gossamer::equations {
namespace {

using at::IntArrayRef;

// The tensors include the transpose if Python's Pattern has it, so that it is not built again.
Pattern pattern_of(TensorList tensors, IntArrayRef shape) {
  TORCH_CHECK_VALUE(shape.size() == 2, "equations: shape must be (rows, cols), not ", shape.size(), " numbers");
  return Pattern::adopt(tensors, {shape[0], shape[1]});
}

// Makes an op of a function of a pattern: the op takes {tensors, shape} in the place of the pattern.
template <class... A>
auto on_pattern(Tensor (*function)(const Pattern&, A...)) {
  return [function](TensorList tensors, IntArrayRef shape, A... arguments) -> Tensor {
    return function(pattern_of(tensors, shape), arguments...);
  };
}

template <class Parameters>
std::vector<Parameters> layers_of(TensorList parameters) {
  TORCH_CHECK_VALUE(parameters.size() % 3 == 0, "network: wants three parameters a layer, got ", parameters.size());
  std::vector<Parameters> layers;
  for (size_t k = 0; k < parameters.size(); k += 3)
    layers.push_back({parameters[k], parameters[k + 1], parameters[k + 2]});
  return layers;
}

std::tuple<std::vector<std::string>, std::vector<Tensor>> network_op(TensorList P, IntArrayRef shape, const Tensor& H,
                                                                     const Tensor& y, const Tensor& mask,
                                                                     TensorList parameters, int64_t version,
                                                                     double slope) {
  TORCH_CHECK_VALUE(version == 1 || version == 2, "network: version must be 1 or 2, not ", version);
  const Pattern A = pattern_of(P, shape);
  const Named all = version == 1 ? network(A, H, y, mask, layers_of<ParametersV1>(parameters), slope)
                                 : network(A, H, y, mask, layers_of<ParametersV2>(parameters), slope);
  std::tuple<std::vector<std::string>, std::vector<Tensor>> result;
  for (const auto& [name, value] : all) {
    std::get<0>(result).push_back(name);
    std::get<1>(result).push_back(value);
  }
  return result;
}

Tensor convolution_op(TensorList A, IntArrayRef shape, const Tensor& values, const Tensor& H, const Tensor& W) {
  return convolution(SparseMatrix(pattern_of(A, shape), values), H, W);
}

Tensor coefficients_v2_op(const Tensor& X) {
  return coefficients_v2(X).alias();  // an op may not return its argument itself
}

}  // namespace

static const Composites composites =
    Composites("gossamer_equations")
        .def("convolution(Tensor[] A, int[] shape, Tensor values, Tensor H, Tensor W) -> Tensor", convolution_op)
        .def("combination(Tensor H, Tensor W) -> Tensor", combination)
        .def("coefficients_v1(Tensor X, Tensor a) -> Tensor", coefficients_v1)
        .def("coefficients_v2(Tensor X) -> Tensor", coefficients_v2_op)
        .def("outer_sum(Tensor[] A, int[] shape, Tensor c_dst, Tensor c_src) -> Tensor", on_pattern(outer_sum))
        .def("logits_v1(Tensor sum, float slope) -> Tensor", logits_v1)
        .def("logits_v2(Tensor a, Tensor sum, float slope) -> Tensor", logits_v2)
        .def("attention(Tensor[] A, int[] shape, Tensor L) -> Tensor", on_pattern(attention))
        .def("aggregation(Tensor[] A, int[] shape, Tensor S, Tensor X) -> Tensor", on_pattern(aggregation))
        .def("hidden_output(Tensor Z) -> Tensor", hidden_output)
        .def("final_output(Tensor Z) -> Tensor", final_output)
        .def("hidden_delta(Tensor Z, Tensor delta) -> Tensor", hidden_delta)
        .def("output_jacobian(Tensor H) -> Tensor", output_jacobian)
        .def("output_delta(Tensor jacobian, Tensor delta) -> Tensor", output_delta)
        .def("head_delta(Tensor output_delta, int heads) -> Tensor", head_delta)
        .def("attention_gradient(Tensor[] A, int[] shape, Tensor delta_prime, Tensor X) -> Tensor",
             on_pattern(attention_gradient))
        .def("attention_jacobian(Tensor[] A, int[] shape, Tensor S, int i) -> Tensor", on_pattern(attention_jacobian))
        .def("logit_gradient(Tensor[] A, int[] shape, Tensor S, Tensor dS) -> Tensor", on_pattern(logit_gradient))
        .def("slopes_v1(Tensor sum, float slope) -> Tensor", slopes_v1)
        .def("slopes_v2(Tensor a, Tensor sum, float slope) -> Tensor", slopes_v2)
        .def("edge_gradient_v1(Tensor C_prime, Tensor dL) -> Tensor", edge_gradient_v1)
        .def("edge_gradient_v2(Tensor C_prime, Tensor dL) -> Tensor", edge_gradient_v2)
        .def("destination_sum(Tensor[] A, int[] shape, Tensor Delta) -> Tensor", on_pattern(destination_sum))
        .def("source_sum(Tensor[] A, int[] shape, Tensor Delta) -> Tensor", on_pattern(source_sum))
        .def("vector_gradient_v1(Tensor X, Tensor Sigma) -> Tensor", vector_gradient_v1)
        .def("vector_gradient_v2(Tensor dL, Tensor sum, float slope) -> Tensor", vector_gradient_v2)
        .def(
            "bracket_v1(Tensor[] A, int[] shape, Tensor S, Tensor delta_prime, Tensor Sigma_dst, Tensor a_dst, Tensor "
            "Sigma_src, Tensor a_src) -> Tensor",
            on_pattern(bracket_v1))
        .def("bracket_v2(Tensor[] A, int[] shape, Tensor S, Tensor delta_prime, Tensor Sigma_src) -> Tensor",
             on_pattern(bracket_v2))
        .def("feature_gradient_v1(Tensor bracket, Tensor W) -> Tensor", feature_gradient_v1)
        .def("feature_gradient_v2(Tensor Sigma_dst, Tensor W_dst, Tensor bracket, Tensor W_src) -> Tensor",
             feature_gradient_v2)
        .def("weight_gradient(Tensor H, Tensor bracket) -> Tensor", weight_gradient)
        .def("loss(Tensor H, Tensor y, Tensor mask) -> Tensor", loss)
        .def("loss_gradient(Tensor H, Tensor y, Tensor mask) -> Tensor", loss_gradient)
        .def(
            "network(Tensor[] A, int[] shape, Tensor H, Tensor y, Tensor mask, Tensor[] parameters, int version, float "
            "slope)"
            " -> (str[] names, Tensor[] values)",
            network_op);

}  // namespace gossamer::equations
