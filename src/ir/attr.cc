// SPDX-License-Identifier: Apache-2.0
// Text of attributes: one printer and one forgiving parser per kind of attribute.
#include "ir/attr.h"

#include <cctype>
#include <charconv>

namespace twibil {

namespace {

struct Reader {
  const Field& field;
  std::string_view all, rest;

  [[noreturn]] void fail(const char* expected) const {
    throw_error(ErrorKind::value,
                text("attribute ", field.name, " must be ", expected, "; got \"", all.substr(0, 80), "\""));
  }
  void skip_blanks() {
    while (!rest.empty() && std::isspace(static_cast<unsigned char>(rest.front()))) rest.remove_prefix(1);
  }
  bool take(char c) {
    skip_blanks();
    if (rest.empty() || rest.front() != c) return false;
    rest.remove_prefix(1);
    return true;
  }
  bool take_none() {
    skip_blanks();
    if (!rest.starts_with("None")) return false;
    rest.remove_prefix(4);
    return true;
  }
  void finish(const char* expected) {
    skip_blanks();
    if (!rest.empty()) fail(expected);
  }
  template <class T> T number(const char* expected) {
    skip_blanks();
    if (!rest.empty() && rest.front() == '+') rest.remove_prefix(1);
    T v{};
    auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), v);
    if (error != std::errc()) fail(expected);
    rest.remove_prefix(static_cast<size_t>(end - rest.data()));
    if (std::is_integral_v<T> && !rest.empty() && rest.front() == 'L') rest.remove_prefix(1);
    return v;
  }
  template <class List, class T> List list(const char* expected) {
    List out;
    skip_blanks();
    char close = take('(') ? ')' : take('[') ? ']' : '\0';
    if (!close) {
      out.push_back(number<T>(expected));
      finish(expected);
      return out;
    }
    while (!take(close)) {
      if (out.size() == List::capacity) fail("a shorter list");
      if (field.open_ends && take_none()) out.push_back(static_cast<T>(kNoInteger));
      else out.push_back(number<T>(expected));
      if (!take(',')) {
        if (!take(close)) fail(expected);
        break;
      }
    }
    finish(expected);
    return out;
  }
  bool boolean() {
    skip_blanks();
    for (auto [word, value] :
         {std::pair{"True", true}, {"true", true}, {"1", true}, {"False", false}, {"false", false}, {"0", false}})
      if (rest == word) return value;
    fail("True or False");
  }
  Scalar scalar() {
    skip_blanks();
    if (rest == "True" || rest == "true") return Scalar(true);
    if (rest == "False" || rest == "false") return Scalar(false);
    Reader whole = *this;
    int64_t i{};
    auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), i);
    if (error == std::errc() && end == rest.data() + rest.size()) return Scalar(i);
    double d = whole.number<double>("a number");
    whole.finish("a number");
    return Scalar(d);
  }
};

template <class T> std::string print_list(const T& list) {
  std::string s = "(";
  for (int i = 0; i < list.size(); ++i) {
    if (i) s += ", ";
    if (std::is_same_v<T, IntList> && static_cast<int64_t>(list[i]) == kNoInteger) s += "None";
    else append_part(s, list[i]);
  }
  return s + (list.size() == 1 ? ",)" : ")");
}

std::string print_scalar(const Scalar& s) {
  if (s.is_boolean()) return s.integer ? "True" : "False";
  return s.is_real() ? shortest(s.real) : std::to_string(s.integer);
}

const char* kList = "a list of integers such as (3, 3)";

}  // namespace

int find_choice(const Field& field, std::string_view word) {
  std::string_view words = field.choices;
  for (int i = 0;; ++i) {
    size_t bar = words.find('|');
    if (words.substr(0, bar) == word) return i;
    if (bar == std::string_view::npos) break;
    words.remove_prefix(bar + 1);
  }
  throw_error(ErrorKind::value,
              text("attribute ", field.name, " must be one of ", field.choices, "; got \"", word.substr(0, 80), "\""));
}

