// SPDX-License-Identifier: Apache-2.0
#include "ir/registry.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <deque>
#include <map>
#include <mutex>
#include <unordered_map>
#include <utility>

#include "ir/formula_derivative.h"

namespace twibil {

namespace {

// Start-up only pushes onto this list: an exception there could not be caught by anybody.
constinit std::atomic<const Registration*> registrations = nullptr;
constinit thread_local std::vector<Registration*>* collecting = nullptr;

void link_in(Registration* r) {
  const Registration* first = registrations.load(std::memory_order_relaxed);
  do r->next = first;
  while (!registrations.compare_exchange_weak(first, r, std::memory_order_release, std::memory_order_relaxed));
}

/// The registry at one time. Old ones stay, because somebody may look at them.
struct Tables {
  const Registration* newest;
  std::vector<const OpDef*> sorted;
  std::unordered_map<std::string_view, const OpDef*> by_name;
  std::array<const OpDef*, 16> by_role{};

  explicit Tables(const Registration* from) : newest(from) {
    for (const Registration* r = newest; r; r = r->next) {
      sorted.push_back(&r->op);
      bool fresh = by_name.emplace(r->op.name, &r->op).second;
      TW_CHECK(fresh, runtime, "two operators are called ", r->op.name);
      if (r->op.role == Role::none) continue;
      const OpDef*& place = by_role[static_cast<size_t>(r->op.role)];
      TW_CHECK(!place, runtime, r->op.name, " and ", place->name, " claim the same role");
      place = &r->op;
    }
    std::ranges::sort(sorted, {}, [](const OpDef* op) { return std::string_view(op->name); });
  }
};

std::mutex& changes() {
  static std::mutex mutex;
  return mutex;
}

const Tables& tables() {
  static constinit std::atomic<const Tables*> current = nullptr;
  const Tables* t = current.load(std::memory_order_acquire);
  if (t && t->newest == registrations.load(std::memory_order_acquire)) return *t;
  static std::mutex mutex;
  static std::deque<Tables> all;
  std::lock_guard lock(mutex);
  const Registration* newest = registrations.load(std::memory_order_acquire);
  t = current.load(std::memory_order_acquire);
  if (t && t->newest == newest) return *t;
  current.store(&all.emplace_back(newest), std::memory_order_release);
  return all.back();
}

/// Whether the operator may be added beside those of `known`.
void check_new(const OpDef& op, std::span<const OpDef* const> known) {
  TW_CHECK(op.name && *op.name && op.doc, value, "an operator needs a name and a doc");
  TW_CHECK(op.expand || op.program || op.view || (op.infer && op.kernel), value, op.name,
           ": an operator needs a formula, a view, infer and kernel, or an expansion");
  TW_CHECK(op.expand || op.grad || op.auto_grad || op.no_grad, value, op.name,
           ": an operator needs a gradient or a reason to have none");
  TW_CHECK(op.role == Role::none, value, op.name, ": roles belong to the library's own operators");
  for (const OpDef* other : known) {
    TW_CHECK(std::string_view(other->name) != op.name, value, "there is already an operator ", op.name);
    for (const char* name : op.names)
      for (const char* taken : other->names)
        TW_CHECK(!name || !taken || std::string_view(name) != taken, value, op.name, ": the public name ", name,
                 " belongs to the operator ", other->name);
  }
}

}  // namespace

Registration::Registration(const OpDef& definition, uint64_t compiled_against) : op(definition), abi(compiled_against) {
  if (collecting) collecting->push_back(this);
  else link_in(this);
}

void register_operator(const OpDef& op) {
  static std::deque<Registration> storage;
  std::lock_guard lock(changes());
  check_new(op, registry());
  std::vector<Registration*> own, *before = std::exchange(collecting, &own);
  Registration* r = &storage.emplace_back(op);
  collecting = before;
  link_in(r);
}

RegistrationScope::RegistrationScope() {
  TW_ASSERT(!collecting);
  collecting = &found_;
}
RegistrationScope::~RegistrationScope() { collecting = nullptr; }

std::vector<const OpDef*> RegistrationScope::commit(std::string_view source) {
  collecting = nullptr;
  for (const Registration* r : found_)
    TW_CHECK(r->abi == kOperatorAbi, runtime, source,
             ": its operators were compiled against another version of twibil; compile it again with the headers of "
             "this one");
  std::lock_guard lock(changes());
  std::vector<const OpDef*> added, known = registry();
  for (const Registration* r : found_) {
    check_new(r->op, known);
    known.push_back(&r->op);
    added.push_back(&r->op);
  }
  for (Registration* r : found_) link_in(r);
  found_.clear();
  return added;
}

const std::vector<const OpDef*>& registry() { return tables().sorted; }

const OpDef* find_op(std::string_view name) {
  const auto& names = tables().by_name;
  auto found = names.find(name);
  return found == names.end() ? nullptr : found->second;
}

const OpDef& require_op(std::string_view name) {
  if (const OpDef* op = find_op(name)) return *op;
  std::vector<std::string_view> known;
  for (const OpDef* op : registry()) known.push_back(op->name);
  throw_error(ErrorKind::key, text("there is no operator ", name, did_you_mean(name, known)));
}

const OpDef& op_with_role(Role role) {
  const OpDef* op = tables().by_role[static_cast<size_t>(role)];
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
  d.program = op.derivatives ? op.derivatives[input] : derivative(*op.program, input);
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
  d.def.derivatives = nullptr;
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
