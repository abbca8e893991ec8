// SPDX-License-Identifier: Apache-2.0
// A vector whose memory goes back to a list of its thread instead of the heap, for the small tables that kernels make
// in every call: after the first call of a kind nothing is allocated.
#pragma once
#include <cstddef>
#include <utility>
#include <vector>

namespace twibil {

template <class T> class Recycled : public std::vector<T> {
 public:
  Recycled() { take(); }
  explicit Recycled(size_t n) {
    take();
    this->resize(n);
  }
  Recycled(size_t n, const T& value) {
    take();
    this->assign(n, value);
  }
  template <class Iterator> Recycled(Iterator first, Iterator last) {
    take();
    this->assign(first, last);
  }
  Recycled(Recycled&& o) noexcept : std::vector<T>(std::move(o)) {}
  Recycled(const Recycled&) = delete;
  ~Recycled() {
    if (this->capacity() == 0 || spares().size() >= kMostSpares) return;
    this->clear();
    spares().push_back(std::move(*static_cast<std::vector<T>*>(this)));
  }

 private:
  static constexpr size_t kMostSpares = 16;
  static std::vector<std::vector<T>>& spares() {
    static thread_local std::vector<std::vector<T>> list = reserved();
    return list;
  }
  static std::vector<std::vector<T>> reserved() {
    std::vector<std::vector<T>> list;
    list.reserve(kMostSpares);  // so that giving back cannot fail
    return list;
  }
  void take() {
    if (spares().empty()) return;
    static_cast<std::vector<T>&>(*this) = std::move(spares().back());
    spares().pop_back();
  }
};

}  // namespace twibil
