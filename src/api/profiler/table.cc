// SPDX-License-Identifier: Apache-2.0
// Statistics by name: sections for kernels, calls, the queue, waits and what the user measures.
#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <map>

#include "api/profiler/report.h"
#include "base/profile.h"
#include "base/text.h"
#include "runtime/profiler.h"

namespace twibil::profiler {

using profile::Kind;
using profile::Stats;

namespace {

constexpr size_t kNameWidth = 30;

struct Section {
  std::string name, note;
  std::vector<Stats> rows;
};

bool is_value(Kind kind) { return kind == Kind::counter || kind == Kind::memory; }

std::string section_of(const Stats& s) {
  switch (s.kind) {
    case Kind::kernel: return "operator";
    case Kind::call: return "call";
    case Kind::queue: return "queue";
    case Kind::wait: return "wait";
    case Kind::scope: return "scope";
    default: return s.detail ? s.detail : "event";
  }
}
const char* note_of(const std::string& section) {
  static const std::map<std::string, const char*> notes = {
      {"operator", "time in kernels, on the threads that ran them"},
      {"call", "time of calls on the thread that made them; calls inside of calls count in both"},
      {"queue", "time of queued work from the call to its start; blocked: until its inputs were ready"},
      {"wait", "time in which a thread waited for queued work"},
      {"scope", "parts of the program"}};
  auto found = notes.find(section);
  return found == notes.end() ? "" : found->second;
}

double key_of(const Stats& s, SortBy by) {
  switch (by) {
    case SortBy::total: return static_cast<double>(s.total);
    case SortBy::average: return static_cast<double>(s.total) / static_cast<double>(s.count);
    case SortBy::least: return static_cast<double>(s.least);
    case SortBy::most: return static_cast<double>(s.most);
    case SortBy::count: return static_cast<double>(s.count);
  }
  return 0;
}

/// Kernels first, then what belongs to them, then the user's domains by name.
std::vector<Section> sections(const TableOptions& options) {
  std::map<std::string, Section> by_name;
  for (const Stats& s : profile::statistics()) {
    if (s.kind == Kind::task || s.kind == Kind::memory) continue;  // of their kernels; at the end
    std::string name = section_of(s);
    Section& section = by_name[name];
    section.name = name;
    section.rows.push_back(s);
  }
  std::vector<Section> ordered;
  for (const char* first : {"operator", "call", "queue", "wait", "scope"})
    if (auto node = by_name.extract(first)) ordered.push_back(std::move(node.mapped()));
  for (auto& [name, section] : by_name) ordered.push_back(std::move(section));
  for (Section& section : ordered)
    std::ranges::stable_sort(section.rows, [&](const Stats& a, const Stats& b) {
      const double x = key_of(a, options.sort_by), y = key_of(b, options.sort_by);
      return options.ascending ? x < y : x > y;
    });
  return ordered;
}

double total_of(const Section& section) {
  double sum = 0;
  for (const Stats& s : section.rows)
    if (!is_value(s.kind)) sum += static_cast<double>(s.total);
  return sum;
}

double ms(int64_t ns) { return static_cast<double>(ns) / 1e6; }
double rate(double amount, const Stats& s) { return amount / static_cast<double>(std::max<int64_t>(s.total, 1)); }
double share(const Stats& s, double total) { return total > 0 ? static_cast<double>(s.total) / total : 0; }

[[gnu::format(printf, 2, 3)]] void print(std::string& to, const char* format, ...) {
  char line[512];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(line, sizeof line, format, arguments);
  va_end(arguments);
  to += line;
}

/// A name that fits into its column, cut between characters.
std::string shortened(std::string_view name) {
  if (name.size() <= kNameWidth) return std::string(name);
  size_t end = kNameWidth - 2;
  while (end > 0 && (static_cast<unsigned char>(name[end]) & 0xc0) == 0x80) --end;
  return std::string(name.substr(0, end)) + "..";
}

void print_row(std::string& to, const Stats& s, double total) {
  const std::string name = shortened(s.name);
  to += name + std::string(kNameWidth - std::min(name.size(), kNameWidth), ' ');
  if (is_value(s.kind)) {
    print(to, " %9lld  value %lld, least %lld, most %lld\n", static_cast<long long>(s.count),
          static_cast<long long>(s.total), static_cast<long long>(s.least), static_cast<long long>(s.most));
    return;
  }
  if (s.kind == Kind::marker) return print(to, " %9lld\n", static_cast<long long>(s.count));
  print(to, " %9lld %12.4f %6.1f%% %11.4f %11.4f %11.4f", static_cast<long long>(s.count), ms(s.total),
        100 * share(s, total), ms(s.least), ms(s.most), ms(s.total) / static_cast<double>(s.count));
  if (s.kind == Kind::kernel) {
    if (s.operations > 0) print(to, " %9.2f", rate(s.operations, s));
    else to += "         -";
    print(to, " %9.2f", rate(s.bytes, s));
  }
  if (s.kind == Kind::queue) print(to, " %12.4f", ms(s.blocked));
  to += '\n';
}

void print_json_row(std::string& to, const Stats& s, double total) {
  to += text("{\"Count\": ", s.count);
  if (is_value(s.kind)) {
    to += text(", \"Value\": ", s.total, ", \"Min\": ", s.least, ", \"Max\": ", s.most);
  } else if (s.kind != Kind::marker) {
    to += text(", \"Total\": ", ms(s.total), ", \"Share\": ", share(s, total), ", \"Min\": ", ms(s.least),
               ", \"Max\": ", ms(s.most), ", \"Avg\": ", ms(s.total) / static_cast<double>(s.count));
  }
  if (s.kind == Kind::kernel) {
    if (s.operations > 0) to += text(", \"GFLOP/s\": ", rate(s.operations, s));
    to += text(", \"GB/s\": ", rate(s.bytes, s));
  }
  if (s.kind == Kind::queue) to += text(", \"Blocked\": ", ms(s.blocked));
  to += '}';
}

const Stats* memory_row(const std::vector<Stats>& all) {
  for (const Stats& s : all)
    if (s.kind == Kind::memory) return &s;
  return nullptr;
}

}  // namespace

std::string statistics_table(const TableOptions& options) {
  std::string s = "Profile Statistics:\n";
  for (const Section& section : sections(options)) {
    const double total = total_of(section);
    s += text("\n", section.name);
    if (*note_of(section.name)) s += text(" (", note_of(section.name), ")");
    s += "\n=================\n";
    print(s, "%-30s %9s %12s %7s %11s %11s %11s", "Name", "Count", "Time (ms)", "Share", "Min (ms)", "Max (ms)",
          "Avg (ms)");
    if (section.name == "operator") print(s, " %9s %9s", "GFLOP/s", "GB/s");
    if (section.name == "queue") print(s, " %12s", "Blocked (ms)");
    s += '\n';
    for (const Stats& row : section.rows) print_row(s, row, total);
  }
  const std::vector<Stats> all = profile::statistics();
  if (const Stats* memory = memory_row(all))
    print(s, "\nmemory of arrays: now %.3f MB, least %.3f MB, peak %.3f MB\n", static_cast<double>(memory->total) / 1e6,
          static_cast<double>(memory->least) / 1e6, static_cast<double>(peak_bytes()) / 1e6);
  if (int64_t n = profile::left_out())
    s += text("\n", n, " events are missing in the trace, which is full (max_events); they count in this table.\n");
  return s;
}

std::string statistics_json(const TableOptions& options) {
  std::string s = "{\"Time\": {";
  bool first = true;
  for (const Section& section : sections(options)) {
    const double total = total_of(section);
    s += first ? "\n  " : ",\n  ";
    first = false;
    append_json_string(s, section.name);
    s += ": {";
    for (size_t i = 0; i < section.rows.size(); ++i) {
      s += i ? ",\n    " : "\n    ";
      append_json_string(s, section.rows[i].name);
      s += ": ";
      print_json_row(s, section.rows[i], total);
    }
    s += "}";
  }
  s += "},\n\"Memory\": {";
  const std::vector<Stats> all = profile::statistics();
  if (const Stats* memory = memory_row(all))
    s += text("\"cpu/0\": {\"Count\": ", memory->count, ", \"Current\": ", memory->total, ", \"Min\": ", memory->least,
              ", \"Max\": ", peak_bytes(), "}");
  s +=
      text("},\n\"EventsLeftOut\": ", profile::left_out(), ",\n\"Unit\": {\"Time\": \"ms\", \"Memory\": \"bytes\"}}\n");
  return s;
}

}  // namespace twibil::profiler
