// SPDX-License-Identifier: Apache-2.0
// Chrome's trace event format. Each thread has a row for each kind of event, so that on every row events nest; what may
// overlap (queued tasks, the user's spans) is written as asynchronous events, and an arrow leads from the call that
// queued a task to its run.
#include <unistd.h>

#include <array>
#include <cstdio>
#include <set>

#include "api/profiler/report.h"
#include "base/profile.h"
#include "base/text.h"
#include "runtime/profiler.h"

namespace twibil::profiler {

using profile::Event;
using profile::Kind;

namespace {

constexpr size_t kPiece = 1 << 16;

// The rows of a thread, in the order in which they are shown.
enum Row { kScopes, kCalls, kWaits, kTasks, kKernels, kRowCount };
constexpr std::array<const char*, kRowCount> kRowNames = {"scopes", "calls", "waits", "engine tasks", "kernels"};

Row row_of(Kind kind) {
  switch (kind) {
    case Kind::call: return kCalls;
    case Kind::wait: return kWaits;
    case Kind::task: return kTasks;
    case Kind::kernel: return kKernels;
    default: return kScopes;
  }
}

const char* category_of(Kind kind) {
  switch (kind) {
    case Kind::call: return "call";
    case Kind::kernel: return "operator";
    case Kind::task: return "task";
    case Kind::queue: return "queue";
    case Kind::wait: return "wait";
    case Kind::scope: return "scope";
    case Kind::span: return "span";
    case Kind::counter: return "counter";
    case Kind::marker: return "marker";
    case Kind::memory: return "memory";
  }
  return "";
}

class Writer {
 public:
  explicit Writer(const std::function<void(std::string_view)>& write) : write_(write), start_(start_time()) {}

  void run() {
    text_ = "{\"displayTimeUnit\": \"ms\", \"traceEvents\": [\n";
    text_ += text("{\"ph\": \"M\", \"pid\": ", pid_, ", \"name\": \"process_name\", \"args\": {\"name\": \"twibil\"}}");
    const std::vector<profile::Log> logs = profile::logs();
    for (const profile::Log& log : logs) name_rows(log);
    for (const profile::Log& log : logs)
      for (const Event& e : log.events) {
        add(e, log.thread);
        if (text_.size() < kPiece) continue;
        write_(text_);
        text_.clear();
      }
    text_ += text("\n],\n\"otherData\": {\"peak_bytes\": ", peak_bytes(),
                  ", \"events_left_out\": ", profile::left_out(), "}}\n");
    write_(text_);
  }

 private:
  static int row(int thread, Row r) { return thread * kRowCount + r; }

  void name_rows(const profile::Log& log) {
    std::set<Row> used;
    for (const Event& e : log.events) used.insert(row_of(e.kind));
    for (Row r : used) {
      meta("thread_name", row(log.thread, r));
      text_ += "\"name\": ";
      append_json_string(text_, log.thread_name + ": " + kRowNames[r]);
      text_ += "}}";
      meta("thread_sort_index", row(log.thread, r));
      text_ += text("\"sort_index\": ", row(log.thread, r), "}}");
    }
  }
  void meta(const char* what, int row) {
    text_ += text(",\n{\"ph\": \"M\", \"pid\": ", pid_, ", \"tid\": ", row, ", \"name\": \"", what, "\", \"args\": {");
  }

  /// Microseconds since the start, exact to the nanosecond.
  void time(const char* key, int64_t ns) {
    char s[64];
    std::snprintf(s, sizeof s, ", \"%s\": %lld.%03d", key, static_cast<long long>(ns / 1000),
                  static_cast<int>(ns % 1000));
    text_ += s;
  }
  void begin(const char* phase, const Event& e, int row, int64_t at, const char* name = nullptr) {
    text_ += text(",\n{\"ph\": \"", phase, "\", \"pid\": ", pid_, ", \"tid\": ", row, ", \"cat\": ");
    append_json_string(text_, e.kind == Kind::span && e.detail ? e.detail : category_of(e.kind));
    text_ += ", \"name\": ";
    append_json_string(text_, name ? name : e.name);
    time("ts", std::max<int64_t>(at - start_, 0));
  }

  void add(const Event& e, int thread) {
    switch (e.kind) {
      case Kind::queue: return add_queue(e, thread);
      case Kind::span:
        begin("b", e, row(thread, kScopes), e.begin);
        text_ += text(", \"id\": ", e.id, "}");
        begin("e", e, row(thread, kScopes), e.end);
        text_ += text(", \"id\": ", e.id, "}");
        return;
      case Kind::counter:
      case Kind::memory:
        begin("C", e, row(thread, kScopes), e.begin);
        text_ += ", \"args\": {";
        append_json_string(text_, e.detail ? e.detail : "bytes");
        text_ += text(": ", e.number, "}}");
        return;
      case Kind::marker:
        begin("i", e, row(thread, kScopes), e.begin);
        text_ += text(", \"s\": \"", static_cast<char>(e.number), "\", \"args\": {\"domain\": ");
        append_json_string(text_, e.detail ? e.detail : "");
        text_ += "}}";
        return;
      default: break;
    }
    begin("X", e, row(thread, row_of(e.kind)), e.begin);
    time("dur", e.end - std::max(e.begin, start_));
    if (e.kind == Kind::kernel) add_facts(e);
    text_ += "}";
    if (e.kind == Kind::task && e.id) {
      begin("f", e, row(thread, kTasks), e.begin, "queued");
      text_ += text(", \"bp\": \"e\", \"id\": ", e.id, "}");
    }
  }

  void add_queue(const Event& e, int thread) {
    const int from = row(e.from >= 0 ? e.from : thread, kCalls);
    begin("b", e, from, e.begin);
    text_ +=
        text(", \"id\": ", e.id, ", \"args\": {\"us_until_inputs_ready\": ", static_cast<double>(e.number) / 1e3, "}}");
    begin("e", e, from, e.end);
    text_ += text(", \"id\": ", e.id, "}");
    Event task = e;
    task.kind = Kind::task;
    begin("s", task, from, e.begin, "queued");
    text_ += text(", \"id\": ", e.id, "}");
  }

  void add_facts(const Event& e) {
    text_ += ", \"args\": {";
    if (e.detail) {
      text_ += "\"arrays\": ";
      append_json_string(text_, e.detail);
      text_ += ", ";
    }
    if (e.node) {
      text_ += "\"node\": ";
      append_json_string(text_, e.node);
      text_ += ", ";
    }
    text_ += text("\"bytes\": ", e.number);
    const double ns = static_cast<double>(std::max<int64_t>(e.end - e.begin, 1));
    if (e.operations > 0) text_ += text(", \"operations\": ", e.operations, ", \"GFLOP/s\": ", e.operations / ns);
    text_ += text(", \"GB/s\": ", static_cast<double>(e.number) / ns, "}");
  }

  const std::function<void(std::string_view)>& write_;
  const int64_t start_;
  const int pid_ = getpid();
  std::string text_;
};

}  // namespace

void write_trace(const std::function<void(std::string_view)>& write) { Writer(write).run(); }

void append_json_string(std::string& to, std::string_view s) {
  to += '"';
  for (char c : s) {
    if (c == '"' || c == '\\') {
      to += '\\';
      to += c;
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
      char code[8];
      std::snprintf(code, sizeof code, "\\u%04x", static_cast<unsigned>(static_cast<unsigned char>(c)));
      to += code;
    } else {
      to += c;
    }
  }
  to += '"';
}

}  // namespace twibil::profiler