std::string print_attr(const Field& f, const void* a) {
  switch (f.kind) {
    case AttrKind::boolean: return attr_at<bool>(a, f) ? "True" : "False";
    case AttrKind::integer: return std::to_string(attr_at<int64_t>(a, f));
    case AttrKind::real: return shortest(attr_at<double>(a, f));
    case AttrKind::dtype: return std::string(name_of(attr_at<DType>(a, f)));
    case AttrKind::scalar: return print_scalar(attr_at<Scalar>(a, f));
    case AttrKind::int_list: return print_list(attr_at<IntList>(a, f));
    case AttrKind::real_list: return print_list(attr_at<DoubleList>(a, f));
    case AttrKind::text: return std::string(attr_at<ShortText>(a, f).view());
    case AttrKind::choice: {
      std::string_view words = f.choices;
      for (int i = attr_at<Choice>(a, f).index; i > 0; --i) words.remove_prefix(words.find('|') + 1);
      return std::string(words.substr(0, words.find('|')));
    }
    case AttrKind::maybe_boolean: {
      auto& m = attr_at<Maybe<bool>>(a, f);
      return !m ? "None" : *m ? "True" : "False";
    }
    case AttrKind::maybe_integer: {
      auto& m = attr_at<Maybe<int64_t>>(a, f);
      return m ? std::to_string(*m) : "None";
    }
    case AttrKind::maybe_real: {
      auto& m = attr_at<Maybe<double>>(a, f);
      return m ? shortest(*m) : "None";
    }
    case AttrKind::maybe_dtype: {
      auto& m = attr_at<Maybe<DType>>(a, f);
      return m ? std::string(name_of(*m)) : "None";
    }
    case AttrKind::maybe_scalar: {
      auto& m = attr_at<Maybe<Scalar>>(a, f);
      return m ? print_scalar(*m) : "None";
    }
    case AttrKind::maybe_int_list: {
      auto& m = attr_at<Maybe<IntList>>(a, f);
      return m ? print_list(*m) : "None";
    }
  }
  TW_ASSERT(false);
}

void parse_attr(const Field& f, void* a, std::string_view s) {
  Reader r{f, s, s};
  r.skip_blanks();
  while (!r.rest.empty() && std::isspace(static_cast<unsigned char>(r.rest.back()))) r.rest.remove_suffix(1);
  bool none = r.rest == "None";
  auto whole = [&]<class T>(const char* expected) {
    T v = r.number<T>(expected);
    r.finish(expected);
    return v;
  };
  switch (f.kind) {
    case AttrKind::boolean: attr_at<bool>(a, f) = r.boolean(); return;
    case AttrKind::integer: attr_at<int64_t>(a, f) = whole.template operator()<int64_t>("an integer"); return;
    case AttrKind::real: attr_at<double>(a, f) = whole.template operator()<double>("a number"); return;
    case AttrKind::dtype: attr_at<DType>(a, f) = dtype_from_name(r.rest); return;
    case AttrKind::scalar: attr_at<Scalar>(a, f) = r.scalar(); return;
    case AttrKind::int_list: attr_at<IntList>(a, f) = r.list<IntList, int64_t>(kList); return;
    case AttrKind::real_list: attr_at<DoubleList>(a, f) = r.list<DoubleList, double>("a list of numbers"); return;
    case AttrKind::choice: attr_at<Choice>(a, f) = Choice(find_choice(f, r.rest)); return;
    case AttrKind::text: {
      TW_CHECK(r.rest.size() < sizeof(ShortText::chars), value, "attribute ", f.name, " is longer than 127 characters");
      ShortText t;
      std::copy(r.rest.begin(), r.rest.end(), t.chars);
      attr_at<ShortText>(a, f) = t;
      return;
    }
    case AttrKind::maybe_boolean: attr_at<Maybe<bool>>(a, f) = none ? Maybe<bool>() : Maybe<bool>(r.boolean()); return;
    case AttrKind::maybe_integer:
      attr_at<Maybe<int64_t>>(a, f) =
          none ? Maybe<int64_t>() : Maybe<int64_t>(whole.template operator()<int64_t>("an integer or None"));
      return;
    case AttrKind::maybe_real:
      attr_at<Maybe<double>>(a, f) =
          none ? Maybe<double>() : Maybe<double>(whole.template operator()<double>("a number or None"));
      return;
    case AttrKind::maybe_dtype:
      attr_at<Maybe<DType>>(a, f) = none ? Maybe<DType>() : Maybe<DType>(dtype_from_name(r.rest));
      return;
    case AttrKind::maybe_scalar:
      attr_at<Maybe<Scalar>>(a, f) = none ? Maybe<Scalar>() : Maybe<Scalar>(r.scalar());
      return;
    case AttrKind::maybe_int_list:
      attr_at<Maybe<IntList>>(a, f) = none ? Maybe<IntList>() : Maybe<IntList>(r.list<IntList, int64_t>(kList));
      return;
  }
}

bool is_among(const char* words, std::string_view name) {
  for (std::string_view rest = words ? words : ""; !rest.empty();) {
    size_t blank = rest.find(' ');
    if (rest.substr(0, blank) == name) return true;
    rest = blank == std::string_view::npos ? std::string_view() : rest.substr(blank + 1);
  }
  return false;
}
const Field* find_field(const AttrSchema& schema, std::string_view name) {
  for (const Field& f : schema.span())
    if (name == f.name || is_among(f.renames, name)) return &f;
  return nullptr;
}

}  // namespace twibil
