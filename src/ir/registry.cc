// SPDX-License-Identifier: Apache-2.0
#include "ir/registry.h"

#include <algorithm>
#include <deque>
#include <map>
#include <mutex>
#include <unordered_map>

#include "ir/formula_derivative.h"

namespace twibil {

// Start-up only pushes onto this list: an exception there could not be caught by anybody.
static constinit const Registration* registrations = nullptr;

Registration::Registration(const OpDef& definition) : op(definition), next(registrations) { registrations = this; }

namespace {
struct Tables {
  std::vector<const OpDef*> sorted;
  std::unordered_map<std::string_view, const OpDef*> by_name;
  Tables() {
    for (const Registration* r = registrations; r; r = r->next) {
      sorted.push_back(&r->op);
      bool fresh = by_name.emplace(r->op.name, &r->op).second;
      TW_CHECK(fresh, runtime, "two operators are called ", r->op.name);
    }
    std::sort(sorted.begin(), sorted.end(),
              [](auto* a, auto* b) { return std::string_view(a->name) < std::string_view(b->name); });
  }
};
const Tables& tables() {
  static const Tables t;
  return t;
}
}  // namespace

const std::vector<const OpDef*>& registry() { return tables().sorted; }

const OpDef* find_op(std::string_view name) {
  auto it = tables().by_name.find(name);
  return it == tables().by_name.end() ? nullptr : it->second;
}

const OpDef& require_op(std::string_view name) {
  if (const OpDef* op = find_op(name)) return *op;
  std::vector<std::string_view> known;
  for (const OpDef* op : registry()) known.push_back(op->name);
  throw_error(ErrorKind::key, text("there is no operator ", name, did_you_mean(name, known)));
}

const OpDef& op_with_role(Role role) {
  static const auto by_role = [] {
    std::array<const OpDef*, 16> found{};
    for (const OpDef* op : registry()) {
      if (op->role == Role::none) continue;
      auto& place = found[static_cast<int>(op->role)];
      TW_CHECK(!place, runtime, op->name, " and ", place->name, " claim the same role");
      place = op;
    }
    return found;
  }();
  const OpDef* op = by_role[static_cast<int>(role)];
  TW_ASSERT(op);
  return *op;
}

namespace {
// A derived operator owns what its definition points to.
struct Derived {
  OpDef def;
  Program program;
  std::string name;
};
}  // namespace

const OpDef& derivative_of(const OpDef& op, int input) {
  static std::mutex mutex;
  static std::map<std::pair<const OpDef*, int>, const OpDef*> known;
  static std::deque<Derived> storage;
  std::lock_guard lock(mutex);
  const OpDef*& place = known[{&op, input}];
  if (place) return *place;
  Derived& d = storage.emplace_back();
  d.program = derivative(*op.program, input);
  d.name = text("derivative of ", op.name, " by ", op.in[input].name);
  d.def = op;
  d.def.name = d.name.c_str();
  d.def.names = {};
  d.def.program = &d.program;
  d.def.rule = Rule::floating;
  d.def.in[op.inputs()] = {.name = "dy"};
  d.def = counted(d.def);
  d.def.grad = nullptr;
  d.def.auto_grad = true;
  d.def.needs = kAllInputs;
  d.def.samples = {};
  d.def.role = Role::none;
  place = &d.def;
  return *place;
}

static size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0]++;
    for (size_t j = 1; j <= b.size(); ++j) {
      size_t replace = diagonal + (a[i - 1] != b[j - 1]);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, replace});
    }
  }
  return row[b.size()];
}

std::string did_you_mean(std::string_view word, const std::vector<std::string_view>& known) {
  std::string_view best;
  size_t least = std::max<size_t>(1, word.size() / 3) + 1;
  for (std::string_view k : known)
    if (size_t d = edit_distance(word.substr(0, 64), k); d < least) least = d, best = k;
  return best.empty() ? std::string() : text(". Did you mean ", best, "?");
}

}  // namespace twibil
