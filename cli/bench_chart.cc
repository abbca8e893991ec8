// SPDX-License-Identifier: Apache-2.0
#include "bench_chart.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "api/io/file.h"

namespace twibil::cli {

namespace {

constexpr double kPanelWidth = 300, kPanelHeight = 190, kMargin = 24, kTop = 64, kBar = 15;
constexpr const char *kFast = "#2563a8", *kDirect = "#b9c4d0", *kInk = "#222", *kFaint = "#777";

std::string format(const char* form, auto... values) {
  char s[512];
  std::snprintf(s, sizeof s, form, values...);
  return s;
}
std::string clean(const std::string& s) {
  std::string out;
  for (char c : s) {
    if (c == '<') out.append("&lt;");
    else if (c == '>') out.append("&gt;");
    else if (c == '&') out.append("&amp;");
    else out.push_back(c);
  }
  return out;
}
std::string label(double x, double y, const std::string& s, double size, const char* color, const char* anchor) {
  return format("<text x='%.1f' y='%.1f' font-size='%g' fill='%s' text-anchor='%s'>", x, y, size, color, anchor) +
         clean(s) + "</text>\n";
}
std::string bar(double x, double base, double height, const char* color) {
  return format("<rect x='%.1f' y='%.1f' width='%.1f' height='%.1f' fill='%s'/>\n", x, base - height, kBar, height,
                color);
}
std::string rate(double r) { return format(r < 10 ? "%.1f" : "%.0f", r); }

/// One network: bars side by side, the speedup above them.
std::string panel(double x, double y, const std::vector<BenchRow>& rows) {
  std::string s = label(x, y + 14, rows[0].network, 14, kInk, "start");
  double most = 0, base = y + kPanelHeight - 34, room = kPanelHeight - 92;
  for (const BenchRow& r : rows) most = std::max({most, r.fast, r.direct});
  double step = (kPanelWidth - 2 * kMargin) / static_cast<double>(std::max<size_t>(rows.size(), 6));
  for (size_t i = 0; i < rows.size(); ++i) {
    const BenchRow& r = rows[i];
    double middle = x + (static_cast<double>(i) + 0.5) * step, top = base - room * std::max(r.fast, r.direct) / most;
    s += bar(middle - kBar, base, room * r.direct / most, kDirect) + bar(middle, base, room * r.fast / most, kFast);
    s += label(middle, top - 16, rate(r.fast), 11, kInk, "middle");
    s += label(middle, top - 4, format("x%.2f", r.fast / r.direct), 10, kFaint, "middle");
    s += label(middle, base + 14, format("%lld", static_cast<long long>(r.batch)), 11, kFaint, "middle");
  }
  s += format("<line x1='%.1f' y1='%.1f' x2='%.1f' y2='%.1f' stroke='%s'/>\n", x, base + 0.5,
              x + step * static_cast<double>(rows.size()), base + 0.5, kFaint);
  return s;
}

}  // namespace

void write_chart(const std::string& path, const std::vector<BenchRow>& rows, const std::string& subtitle) {
  std::vector<std::vector<BenchRow>> panels;
  for (const BenchRow& r : rows) {
    if (panels.empty() || panels.back()[0].network != r.network) panels.emplace_back();
    panels.back().push_back(r);
  }
  size_t columns = std::min<size_t>(panels.size(), 3), lines = columns ? (panels.size() + columns - 1) / columns : 0;
  double width = std::max(2 * kMargin + kPanelWidth * static_cast<double>(columns), 620.0);
  double height = kTop + kPanelHeight * static_cast<double>(lines) + kMargin;
  std::string s = format(
      "<svg xmlns='http://www.w3.org/2000/svg' width='%.0f' height='%.0f' viewBox='0 0 %.0f %.0f' "
      "font-family='sans-serif'>\n<rect width='100%%' height='100%%' fill='white'/>\n",
      width, height, width, height);
  s += label(kMargin, 26, "Images per second by batch size", 17, kInk, "start");
  s += label(kMargin, 45, subtitle, 12, kFaint, "start");
  double right = width - kMargin;
  s += bar(right - 190, 27, 10, kFast) + label(right - 170, 27, "every algorithm", 11, kInk, "start");
  s += bar(right - 190, 45, 10, kDirect) + label(right - 170, 45, "direct convolutions only", 11, kInk, "start");
  for (size_t i = 0; i < panels.size(); ++i)
    s += panel(kMargin + kPanelWidth * static_cast<double>(i % columns),
               kTop + kPanelHeight * static_cast<double>(i / columns), panels[i]);
  io::write_atomic(path, io::bytes_of(s + "</svg>\n"));
}

}  // namespace twibil::cli
