// SPDX-License-Identifier: Apache-2.0
// Random programs over a few variables, with a serial model of what every variable must hold in the end.
#pragma once
#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "base/error.h"
#include "engine/engine.h"

namespace twibil::engine {

struct Cell {  // what a variable guards: a value that depends on everything that was written before
  Variable variable;
  uint64_t value = 0;
  std::string error;  // model only
};

struct Step {
  std::vector<int> reads, writes;  // may overlap and hold duplicates
  bool fails = false;
  int priority = 0;
};

inline std::vector<Step> random_program(uint64_t seed, int cells, int steps, double failures) {
  std::mt19937_64 random(seed);
  auto some = [&](size_t most) {
    std::vector<int> list(random() % (most + 1));
    for (int& v : list) v = static_cast<int>(random() % static_cast<uint64_t>(cells));
    return list;
  };
  std::vector<Step> program(static_cast<size_t>(steps));
  for (Step& s : program)
    s = {some(4), some(3), static_cast<double>(random() % 1000) < failures * 1000, static_cast<int>(random() % 3)};
  return program;
}

inline bool contains(const std::vector<int>& list, int v) {
  return std::find(list.begin(), list.end(), v) != list.end();
}

/// What a step does to the values. A cell that is only written takes a value made of what was read; one that is also
/// read keeps a part of the old value.
inline void apply(const Step& s, size_t id, std::vector<Cell>& cells) {
  uint64_t h = id * 0x9e3779b97f4a7c15u + 1;
  for (int r : s.reads) h = (h ^ cells[static_cast<size_t>(r)].value) * 0xff51afd7ed558ccdu + 7;
  TW_CHECK(!s.fails, value, "step ", id);
  for (int w : s.writes) {
    auto& value = cells[static_cast<size_t>(w)].value;
    value = contains(s.reads, w) ? value * 3 + h : h + static_cast<uint64_t>(w);
  }
}

inline void run_serially(const std::vector<Step>& program, std::vector<Cell>& cells) {
  for (size_t i = 0; i < program.size(); ++i) {
    const Step& s = program[i];
    std::string error;
    for (int r : s.reads)
      if (error.empty()) error = cells[static_cast<size_t>(r)].error;
    if (error.empty()) {
      try {
        apply(s, i, cells);
      } catch (const Error& e) {
        error = e.message();
      }
    }
    for (int w : s.writes) cells[static_cast<size_t>(w)].error = error;
  }
}

inline void push_program(const std::vector<Step>& program, std::vector<Cell>& cells, bool dawdle) {
  for (size_t i = 0; i < program.size(); ++i) {
    const Step& s = program[i];
    std::vector<Variable*> reads, writes;
    for (int r : s.reads) reads.push_back(&cells[static_cast<size_t>(r)].variable);
    for (int w : s.writes) writes.push_back(&cells[static_cast<size_t>(w)].variable);
    auto body = [&s, i, &cells, dawdle] {
      if (dawdle && i % 7 == 0) std::this_thread::yield();
      apply(s, i, cells);
    };
    auto task = std::make_unique<FunctionTask<decltype(body)>>("step", body);
    task->priority = s.priority;
    push(std::move(task), reads, writes);
  }
}

/// What looking at a cell gives: its value, or the error's text.
inline std::string look(const Cell& c) {
  try {
    wait_to_read(&c.variable);
    return std::to_string(c.value);
  } catch (const Error& e) {
    return e.message();
  }
}
inline std::string expected_look(const Cell& c) { return c.error.empty() ? std::to_string(c.value) : c.error; }

/// Runs one random program under the engine in force; says what differs from the serial model, "" when nothing does.
inline std::string difference(uint64_t seed, double failures) {
  std::mt19937_64 random(seed + 1);
  int count = 2 + static_cast<int>(random() % 8);
  auto program = random_program(seed, count, 5 + static_cast<int>(random() % 60), failures);
  std::vector<Cell> model(static_cast<size_t>(count)), cells(static_cast<size_t>(count));
  run_serially(program, model);
  push_program(program, cells, seed % 2 == 0);
  std::string out;
  for (size_t i = cells.size(); i-- > 0;)
    if (std::string got = look(cells[i]); got != expected_look(model[i]))
      out += text("seed ", seed, " cell ", i, ": got ", got, ", expected ", expected_look(model[i]), "\n");
  try {
    wait_all();
  } catch (const Error&) {  // of a step whose result was overwritten before anybody looked
  }
  for (const Cell& c : cells)
    if ((c.variable.state & ~Variable::kFailed) != 0 || c.variable.first != nullptr || c.variable.readers != 0 ||
        c.variable.writer)
      out += text("seed ", seed, ": a variable is not at rest\n");
  return out;
}

}  // namespace twibil::engine
