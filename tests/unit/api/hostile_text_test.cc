// SPDX-License-Identifier: Apache-2.0
// Texts from files and users: attributes of every operator, and einsum's subscripts. Whatever the text is, it is read
// or refused with an Error. Run under the sanitizers this is a small fuzzer.
#include <gtest/gtest.h>

#include <random>

#include "ir/registry.h"
#include "twibil/array.h"

namespace twibil {
namespace {

/// Texts made of pieces that mean something to the parser, in any order.
class Texts {
 public:
  Texts(uint64_t seed, std::vector<std::string> pieces) : random_(seed), pieces_(std::move(pieces)) {}
  size_t below(size_t n) { return random_() % n; }
  std::string next(size_t most) {
    std::string s;
    for (size_t n = below(most + 1); n > 0; --n) s += pieces_[below(pieces_.size())];
    if (!s.empty() && below(8) == 0) s[below(s.size())] = static_cast<char>(below(256));
    return s;
  }

 private:
  std::mt19937_64 random_;
  std::vector<std::string> pieces_;
};

/// True if `body` went through, false if it was refused as an error of its caller.
bool accepts(const auto& body) {
  try {
    body();
    return true;
  } catch (const Error& e) {
    EXPECT_NE(e.kind(), ErrorKind::runtime) << e.what();  // a bug of ours, not a refusal
    return false;
  }
}

TEST(HostileText, AttributesAreReadOrRefused) {
  Texts texts(1, {"(",
                  ")",
                  "[",
                  "]",
                  ",",
                  " ",
                  "1",
                  "-",
                  "+",
                  "3",
                  "99999999999999999999",
                  "9223372036854775807",
                  "e",
                  "1e400",
                  ".5",
                  "nan",
                  "inf",
                  "L",
                  "None",
                  "True",
                  "false",
                  "0",
                  "float32",
                  "int8",
                  "max",
                  "|",
                  "a"});
  int64_t read = 0, refused = 0;
  for (const OpDef* op : registry()) {
    for (const Field& field : op->attrs.span()) {
      std::vector<std::byte> attrs(op->attrs.size), again(op->attrs.size);
      std::copy_n(static_cast<const std::byte*>(op->attrs.defaults), attrs.size(), attrs.data());
      again = attrs;
      for (int i = 0; i < 60; ++i) {
        const std::string s = texts.next(6);
        if (!accepts([&] { parse_attr(field, attrs.data(), s); })) {
          ++refused;
          continue;
        }
        ++read;
        const std::string printed = print_attr(field, attrs.data());
        parse_attr(field, again.data(), printed);  // what we print we read
        EXPECT_EQ(print_attr(field, again.data()), printed) << op->name << ' ' << field.name << " from " << s;
      }
    }
  }
  EXPECT_GT(read, 500);
  EXPECT_GT(refused, 10000);
}

TEST(HostileText, SubscriptsOfEinsum) {
  Texts texts(2, {"i", "j", "k", "A", "...", ".", ",", "->", "-", " ", "ii", "ij", ","});
  int64_t read = 0;
  for (int i = 0; i < 20000; ++i) {
    std::vector<Array> operands;
    for (size_t n = 1 + texts.below(3); n > 0; --n) {
      std::vector<int64_t> shape(texts.below(20) == 0 ? 8 : texts.below(5), 2);
      if (!shape.empty() && texts.below(8) == 0)
        shape[texts.below(shape.size())] = static_cast<int64_t>(texts.below(4));
      operands.push_back(Array::zeros(Shape(shape)));
    }
    const std::string s = texts.next(7);
    read += accepts([&] { call_all(require_op("einsum"), operands, {{"subscripts", s}}); });
  }
  EXPECT_GT(read, 200);
}

}  // namespace
}  // namespace twibil
