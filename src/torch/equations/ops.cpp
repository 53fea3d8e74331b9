// SPDX-License-Identifier: BSD-3-Clause
// The equations as torch.ops.gossamer_equations.*: composite ops, differentiable because what they are made of is.
#include <ATen/ATen.h>
#include <torch/library.h>

#include <gossamer/equations.h>
#include "core/csr.h"

namespace gossamer::equations {
namespace {

using at::IntArrayRef;

Pattern pattern_of(TensorList tensors, IntArrayRef shape) {
  TORCH_CHECK_VALUE(tensors.size() >= 2 && shape.size() == 2, "equations: a pattern is {indptr, indices} and a shape");
  return Pattern(tensors[0], tensors[1], {shape[0], shape[1]}, /*check=*/false);
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

}  // namespace

TORCH_LIBRARY_FRAGMENT(gossamer_equations, m) {
  const auto def = [&m](const char* arguments, auto f) {
    m.def(std::string(arguments).append(" -> Tensor").c_str(), f);
  };
  using T = const Tensor&;
  def("convolution(Tensor[] A, int[] shape, Tensor values, Tensor H, Tensor W)",
      [](TensorList A, IntArrayRef shape, T values, T H, T W) {
        return convolution(SparseMatrix(pattern_of(A, shape), values), H, W);
      });
  def("combination(Tensor H, Tensor W)", combination);
  def("coefficients_v1(Tensor X, Tensor a)", [](T X, T a) { return coefficients(X, a); });
  def("coefficients_v2(Tensor X)", [](T X) { return coefficients(X).alias(); });
  def("outer_sum(Tensor[] A, int[] shape, Tensor c_dst, Tensor c_src)",
      [](TensorList A, IntArrayRef shape, T c_dst, T c_src) { return outer_sum(pattern_of(A, shape), c_dst, c_src); });
  def("logits_v1(Tensor sum, float slope)", logits_v1);
  def("logits_v2(Tensor a, Tensor sum, float slope)", logits_v2);
  def("attention(Tensor[] A, int[] shape, Tensor L)",
      [](TensorList A, IntArrayRef shape, T L) { return attention(pattern_of(A, shape), L); });
  def("aggregation(Tensor[] A, int[] shape, Tensor S, Tensor X)",
      [](TensorList A, IntArrayRef shape, T S, T X) { return aggregation(pattern_of(A, shape), S, X); });
  def("hidden_output(Tensor Z)", hidden_output);
  def("final_output(Tensor Z)", final_output);
  def("hidden_delta(Tensor Z, Tensor delta)", hidden_delta);
  def("output_jacobian(Tensor H)", output_jacobian);
  def("output_delta(Tensor jacobian, Tensor delta)", output_delta);
  def("head_delta(Tensor output_delta, int heads)", head_delta);
  def("attention_gradient(Tensor[] A, int[] shape, Tensor delta_prime, Tensor X)",
      [](TensorList A, IntArrayRef shape, T d, T X) { return attention_gradient(pattern_of(A, shape), d, X); });
  def("attention_jacobian(Tensor[] A, int[] shape, Tensor S, int i)",
      [](TensorList A, IntArrayRef shape, T S, int64_t i) { return attention_jacobian(pattern_of(A, shape), S, i); });
  def("logit_gradient(Tensor[] A, int[] shape, Tensor S, Tensor dS)",
      [](TensorList A, IntArrayRef shape, T S, T dS) { return logit_gradient(pattern_of(A, shape), S, dS); });
  def("slopes_v1(Tensor sum, float slope)", slopes_v1);
  def("slopes_v2(Tensor a, Tensor sum, float slope)", slopes_v2);
  def("edge_gradient_v1(Tensor C_prime, Tensor dL)", edge_gradient_v1);
  def("edge_gradient_v2(Tensor C_prime, Tensor dL)", edge_gradient_v2);
  def("destination_sum(Tensor[] A, int[] shape, Tensor Delta)",
      [](TensorList A, IntArrayRef shape, T Delta) { return destination_sum(pattern_of(A, shape), Delta); });
  def("source_sum(Tensor[] A, int[] shape, Tensor Delta)",
      [](TensorList A, IntArrayRef shape, T Delta) { return source_sum(pattern_of(A, shape), Delta); });
  def("vector_gradient_v1(Tensor X, Tensor Sigma)", vector_gradient_v1);
  def("vector_gradient_v2(Tensor dL, Tensor sum, float slope)", vector_gradient_v2);
  def("bracket_v1(Tensor[] A, int[] shape, Tensor S, Tensor delta_prime, Tensor Sigma_dst, Tensor a_dst, "
      "Tensor Sigma_src, Tensor a_src)",
      [](TensorList A, IntArrayRef shape, T S, T d, T Sigma_dst, T a_dst, T Sigma_src, T a_src) {
        return bracket_v1(pattern_of(A, shape), S, d, Sigma_dst, a_dst, Sigma_src, a_src);
      });
  def("bracket_v2(Tensor[] A, int[] shape, Tensor S, Tensor delta_prime, Tensor Sigma_src)",
      [](TensorList A, IntArrayRef shape, T S, T d, T Sigma_src) {
        return bracket_v2(pattern_of(A, shape), S, d, Sigma_src);
      });
  def("feature_gradient_v1(Tensor bracket, Tensor W)", feature_gradient_v1);
  def("feature_gradient_v2(Tensor Sigma_dst, Tensor W_dst, Tensor bracket, Tensor W_src)", feature_gradient_v2);
  def("weight_gradient(Tensor H, Tensor bracket)", weight_gradient);
  def("loss(Tensor H, Tensor y, Tensor mask)", loss);
  def("loss_gradient(Tensor H, Tensor y, Tensor mask)", loss_gradient);
  m.def(
      "network(Tensor[] A, int[] shape, Tensor H, Tensor y, Tensor mask, Tensor[] parameters, int version, float slope)"
      " -> (str[] names, Tensor[] values)",
      network_op);
}

}  // namespace gossamer::equations
