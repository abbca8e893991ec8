// SPDX-License-Identifier: Apache-2.0
// Products that are matrix products after their axes are brought in order: dot, batch_dot, tensordot, einsum.
#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "ops/axes.h"
#include "ops/forms.h"

namespace twibil::ops {

namespace {

struct BatchDotAttrs {
  bool transpose_a = false, transpose_b = false;
};
struct TensordotAttrs {
  IntList a_axes, b_axes;
};
struct EinsumAttrs {
  ShortText subscripts;
};

Val swapped(const Val& x) {
  IntList order;
  for (int i = 0; i < x->rank(); ++i) order.push_back(i);
  std::swap(order[x->rank() - 1], order[x->rank() - 2]);
  return transpose(x, order);
}

/// Sums over pairs of axes: both operands become matrices, kept axes outside.
Val contract(const Val& a, const Val& b, const IntList& a_axes, const IntList& b_axes, const char* who) {
  TW_CHECK(a_axes.size() == b_axes.size(), value, who,
           ": as many axes of the first array as of the second are needed; got ", a_axes.span(), " and ",
           b_axes.span());
  kernels::AxisSet in_a = axis_set(Maybe<IntList>(a_axes), a->rank(), who),
                   in_b = axis_set(Maybe<IntList>(b_axes), b->rank(), who);
  IntList order_a, order_b;
  Shape result;
  int64_t rows = 1, depth = 1, columns = 1;
  for (int i = 0; i < a->rank(); ++i)
    if (!(in_a >> i & 1)) order_a.push_back(i), rows *= a->dims[i], result.push_back(a->dims[i]);
  for (int k = 0; k < a_axes.size(); ++k) {
    int i = normalize_axis(a_axes[k], a->rank(), who), j = normalize_axis(b_axes[k], b->rank(), who);
    TW_CHECK(a->dims[i] == b->dims[j], value, who, ": axis ", i, " of the first array has size ", a->dims[i], ", axis ",
             j, " of the second ", b->dims[j], "; shapes are ", a->shape(), " and ", b->shape());
    order_a.push_back(i);
    order_b.push_back(j);
    depth *= a->dims[i];
  }
  for (int j = 0; j < b->rank(); ++j)
    if (!(in_b >> j & 1)) order_b.push_back(j), columns *= b->dims[j], result.push_back(b->dims[j]);
  Val left = reshape(transpose(a, order_a), Shape{rows, depth}),
      right = reshape(transpose(b, order_b), Shape{depth, columns});
  return reshape(matmul(left, right), result);
}

// ---- einsum ----

struct Letters {  // axes of one operand by their letters; '\1'... stand for the axes of an ellipsis
  std::vector<char> of;
};

struct Subscripts {
  std::vector<Letters> in;
  Letters out;
};

/// Reads "ij,jk->ik" against the ranks of the operands.
Subscripts parse(std::string_view given, std::span<const Val> operands) {
  std::string s;
  for (char c : given)
    if (c != ' ') s += c;
  auto bad = [&](auto... why) { throw_error(ErrorKind::value, text("einsum: subscripts \"", s, "\" ", why...)); };
  size_t arrow = s.find("->");
  std::string left = s.substr(0, arrow);
  std::vector<std::string> terms(1);
  for (char c : left) {
    if (c == ',') terms.emplace_back();
    else terms.back() += c;
  }
  if (terms.size() != operands.size()) bad("name ", terms.size(), " arrays; got ", operands.size());
  int dots = 0;  // the longest ellipsis
  auto letters = [&](const std::string& term, int ellipsis) {
    Letters l;
    for (size_t i = 0; i < term.size(); ++i) {
      if (term.compare(i, 3, "...") == 0) {
        for (int d = 0; d < ellipsis; ++d) l.of.push_back(static_cast<char>(1 + dots - ellipsis + d));
        i += 2;
      } else if ((term[i] >= 'a' && term[i] <= 'z') || (term[i] >= 'A' && term[i] <= 'Z')) {
        l.of.push_back(term[i]);
      } else {
        bad("must hold letters, commas, ... and ->; got '", term[i], "'");
      }
    }
    return l;
  };
  std::vector<int> widths;
  for (size_t k = 0; k < terms.size(); ++k) {
    const size_t ellipsis = terms[k].find("...");
    const bool open = ellipsis != std::string::npos;
    if (open && terms[k].find("...", ellipsis + 3) != std::string::npos)
      bad("name the axes of array ", k, " with ... twice");
    int named = static_cast<int>(terms[k].size()) - (open ? 3 : 0), extra = operands[k]->rank() - named;
    if (extra < 0 || (!open && extra != 0))
      bad("give array ", k, " ", named, " axes; it has shape ", text(operands[k]->shape()));
    widths.push_back(extra);
    dots = std::max(dots, extra);
  }
  Subscripts result;
  for (size_t k = 0; k < terms.size(); ++k) result.in.push_back(letters(terms[k], widths[k]));
  std::array<int, 256> seen{};
  for (const Letters& l : result.in)
    for (char c : l.of) ++seen[static_cast<unsigned char>(c)];
  if (arrow != std::string::npos) {
    result.out = letters(s.substr(arrow + 2), dots);
    std::array<int, 256> used{};
    for (char c : result.out.of) {
      if (!seen[static_cast<unsigned char>(c)]) bad("have an axis in the result that no array has");
      if (used[static_cast<unsigned char>(c)]++) bad("name an axis of the result twice");
    }
  } else {  // letters that occur once, in alphabetical order
    for (int c = 1; c < 256; ++c)
      if (seen[static_cast<size_t>(c)] == 1 || (c < 32 && seen[static_cast<size_t>(c)]))
        result.out.of.push_back(static_cast<char>(c));
  }
  return result;
}

bool holds(const Letters& l, char c) { return std::find(l.of.begin(), l.of.end(), c) != l.of.end(); }

/// A repeated letter takes the diagonal: x where i == j, else 0, summed over j. (A product would make NaN of
/// infinities.)
Val take_diagonals(Val x, Letters& l) {
  for (size_t i = 0; i < l.of.size(); ++i)
    for (size_t j = i + 1; j < l.of.size(); ++j) {
      if (l.of[i] != l.of[j]) continue;
      int64_t n = x->dims[i];
      TW_CHECK(n == x->dims[j], value, "einsum: a repeated axis must have one size; got shape ", x->shape());
      EyeAttrs eye{n, {}, 0, DType::bool_};
      Val mask = apply(op_eye, static_cast<const void*>(&eye), {});
      Shape shape;
      for (size_t k = 0; k < l.of.size(); ++k) shape.push_back(k == i || k == j ? n : 1);
      x = sum(where(reshape(mask, shape), x, 0), IntList{static_cast<int64_t>(j)});
      l.of.erase(l.of.begin() + static_cast<std::ptrdiff_t>(j));
      --j;
    }
  return x;
}

/// Sums axes away that nobody else wants.
Val drop_axes(Val x, Letters& l, auto wanted) {
  IntList axes;
  Letters rest;
  for (size_t i = 0; i < l.of.size(); ++i) {
    if (wanted(l.of[i])) rest.of.push_back(l.of[i]);
    else axes.push_back(static_cast<int64_t>(i));
  }
  l = rest;
  return axes.empty() ? x : sum(x, axes);
}

/// x with its axes in the order of `to`; axes that it lacks have size one.
Val arrange(const Val& x, const Letters& from, const std::vector<char>& to) {
  IntList order;
  Shape shape;
  for (char c : to) {
    auto at = std::find(from.of.begin(), from.of.end(), c);
    if (at == from.of.end()) {
      shape.push_back(1);
      continue;
    }
    order.push_back(at - from.of.begin());
    shape.push_back(x->dims[at - from.of.begin()]);
  }
  return reshape(transpose(x, order), shape);
}

/// Two operands into one: letters of both that the rest does not want are summed by a matrix product.
Val pair_up(const Val& a, Letters la, const Val& b, Letters lb, auto wanted, Letters& result) {
  std::vector<char> batch, only_a, only_b, summed;
  for (char c : la.of) (holds(lb, c) ? (wanted(c) ? batch : summed) : only_a).push_back(c);
  for (char c : lb.of)
    if (!holds(la, c)) only_b.push_back(c);
  auto joined = [](std::vector<char> x, const std::vector<char>& y, const std::vector<char>& z) {
    x.insert(x.end(), y.begin(), y.end());
    x.insert(x.end(), z.begin(), z.end());
    return x;
  };
  Val x = arrange(a, la, joined(batch, only_a, summed)), y = arrange(b, lb, joined(batch, summed, only_b));
  size_t nb = batch.size();
  Shape left, right, out;
  int64_t rows = 1, columns = 1, depth_x = 1, depth_y = 1;
  for (size_t i = 0; i < nb; ++i)
    left.push_back(x->dims[i]), right.push_back(y->dims[i]), out.push_back(std::max(x->dims[i], y->dims[i]));
  for (size_t i = 0; i < only_a.size(); ++i) rows *= x->dims[nb + i], out.push_back(x->dims[nb + i]);
  for (size_t i = 0; i < summed.size(); ++i) {
    depth_x *= x->dims[nb + only_a.size() + i], depth_y *= y->dims[nb + i];
    TW_CHECK(x->dims[nb + only_a.size() + i] == y->dims[nb + i], value, "einsum: axis ", std::string(1, summed[i]),
             " has sizes ", x->dims[nb + only_a.size() + i], " and ", y->dims[nb + i]);
  }
  for (size_t i = 0; i < only_b.size(); ++i)
    columns *= y->dims[nb + summed.size() + i], out.push_back(y->dims[nb + summed.size() + i]);
  left.push_back(rows), left.push_back(depth_x), right.push_back(depth_y), right.push_back(columns);
  result.of = joined(batch, only_a, only_b);
  return reshape(matmul(reshape(x, left), reshape(y, right)), out);
}

}  // namespace

TW_OP(dot) = whole({
    .name = "dot",
    .doc = "The product of a and b: inner for vectors, matrix for matrices, with a number elementwise, else over the "
           "last axis of a and the second to last of b.",
    .names = {"np.dot", "ndarray.dot"},
    .graph = {.names = "_np_dot _npi_dot"},
    .in = {{{.name = "a"}, {.name = "b"}}},
    .types = kAll,
    .expand = expand_rule<NoAttrs>([](auto&, std::span<const Val> in) -> Vals {
      const Val &a = in[0], &b = in[1];
      if (a->rank() == 0 || b->rank() == 0) return {a * b};
      if (a->rank() <= 2 && b->rank() <= 2) return {matmul(a, b)};
      return {contract(a, b, {a->rank() - 1}, {b->rank() == 1 ? 0 : b->rank() - 2}, "dot")};
    }),
    .no_grad = "its parts have",
    .samples = {{{.in = {{{3, 4}, {4, 5}}}}, {.in = {{{2, 3, 4}, {2, 4, 5}}}}, {.in = {{{3, 4}, SampleInput({4})}}}}},
});

inline constexpr Field kBatchDotFields[] = {TW_ATTR(BatchDotAttrs, transpose_a, "Transposes each matrix of a."),
                                            TW_ATTR(BatchDotAttrs, transpose_b, "Transposes each matrix of b.")};
TW_OP(batch_dot) = whole({
    .name = "batch_dot",
    .doc = "The matrix products of a batch of pairs: (batch, n, m) with (batch, m, k).",
    .names = {"npx.batch_dot", "nd.batch_dot"},
    .attrs = schema<BatchDotAttrs>(kBatchDotFields),
    .in = {{{.name = "a"}, {.name = "b"}}},
    .types = kFloats,
    .expand = expand_rule<BatchDotAttrs>([](auto& attrs, std::span<const Val> in) -> Vals {
      const Val &a = in[0], &b = in[1];
      TW_CHECK(a->rank() >= 3 && a->rank() == b->rank(), value,
               "batch_dot: a and b must have shape (batch..., rows, columns); got ", a->shape(), " and ", b->shape());
      for (int i = 0; i + 2 < a->rank(); ++i)
        TW_CHECK(a->dims[i] == b->dims[i], value, "batch_dot: the batches must agree; shapes are ", a->shape(), " and ",
                 b->shape());
      return {matmul(attrs.transpose_a ? swapped(a) : a, attrs.transpose_b ? swapped(b) : b)};
    }),
    .no_grad = "its parts have",
    .samples = {{{.in = {{{2, 3, 4}, {2, 4, 5}}}},
                 {.in = {{{2, 4, 3}, {2, 5, 4}}}, .attrs = "transpose_a=True, transpose_b=True"}}},
});

inline constexpr Field kTensordotFields[] = {
    TW_ATTR(TensordotAttrs, a_axes, "Axes of a to sum over."),
    TW_ATTR(TensordotAttrs, b_axes, "Axes of b to sum over, in the same order.")};
TW_OP(tensordot) = whole({
    .name = "tensordot",
    .doc = "Sums products of a and b over pairs of axes.",
    .names = {"npx.tensordot_axes"},
    .attrs = schema<TensordotAttrs>(kTensordotFields),
    .in = {{{.name = "a"}, {.name = "b"}}},
    .types = kAll,
    .expand = expand_rule<TensordotAttrs>([](auto& attrs, std::span<const Val> in) -> Vals {
      return {contract(in[0], in[1], attrs.a_axes, attrs.b_axes, "tensordot")};
    }),
    .no_grad = "its parts have",
    .samples = {{{.in = {{{2, 3, 4}, {4, 3, 5}}}, .attrs = "a_axes=(1, 2), b_axes=(1, 0)"}}},
});

inline constexpr Field kEinsumFields[] = {
    TW_ATTR(EinsumAttrs, subscripts, "Letters per axis, as in numpy.einsum: \"ij,jk->ik\".", .required = true)};
TW_OP(einsum) = whole({
    .name = "einsum",
    .doc = "Sums of products by Einstein's convention; pairs of arrays are combined from left to right by matrix "
           "products.",
    .names = {"npx.einsum_of"},
    .onnx = {.names = "Einsum", .attrs = "subscripts:equation"},
    .attrs = schema<EinsumAttrs>(kEinsumFields),
    .in = {{{.name = "operands", .kind = SlotKind::variadic}}},
    .types = kAll,
    .expand = expand_rule<EinsumAttrs>([](auto& a, std::span<const Val> in) -> Vals {
      TW_CHECK(!in.empty(), value, "einsum: at least one array is needed; got none");
      Subscripts s = parse(a.subscripts.view(), in);
      Val x = take_diagonals(in[0], s.in[0]);
      Letters l = s.in[0];
      for (size_t k = 1; k <= s.in.size(); ++k) {
        auto later = [&](char c) {
          bool used = holds(s.out, c);
          for (size_t j = k; j < s.in.size(); ++j) used |= holds(s.in[j], c);
          return used;
        };
        x = drop_axes(x, l, later);
        if (k == s.in.size()) break;
        Val y = take_diagonals(in[k], s.in[k]);
        auto after = [&](char c) {
          bool used = holds(s.out, c);
          for (size_t j = k + 1; j < s.in.size(); ++j) used |= holds(s.in[j], c);
          return used;
        };
        Letters ly = s.in[k], joined;
        y = drop_axes(y, ly, [&](char c) { return after(c) || holds(l, c); });
        x = pair_up(x, l, y, ly, after, joined);
        l = joined;
      }
      IntList order;
      for (char c : s.out.of) order.push_back(std::find(l.of.begin(), l.of.end(), c) - l.of.begin());
      return {transpose(x, order)};
    }),
    .no_grad = "its parts have",
    .samples = {{{.in = {{{3, 4}, {4, 5}}}, .attrs = "subscripts=ij,jk->ik"},
                 {.in = {{{3, 3}}}, .attrs = "subscripts=ii"},
                 {.in = {{{2, 3}, {2, 3}}}, .attrs = "subscripts=ij,ij->j"}}},
});

}  // namespace twibil::ops
