// SPDX-License-Identifier: BSD-3-Clause
// count_instructions: prints how many instructions of this program each case takes, a name and a number a line.
//
// A child makes the inputs, calls the kernel once, so that nothing is done for the first time, stops, and calls it
// again. The parent lets it go on by one instruction at a time and looks where it is: what lies in this program counts,
// what lies in the system's libraries, whose memcpy is chosen by the machine, does not. Some ten thousand
// instructions take a second, so the cases are small.
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <gossamer/kernels/gat.h>
#include <gossamer/kernels/gatv2.h>
#include <gossamer/kernels/gatv2_backward.h>
#include <gossamer/kernels/runs.h>
#include <gossamer/kernels/sddmm.h>
#include <gossamer/kernels/softmax.h>
#include <gossamer/kernels/spgemm.h>
#include <gossamer/kernels/spmm.h>
#include <gossamer/kernels/transpose.h>

constexpr int not_here = 77;  // the status by which CTest knows what was skipped

#if defined(__x86_64__)
#include <sys/user.h>
extern "C" const char __executable_start, etext;

namespace {

using namespace gossamer;
using I = int32_t;

[[gnu::noinline]] void done() {
  asm volatile("");
}

// In the child: twice, with a stop between.
[[noreturn]] void run_stopped(const std::function<void()>& kernel) {
  kernel();
  raise(SIGSTOP);
  kernel();
  done();
  _exit(0);
}

int64_t count(const std::function<void()>& make_and_run) {
  const pid_t child = fork();
  if (child == 0) {
    ptrace(PTRACE_TRACEME, 0, nullptr, nullptr);
    make_and_run();
  }
  int status = 0;
  const auto wait = [&] { return waitpid(child, &status, 0) == child && WIFSTOPPED(status); };
  if (!wait()) return -1;
  const auto begin = reinterpret_cast<uintptr_t>(&__executable_start), end = reinterpret_cast<uintptr_t>(&etext),
             last = reinterpret_cast<uintptr_t>(&done);
  int64_t instructions = 0;
  for (uintptr_t at = 0; at != last;) {
    if (ptrace(PTRACE_SINGLESTEP, child, nullptr, nullptr) != 0 || !wait()) return -1;
    at = static_cast<uintptr_t>(ptrace(PTRACE_PEEKUSER, child, offsetof(user_regs_struct, rip), nullptr));
    instructions += at >= begin && at < end;
  }
  kill(child, SIGKILL);
  waitpid(child, &status, 0);
  return instructions;
}

// A graph of n nodes, about six edges a row and one row of twenty, or a grid; its transpose; numbers for everything.
struct Inputs {
  int64_t n;
  std::vector<I> indptr = {0}, indices, indptr_t, indices_t, perm, runs;
  std::mt19937 bits{1};

