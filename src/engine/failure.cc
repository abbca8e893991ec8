// SPDX-License-Identifier: Apache-2.0
#include "engine/failure.h"

#include <algorithm>
#include <cstdio>
#include <new>
#include <string>
#include <typeinfo>

#include "base/error.h"
#include "engine/task.h"

namespace twibil::engine {

static constexpr size_t kKept = 64;

std::shared_ptr<Failure> failure_of_current_exception(const Task& task) {
  try {
    throw;
  } catch (Error& e) {
    e.suffix(task.describe());
  } catch (const std::bad_alloc&) {
    Error e(ErrorKind::memory, text(task.name, ": the system has no more memory", task.describe()));
    return std::make_shared<Failure>(std::make_exception_ptr(e));
  } catch (...) {  // a front end's own exception: passes untouched
  }
  return std::make_shared<Failure>(std::current_exception());
}

void throw_failure(Failure& failure) {
  failure.seen = true;
  try {
    std::rethrow_exception(failure.error);
  } catch (const Error& e) {
    if (typeid(e) == typeid(Error)) throw Error(e);
    throw;
  }
}

void FailureLog::add(std::shared_ptr<Failure> failure) {
  if (unseen_.size() >= kKept) std::erase_if(unseen_, [](auto& f) { return f->seen.load(); });
  if (unseen_.size() < kKept) unseen_.push_back(std::move(failure));
  else ++more_;
}

std::shared_ptr<Failure> FailureLog::take() {
  std::shared_ptr<Failure> first;
  for (auto& f : unseen_)
    if (first == nullptr && !f->seen) first = f;
  unseen_.clear();
  more_ = 0;
  return first;
}

void FailureLog::report() {
  int64_t shown = 0;
  for (auto& f : unseen_) {
    if (f->seen) continue;
    std::string what = "an unknown exception";
    try {
      std::rethrow_exception(f->error);
    } catch (const std::exception& e) {
      what = e.what();
    } catch (...) {
    }
    if (++shown <= 8)
      std::fprintf(stderr, "twibil: an operation failed and nobody looked at its result: %s\n", what.c_str());
  }
  if (int64_t rest = std::max<int64_t>(0, shown - 8) + more_; rest > 0)
    std::fprintf(stderr, "twibil: and %lld more failed operations\n", static_cast<long long>(rest));
  unseen_.clear();
  more_ = 0;
}

}  // namespace twibil::engine
