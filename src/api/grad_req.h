// SPDX-License-Identifier: Apache-2.0
// The words for what backward does with a gradient array, the same in C++ and Python.
#pragma once
#include "ir/node.h"

namespace twibil {

inline const char* name_of(GradReq r) {
  switch (r) {
    case GradReq::write: return "write";
    case GradReq::add: return "add";
    case GradReq::null: return "null";
  }
  return "?";
}

/// `who` is the function that was given the word.
inline GradReq grad_req_of(std::string_view word, const char* who) {
  for (GradReq r : {GradReq::write, GradReq::add, GradReq::null})
    if (word == name_of(r)) return r;
  throw_error(ErrorKind::value, text(who, ": grad_req must be write, add or null; got ", word));
}

}  // namespace twibil
