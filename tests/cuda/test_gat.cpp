// SPDX-License-Identifier: BSD-3-Clause
// Both kinds of graph attention on the device, and their gradients, against plain loops over edges in double.
#include "gat.cuh"

#include "attention.h"
#include "gatv2.cuh"

namespace gossamer::test {
namespace {

// Z, lse and the four gradients; every element is to be written.
template <class T>
struct Results {
  std::vector<T> Z;
  std::vector<Sum<T>> lse, scratch, forward_scratch;
  std::vector<std::vector<T>> d;

  template <class I>
  explicit Results(const Problem<T, I>& p) : Z(not_numbers<T>(static_cast<int64_t>(p.G.size()))) {
    const int64_t heads = p.shape.heads, width = p.shape.width, rows = p.A.rows, nnz = p.A.nnz();
    lse = not_numbers<Sum<T>>(rows * heads);
    forward_scratch = not_numbers<Sum<T>>(kernels::attention_cuda_scratch(nnz, heads, width));
    scratch = not_numbers<Sum<T>>(p.shape.second ? kernels::gatv2_cuda_scratch(rows, nnz, heads, width)
                                                 : kernels::gat_cuda_scratch(nnz, heads, width));
    for (const auto& input : p.in) d.push_back(not_numbers<T>(static_cast<int64_t>(input.size())));
  }
  template <class Gradients>
  Gradients gradients(bool edges) {
    return {d[0].data(), d[1].data(), d[2].data(), edges ? d[3].data() : nullptr};
  }
};

template <class T, class I>
Results<T> run(const Problem<T, I>& p) {
  Results<T> r(p);
  if (p.shape.second) {
    const auto in = p.template view<kernels::Gatv2<T, I>>();
    kernels::gatv2(Cuda{}, in, r.Z.data(), r.lse.data(), r.forward_scratch.data());
    kernels::gatv2_backward(Cuda{}, in, p.A.transpose(), p.A.perm.data(), p.G.data(), r.Z.data(), r.lse.data(),
                            r.scratch.data(), r.template gradients<kernels::Gatv2Gradients<T>>(p.shape.edges));
  } else {
    const auto in = p.template view<kernels::Gat<T, I>>();
    kernels::gat(Cuda{}, in, r.Z.data(), r.lse.data(), r.forward_scratch.data());
    kernels::gat_backward(Cuda{}, in, p.A.transpose(), p.A.perm.data(), p.G.data(), r.Z.data(), r.lse.data(),
                          r.scratch.data(), r.template gradients<kernels::GatGradients<T>>(p.shape.edges));
  }
  return r;
}

template <class T>
void expect_near(const std::vector<T>& got, const Reals& wanted, double tolerance, const char* what) {
  ASSERT_EQ(got.size(), wanted.size()) << what;
  for (size_t k = 0; k < got.size(); ++k)
    ASSERT_NEAR(static_cast<double>(got[k]), wanted[k], tolerance * (1 + std::abs(wanted[k])))
        << what << "[" << k << "], seed " << emulator::config.seed;
}

template <class T>
void expect_plain(const Results<T>& got, const std::vector<Reals>& wanted) {
  const double exact = sizeof(Sum<T>) == 8 ? 1e-12 : 1e-5;  // 16 bits: Z is rounded before the backward reads it
  const double close = std::is_same_v<T, bfloat16> ? 3e-2 : std::is_same_v<T, float16> ? 4e-3 : exact;
  expect_near(got.Z, wanted[0], close, "Z");
  expect_near(got.lse, wanted[1], exact, "lse");
  for (int k = 0; k < 4; ++k) expect_near(got.d[k], wanted[k + 2], close, "gradient");
}

template <class T, class I>
void expect_plain(const Graph<I>& graph, const Shape& shape) {
  static uint64_t turn = 0;
  SCOPED_TRACE(testing::PrintToString(shape));
  schedule(++turn);
  const Problem<T, I> problem(graph, shape);
  expect_plain(run(problem), plain(problem));
}

template <class F>
void for_each_kind(const F& f) {
  for (const bool second : {false, true})
    for (const bool edges : {false, true})
      for (const bool drops : {false, true}) f(second, edges, drops ? Dropout(0.4, 7) : Dropout());
}

template <class>
struct AttentionOfType : testing::Test {};
TYPED_TEST_SUITE(AttentionOfType, AllTypes);

TYPED_TEST(AttentionOfType, EqualsPlainLoops) {
  using T = typename TypeParam::Value;
  using I = typename TypeParam::Index;
  if (under_tsan)
    for (const bool second : {false, true}) expect_plain<T, I>({3, {{2, 0}, {}}}, {1, 3, second, second});
  else
    for_each_kind([](bool second, bool edges, const Dropout& dropout) {
      expect_plain<T>(small_graph<I>(35), {1, 5, second, edges, dropout});
      expect_plain<T>(small_graph<I>(35), {3, 16, second, edges, dropout});
      expect_plain<T>(small_graph<I>(35), {2, 33, second, edges, dropout});
    });
}

TEST(Attention, EveryLayoutOfLanes) {
  for_each_kind([](bool second, bool edges, const Dropout& dropout) {
    if (under_tsan && !(second && edges)) return;
    for (const int64_t width : {0, 1, 8, 16, 33, 140})
      if (!under_tsan || width == 33)
        expect_plain<double>(small_graph<int32_t>(under_tsan ? 3 : 66),
                             {width > 100 || under_tsan ? 1 : 3, width, second, edges, dropout});
  });
}

TEST(Attention, OddShapes) {
  if (under_tsan) return;
  const std::vector<Graph<int64_t>> graphs = {
      {0, {}}, {5, {}}, {0, {{}, {}}}, {7, {{}, {}, {}}}, {1, {{0}, {}, {0}}}, {2, std::vector(40, std::vector{1, 0})}};
  for (const auto& graph : graphs)
    for (const bool second : {false, true})
      for (const int64_t heads : {0, 2}) expect_plain<double>(graph, {heads, 3, second, true});
}

// The order of additions must depend neither on the schedule nor on the index type.
TEST(Attention, SameBitsUnderEverySchedule) {
  for (const bool second : {false, true}) {
    const Shape shape{2, 6, second, true, Dropout(0.3, 1)};
    const int longest = under_tsan ? 3 : 1100;
    const Problem<float, int32_t> narrow(small_graph<int32_t>(longest), shape);
    const Problem<float, int64_t> wide(small_graph<int64_t>(longest), shape);
    const auto expect_same = [](const Results<float>& got, const Results<float>& wanted) {
      EXPECT_TRUE(same_bits(got.Z, wanted.Z));
      EXPECT_TRUE(same_bits(got.lse, wanted.lse));
      for (int k = 0; k < 4; ++k) EXPECT_TRUE(same_bits(got.d[k], wanted.d[k]));
    };
    schedule(0);
    const Results<float> first = run(narrow);
    for (uint64_t seed = 1; seed <= (under_tsan ? 1 : 20); ++seed) {
      schedule(seed);
      expect_same(run(narrow), first);
    }
    if (!under_tsan) expect_same(run(wide), first);
  }
}

// Grids much smaller than the work, layouts the launcher would not choose for this width, few row ranges.
template <int lanes, int columns>
void expect_any_grid_covers(const Problem<double, int32_t>& p) {
  using namespace kernels;
  Results<double> r(p);
  const auto A = p.A.view(), At = p.A.transpose();
  const int64_t heads = p.shape.heads, width = p.shape.width, all = heads * width;
  const double *G = p.G.data(), *Z = r.Z.data(), *lse = r.lse.data();
  double *scratch = r.scratch.data(), *sums = r.forward_scratch.data(), *partial = scratch + 2 * p.A.nnz() * heads;
  const auto launch = [](auto kernel, auto... args) { device::launch(Cuda{}, kernel, 2, 64, args...); };
  const auto add = [&](const auto& pattern, int64_t wide, int64_t split, double* out, double* rest) {
    launch(device::add_pieces<32, double, int32_t>, pattern, wide, split, partial, out, rest);
  };
  if (p.shape.second) {
    const int64_t parts = 2, rows_of_att = parts + piece_places(p.A.nnz());
    const auto in = p.template view<Gatv2<double, int32_t>>();
    const auto d = r.template gradients<Gatv2Gradients<double>>(true);
    double* d_att = partial;
    partial += rows_of_att * all;
    launch(gatv2_tiles<lanes, columns, double, int32_t>, in, r.Z.data(), r.lse.data(), sums);
    launch(device::attend_pieces<double, int32_t>, A, heads, width, sums, r.Z.data(), r.lse.data());
    launch(gatv2_entry_gradients<lanes, double, int32_t>, in, G, Z, lse, scratch);
    launch(gatv2_row_gradients<lanes, columns, double, int32_t>, in, parts, scratch, d, d_att, partial);
    launch(gatv2_sum_parts<double>, all, rows_of_att, d_att, d.att);
    add(A, all, all, d.x_dst, nullptr);
    launch(gatv2_col_gradients<lanes, columns, double, int32_t>, in, At, p.A.perm.data(), G, scratch, d.x_src, partial);
    add(At, all, all, d.x_src, nullptr);
  } else {
    const auto in = p.template view<Gat<double, int32_t>>();
    const auto d = r.template gradients<GatGradients<double>>(true);
    launch(gat_tiles<lanes, columns, double, int32_t>, in, r.Z.data(), r.lse.data(), sums);
    launch(device::attend_pieces<double, int32_t>, A, heads, width, sums, r.Z.data(), r.lse.data());
    launch(gat_row_gradients<lanes, double, int32_t>, in, G, Z, lse, scratch, d, partial);
    add(A, heads, heads, d.alpha_dst, nullptr);
    launch(gat_col_gradients<lanes, columns, double, int32_t>, in, At, p.A.perm.data(), G, scratch, d, partial);
    add(At, heads + all, all, d.X, d.alpha_src);
  }
  expect_plain(r, plain(p));
}

TEST(Attention, AnyGridCoversTheGraph) {
  if (under_tsan) return;
  for (const bool second : {false, true}) {
    const Problem<double, int32_t> problem(small_graph<int32_t>(1040), {3, 37, second, true});
    schedule(second);
    expect_any_grid_covers<8, 4>(problem);
    expect_any_grid_covers<32, 4>(problem);
  }
}

// Rows around the edges of a warp and of a piece, under many schedules.
TEST(Attention, RowsAroundTheEdges) {
  std::vector<std::vector<int>> rows;
  for (const int length : {0, 1, 31, 32, 33, 0, 1024, 1025}) {
    if (under_tsan && length > 33) continue;
    rows.emplace_back(length);
    for (int k = 0; k < length; ++k) rows.back()[k] = k * 7 % 50;
  }
  for (uint64_t seed = 1; seed <= (under_tsan ? 2 : 20); ++seed)
    for (const bool second : {false, true})
      expect_plain<double>(Graph<int64_t>(50, rows), {1, seed % 2 ? 5 : 33, second, seed % 4 < 2});
}

// A target with half of all edges, and sources with more than their share: five of them, so that the transpose has long
// rows as well. Both are cut into pieces.
TEST(Attention, Hubs) {
  std::vector<std::vector<int>> rows{{1, 2}, {}, std::vector<int>(under_tsan ? 1100 : 3000), {0, 4, 5}};
  for (size_t k = 0; k < rows[2].size(); ++k) rows[2][k] = k % 9 == 0 ? static_cast<int>(k) % 5 : 4;
  for (int k = 0; k < (under_tsan ? 2 : 150); ++k) rows.push_back(std::vector<int>(k % 40, 3));
  for_each_kind([&](bool second, bool edges, const Dropout& dropout) {
    if (under_tsan && edges == dropout.any()) return;
    for (const int64_t width : {1, 6, 40})
      if (!under_tsan || width == 6)
        expect_plain<double>(Graph<int32_t>(6, rows), {width == 6 ? 2 : 1, width, second, edges, dropout});
  });
}

// Scores far beyond what exp can hold; scores of -∞ have no weight wherever they stand, a row of them has no softmax.
class ExtremeScores : public testing::TestWithParam<int> {};
TEST_P(ExtremeScores, HaveTheirLimit) {
  std::vector<int> many(GetParam(), 0);
  many.back() = 1;
  Problem<double, int32_t> problem({4, {many, {0, 0}, {2, 3}, {1, 2}}}, {1, 3, false, false});
  problem.in[1] = {-INFINITY, 0.5, 1000, 990};
  problem.in[2] = {0, 0, 0, 0};
  const std::vector<double> Z = run(problem).Z, X = problem.in[0];
  const double s = 1 / (1 + std::exp(-10.0));
  for (int c = 0; c < 3; ++c) {
    EXPECT_DOUBLE_EQ(Z[c], X[3 + c]);
    EXPECT_TRUE(std::isnan(Z[3 + c]));
    EXPECT_NEAR(Z[6 + c], s * X[6 + c] + (1 - s) * X[9 + c], 1e-14);
    EXPECT_DOUBLE_EQ(Z[9 + c], X[6 + c]);
  }
}

INSTANTIATE_TEST_SUITE_P(ShortAndLongRows, ExtremeScores, testing::Values(40, 1300));

// NaN stays in the rows that read it, infinite features too.
TEST(Attention, RowsDoNotMix) {
  for (const double poison : {static_cast<double>(NAN), static_cast<double>(INFINITY)})
    for (const bool second : {false, true}) {
      Problem<double, int32_t> problem(small_graph<int32_t>(33), {1, 3, second, false});
      for (int c = 0; c < 3; ++c) problem.in[0][4 * 3 + c] = poison;  // source 4: rows 0 and 4
      const std::vector<double> Z = run(problem).Z;
      for (int64_t i = 0; i < 6; ++i) EXPECT_EQ(std::isfinite(Z[3 * i]), i != 0 && i != 4) << "row " << i;
    }
}

}  // namespace
}  // namespace gossamer::test
