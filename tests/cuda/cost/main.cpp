// SPDX-License-Identifier: BSD-3-Clause
// cuda_cost PATTERN float|double OP[:WIDTH[:HEADS]] …   counts the cost of ops on a pattern, a line of JSON each.
//
// PATTERN is a file: rows, cols and nnz as int64, then rows + 1 and nnz int32, indptr and indices.
#include <chrono>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <stdexcept>

#include "emulator/emulator.h"
#include "ops.h"

namespace cost {
namespace {

Pattern read(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const auto fill = [&](void* to, size_t bytes) {
    file.read(static_cast<char*>(to), static_cast<std::streamsize>(bytes));
  };
  int64_t sizes[3] = {};
  fill(sizes, sizeof sizes);
  Pattern A{sizes[0], sizes[1], {}, {}};
  A.indptr.resize(sizes[0] + 1), A.indices.resize(sizes[2]);
  fill(A.indptr.data(), 4 * A.indptr.size());
  fill(A.indices.data(), 4 * A.indices.size());
  if (!file) throw std::runtime_error("cuda_cost: cannot read " + path);
  if (const std::string wrong = check_structure(A.view()); !wrong.empty())
    throw std::runtime_error(path + ": " + wrong);
  return A;
}

Ops ops_for(const std::string& type) {
  Ops ops;
  if (type == "float")
    add_products<float>(ops), add_rows<float>(ops), add_attention<float>(ops);
  else if (type == "double")
    add_products<double>(ops), add_rows<double>(ops), add_attention<double>(ops);
  else
    throw std::runtime_error("cuda_cost: " + type + " is neither float nor double");
  return ops;
}

void run(const Pattern& A, const Ops& ops, const std::string& text) {
  const size_t first = text.find(':'), second = first == std::string::npos ? first : text.find(':', first + 1);
  Shape shape;
  if (first != std::string::npos) shape.width = std::stoll(text.substr(first + 1));
  if (second != std::string::npos) shape.heads = std::stoll(text.substr(second + 1));
  const auto op = ops.find(text.substr(0, first));
  if (op == ops.end()) throw std::runtime_error("cuda_cost: no op " + text.substr(0, first));
  const auto began = std::chrono::steady_clock::now();
  const Work work = op->second(A, shape);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
  std::printf("{\"op\": \"%s\", \"width\": %ld, \"heads\": %ld, \"flops\": %.0f, \"chain\": %ld, \"counts\": %s}\n",
              op->first.c_str(), static_cast<long>(shape.width), static_cast<long>(shape.heads), work.flops,
              static_cast<long>(work.chain), report().c_str());
  std::fflush(stdout);
  std::cerr << text << ": emulated in " << took.count() << " s\n";
  reset();
}

}  // namespace
}  // namespace cost

int main(int count, char** arguments) try {
  if (count < 4) throw std::runtime_error("usage: cuda_cost PATTERN float|double OP[:WIDTH[:HEADS]] ...");
  emulator::config = {0, 8};  // in order, several blocks at once
  const cost::Pattern A = cost::read(arguments[1]);
  const cost::Ops ops = cost::ops_for(arguments[2]);
  for (int k = 3; k < count; ++k) cost::run(A, ops, arguments[k]);
  return 0;
} catch (const std::exception& error) {
  std::cerr << error.what() << '\n';
  return 1;
}
