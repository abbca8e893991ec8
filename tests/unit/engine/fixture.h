// SPDX-License-Identifier: Apache-2.0
// What the engine's tests share: an engine and a team for one test, and the text of an error.
#pragma once
#include <functional>
#include <string>

#include "base/error.h"
#include "base/parallel.h"
#include "engine/engine.h"

namespace twibil::engine {

struct Engine {  // an engine for one test
  explicit Engine(Kind kind, Simulation simulation = {}) { set_engine(kind, simulation); }
  ~Engine() {
    try {
      wait_all();
    } catch (...) {
    }
    set_engine(Kind::threaded);
  }
};

struct Team {  // enough threads for several workers, whatever the machine has
  Team() : before(num_threads()) { set_num_threads(4); }
  ~Team() { set_num_threads(before); }
  int before;
};

inline std::string message_of(const std::function<void()>& body) {
  try {
    body();
  } catch (const Error& e) {
    return e.message();
  } catch (const std::exception& e) {
    return std::string("std: ") + e.what();
  }
  return "no error";
}

template <class F> void on_all_engines(F&& body) {
  Team team;
  for (Kind kind : {Kind::naive, Kind::simulated, Kind::threaded}) {
    Engine engine(kind, {.seed = 3});
    SCOPED_TRACE(engine_name());
    body();
  }
}

}  // namespace twibil::engine