  Inputs(int64_t nodes, bool grid) : n(nodes) {
    for (I i = 0; i < n; ++i) {
      for (I j = 0; j < n; ++j) {
        const bool near = j == i || j == i - 1 || j == i + 1 || j == i - 20 || j == i + 20;
        const bool far = (static_cast<int64_t>(i) * i * 7 + static_cast<int64_t>(j) * 13) % n < (i == 3 ? 20 : 6);
        if (grid ? near : far || j == i) indices.push_back(j);
      }
      indptr.push_back(static_cast<I>(indices.size()));
    }
    indptr_t.resize(n + 1), indices_t.resize(indices.size()), perm.resize(indices.size());
    kernels::transpose(pattern(), indptr_t.data(), indices_t.data(), perm.data());
    runs = kernels::find_runs(pattern());
  }
  int64_t nnz() const { return static_cast<int64_t>(indices.size()); }
  PatternView<I> pattern() const { return {n, n, nnz(), indptr.data(), indices.data()}; }
  PatternView<I> transposed() const { return {n, n, nnz(), indptr_t.data(), indices_t.data()}; }
  PatternView<I> with_runs() const {
    PatternView<I> P = pattern();
    if (!runs.empty()) P.run_count = static_cast<int64_t>(runs.size()) - 1, P.runs = runs.data();
    return P;
  }
  template <class T = float>
  std::vector<T> numbers(int64_t count) {
    std::vector<T> all(count);
    for (T& number : all) number = static_cast<T>(static_cast<float>(bits() % 1000) / 500 - 1);
    return all;
  }
};

template <class T>
void spmm(int64_t width, bool grid, bool transpose) {
  Inputs in(grid ? 200 : 30, grid);
  const auto values = in.numbers<T>(in.nnz()), X = in.numbers<T>(in.n * width);
  std::vector<T> Y(in.n * width);
  const Csr<T, I> A{transpose ? in.transposed() : in.with_runs(), values.data(), 1,
                    transpose ? in.perm.data() : nullptr};
  run_stopped([&] { kernels::spmm(Pool(Serial{}), A, X.data(), width, width, Y.data()); });
}

template <class T>
void sddmm(int64_t width, bool grid) {
  Inputs in(grid ? 200 : 30, grid);
  const auto U = in.numbers<T>(in.n * width), V = in.numbers<T>(in.n * width);
  std::vector<T> values(in.nnz());
  const auto P = in.with_runs();
  run_stopped([&] { kernels::sddmm(Pool(Serial{}), P, 1, U.data(), width, V.data(), width, width, values.data()); });
}

void softmax() {
  Inputs in(30, false);
  const auto values = in.numbers(in.nnz() * 4);
  std::vector<float> P(values.size());
  run_stopped([&] { kernels::row_softmax(Pool(Serial{}), Csr<float, I>{in.pattern(), values.data(), 4}, P.data()); });
}

void spgemm(bool transpose) {
  Inputs in(30, false);
  const auto values = in.numbers(in.nnz());
  std::vector<float> C(in.nnz());
  const Csr<float, I> A{in.pattern(), values.data()};
  run_stopped([&] {
    if (transpose)
      kernels::spgemm_tn(Pool(Serial{}), A, A, in.pattern(), C.data());
    else
      kernels::spgemm_nt(Pool(Serial{}), A, A, in.pattern(), C.data());
  });
}

void transpose() {
  Inputs in(30, false);
  run_stopped([&] { kernels::transpose(in.pattern(), in.indptr_t.data(), in.indices_t.data(), in.perm.data()); });
}

template <class T>
void attention(bool second, bool backward) {
  constexpr int64_t heads = 2, width = 16;
  Inputs in(16, false);
  const auto X = in.numbers<T>(in.n * heads * width), D = in.numbers<T>(in.n * heads * width), G(X);
  const auto a = in.numbers<T>(in.n * heads), b = in.numbers<T>(in.n * heads), att = in.numbers<T>(heads * width);
  std::vector<T> Z(X.size()), dX(X.size()), dD(X.size()), da(a.size()), db(a.size()), datt(att.size());
  std::vector<Sum<T>> lse(in.n * heads), scratch((2 * in.nnz() + 3 * in.n) * heads);
  const kernels::Gat<T, I> gat{in.pattern(), heads, width, X.data(), a.data(), b.data(), nullptr, 0.2f, {}};
  const kernels::Gatv2<T, I> gatv2{in.pattern(), heads, width, X.data(), D.data(), att.data(), nullptr, 0.2f, {}};
  const Serial serial;
  const Pool pool(serial);
  const auto forward = [&] {
    second ? kernels::gatv2(pool, gatv2, Z.data(), lse.data()) : kernels::gat(pool, gat, Z.data(), lse.data());
  };
  forward();
  run_stopped([&] {
    if (!backward) return forward();
    if (second)
      kernels::gatv2_backward(pool, gatv2, in.transposed(), in.perm.data(), G.data(), Z.data(), lse.data(),
                              scratch.data(), {dX.data(), dD.data(), datt.data(), nullptr});
    else
      kernels::gat_backward(pool, gat, in.transposed(), in.perm.data(), G.data(), Z.data(), lse.data(), scratch.data(),
                            {dX.data(), da.data(), db.data(), nullptr});
  });
}

const std::vector<std::pair<std::string, std::function<void()>>> cases = {
    {"spmm, graph, 1 column", [] { spmm<double>(1, false, false); }},
    {"spmm, graph, 64 columns", [] { spmm<float>(64, false, false); }},
    {"spmm, graph, 64 columns, bfloat16", [] { spmm<bfloat16>(64, false, false); }},
    {"spmm, graph, 64 columns, float16", [] { spmm<float16>(64, false, false); }},
    {"spmm, transposed, 64 columns", [] { spmm<float>(64, false, true); }},
    {"spmm, grid, 1 column", [] { spmm<double>(1, true, false); }},
    {"sddmm, graph, 1 column", [] { sddmm<double>(1, false); }},
    {"sddmm, grid, 1 column", [] { sddmm<double>(1, true); }},
    {"sddmm, graph, 64 columns", [] { sddmm<float>(64, false); }},
    {"row_softmax, 4 heads", [] { softmax(); }},
    {"spgemm, Aᵀ B on a pattern", [] { spgemm(true); }},
    {"spgemm, A Bᵀ on a pattern", [] { spgemm(false); }},
    {"transpose", [] { transpose(); }},
    {"gat", [] { attention<float>(false, false); }},
    {"gat, backward", [] { attention<float>(false, true); }},
    {"gatv2", [] { attention<float>(true, false); }},
    {"gatv2, backward", [] { attention<float>(true, true); }},
    {"gatv2, bfloat16", [] { attention<bfloat16>(true, false); }},
};

}  // namespace

int main() {
  std::printf("compiler\t%s\nlevel\t%s\n", __VERSION__, name(simd_level()));
  for (const auto& [name, run] : cases) {
    std::fflush(stdout);
    const int64_t instructions = count(run);
    if (instructions < 0) return std::fprintf(stderr, "%s: the system does not let us count\n", name.c_str()), not_here;
    std::printf("%s\t%lld\n", name.c_str(), static_cast<long long>(instructions));
  }
}

#else

int main() {
  std::fprintf(stderr, "instructions are counted on x86-64 alone\n");
  return not_here;
}

#endif
