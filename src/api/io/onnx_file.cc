// SPDX-License-Identifier: Apache-2.0
// ModelProto, GraphProto, NodeProto and their parts. Fields that do not matter here are skipped, also unknown ones.
#include "api/io/onnx_file.h"

#include <filesystem>

#include "api/io/onnx_message.h"
#include "api/io/onnx_source.h"
#include "api/io/onnx_tensor.h"

namespace twibil::io {

namespace {

constexpr int kMaxDepth = 32;  // of graphs in attributes

class Reader {
 public:
  Reader(const OnnxSource& source, const std::string* folder) : source_(source), folder_(folder) {}

  OnnxModel model() {
    try {
      return read_model();
    } catch (const protozero::exception& e) {
      fail(ErrorKind::value,
           text("offset ", offset_, ": ", e.what(), "; the file is no ONNX model, or it is truncated or damaged"));
    } catch (const Error& e) {
      fail(e.kind(), e.message());
    }
  }

 private:
  [[noreturn]] void fail(ErrorKind kind, const std::string& why) const {
    std::string path;
    for (const std::string& p : path_) path += (path.empty() ? "" : ".") + p;
    throw_error(kind, text("onnx: '", source_.name(), "'", path.empty() ? "" : " in ", path, ": ", why));
  }
  /// A part of the path that errors name. After an error it stays, for fail() to read.
  template <class Read> auto within(std::string part, int64_t offset, Read read) {
    path_.push_back(std::move(part));
    offset_ = offset;
    auto result = read();
    path_.pop_back();
    return result;
  }

  OnnxModel read_model() {
    OnnxModel m;
    bool found = false;
    for (OnnxFields f(source_, 0, source_.size()); next(f);) {
      switch (f.number()) {
        case 1: m.ir_version = static_cast<int64_t>(f.varint()); break;
        case 2: m.producer = f.contents(); break;
        case 3: m.producer_version = f.contents(); break;
        case 4: m.domain = f.contents(); break;
        case 5: m.model_version = static_cast<int64_t>(f.varint()); break;
        case 6: m.doc = f.contents(); break;
        case 7:
          TW_CHECK(f.is_bytes() && !found, value, "a model must have one graph");
          found = true;
          m.graph = within("graph", f.begin(), [&] { return graph(source_, f.begin(), f.begin() + f.length(), 0); });
          break;
        case 8: add_opset(m.opsets, f.contents()); break;
        case 14: add_metadata(m.metadata, f.contents()); break;
        case 25:
          m.functions.push_back(within(text("functions[", m.functions.size(), "]"), f.begin(),
                                       [&] { return function(f.contents(), f.begin()); }));
          break;
        default: break;
      }
    }
    TW_CHECK(found, value, "there is no graph; the file is no ONNX model");
    TW_CHECK(!m.opsets.empty(), value, "the model must say its opset; it imports none");
    return m;
  }
  bool next(OnnxFields& f) {
    bool more = f.next();
    if (more && f.is_bytes()) offset_ = source_.base() + f.begin();
    return more;
  }

  static void add_opset(std::map<std::string, int64_t>& opsets, const std::string& bytes) {
    std::string domain;
    int64_t version = 0;
    for (OnnxMessage r(bytes); r.next();) {
      if (r.number() == 1) domain = r.string();
      else if (r.number() == 2) version = r.integer();
      else r.skip();
    }
    if (domain == "ai.onnx") domain.clear();
    opsets[domain] = version;
  }
  static void add_metadata(std::map<std::string, std::string>& all, const std::string& bytes) {
    std::string key, value;
    for (OnnxMessage r(bytes); r.next();) {
      if (r.number() == 1) key = r.string();
      else if (r.number() == 2) value = r.string();
      else r.skip();
    }
    all[key] = value;
  }

  OnnxGraph graph(const OnnxSource& source, int64_t begin, int64_t end, int depth) {
    TW_CHECK(depth < kMaxDepth, value, "graphs stand inside of each other more than ", kMaxDepth, " times");
    OnnxGraph g;
    for (OnnxFields f(source, begin, end); f.next();) {
      int64_t at = source.base() + f.begin();
      bool bytes = f.is_bytes();
      if (f.number() == 1 && bytes) {
        g.nodes.push_back(
            within(text("node[", g.nodes.size(), "]"), at, [&] { return node(f.contents(), at, depth); }));
      } else if (f.number() == 2 && bytes) {
        g.name = f.contents();
      } else if (f.number() == 5 && bytes) {
        g.initializers.push_back(within(text("initializer[", g.initializers.size(), "]"), at, [&] {
          return read_onnx_tensor(source, f.begin(), f.begin() + f.length(), folder_);
        }));
      } else if (f.number() == 11 && bytes) {
        g.inputs.push_back(within(text("input[", g.inputs.size(), "]"), at, [&] { return value_info(f.contents()); }));
      } else if (f.number() == 12 && bytes) {
        g.outputs.push_back(
            within(text("output[", g.outputs.size(), "]"), at, [&] { return value_info(f.contents()); }));
      } else if (f.number() == 15) {
        OnnxTensor sparse;
        sparse.refused = "sparse tensors are not supported";
        g.initializers.push_back(std::move(sparse));
      }
    }
    return g;
  }

  OnnxNode node(const std::string& bytes, int64_t offset, int depth) {
    OnnxNode n;
    n.offset = offset;
    for (OnnxMessage r(bytes); r.next();) {
      switch (r.number()) {
        case 1: n.inputs.push_back(r.string()); break;
        case 2: n.outputs.push_back(r.string()); break;
        case 3: n.name = r.string(); break;
        case 4: n.type = r.string(); break;
        case 5: {
          protozero::data_view v = r.bytes();
          int64_t at = offset + (v.data() - bytes.data());
          n.attributes.push_back(
              within(text("attribute[", n.attributes.size(), "]"), at, [&] { return attribute(v, at, depth); }));
          break;
        }
        case 7: n.domain = r.string(); break;
        default: r.skip();
      }
    }
    if (n.domain == "ai.onnx") n.domain.clear();
    TW_CHECK(!n.type.empty(), value, "a node must name its operator");
    return n;
  }

  OnnxAttribute attribute(protozero::data_view v, int64_t offset, int depth) {
    using Kind = OnnxAttribute::Kind;
    OnnxAttribute a;
    int64_t type = 0;
    auto met = Kind::none;  // by what is there: old files do not say the type
    auto source = [&](protozero::data_view part, auto read) {
      int64_t at = offset + (part.data() - v.data());
      OnnxSource inner({reinterpret_cast<const std::byte*>(part.data()), part.size()}, source_.name(), at);
      return read(inner);
    };
    for (OnnxMessage r(v); r.next();) {
      switch (r.number()) {
        case 1: a.name = r.string(); break;
        case 2: a.real = r.real(), met = Kind::real; break;
        case 3: a.integer = r.integer(), met = Kind::integer; break;
        case 4: a.string = r.string(), met = Kind::string; break;
        case 5:
          a.tensor = source(r.bytes(), [&](const OnnxSource& s) { return read_onnx_tensor(s, 0, s.size(), folder_); });
          met = Kind::tensor;
          break;
        case 6:
          a.graph = source(r.bytes(), [&](const OnnxSource& s) {
            return std::make_shared<OnnxGraph>(graph(s, 0, s.size(), depth + 1));
          });
          met = Kind::graph;
          break;
        case 7:
          r.add_reals(a.reals);
          met = Kind::reals;
          break;
        case 8:
          r.add_integers(a.integers);
          met = Kind::integers;
          break;
        case 9: a.strings.push_back(r.string()), met = Kind::strings; break;
        case 20: type = r.integer(); break;
        case 21: a.refers = r.string(); break;
        default: r.skip();
      }
    }
    constexpr Kind kKinds[] = {Kind::none,  Kind::real,  Kind::integer,  Kind::string, Kind::tensor,
                               Kind::graph, Kind::reals, Kind::integers, Kind::strings};
    if (type > 0) a.kind = type < static_cast<int64_t>(std::size(kKinds)) ? kKinds[type] : Kind::other;
    else a.kind = met;
    bool whole = a.kind == met || met == Kind::none || !a.refers.empty();
    TW_CHECK(whole && (a.kind != Kind::graph || a.graph || !a.refers.empty()), value, "attribute '",
             a.name.substr(0, 80), "' holds something else than it says");
    if (a.kind == Kind::tensor && !a.tensor.value && a.tensor.refused.empty())
      a.tensor.refused = "the tensor is missing";
    return a;
  }

  static OnnxValue value_info(const std::string& bytes) {
    OnnxValue v;
    for (OnnxMessage r(bytes); r.next();) {
      if (r.number() == 1) v.name = r.string();
      else if (r.number() == 2) read_type(v, OnnxMessage(r.bytes()));
      else r.skip();
    }
    return v;
  }
  static void read_type(OnnxValue& v, OnnxMessage type) {
    while (type.next()) {
      if (type.number() != 1) {
        type.skip();
        continue;
      }
      v.is_tensor = true;
      for (OnnxMessage tensor = OnnxMessage(type.bytes()); tensor.next();) {
        if (tensor.number() == 1) v.type = tensor.integer();
        else if (tensor.number() == 2) read_shape(v, OnnxMessage(tensor.bytes()));
        else tensor.skip();
      }
    }
  }
  static void read_shape(OnnxValue& v, OnnxMessage shape) {
    v.has_shape = true;
    while (shape.next()) {
      if (shape.number() != 1) {
        shape.skip();
        continue;
      }
      int64_t size = -1;
      std::string label;
      for (OnnxMessage d = OnnxMessage(shape.bytes()); d.next();) {
        if (d.number() == 1) size = d.integer();
        else if (d.number() == 2) label = d.string();
        else d.skip();
      }
      v.dims.push_back(size < 0 ? -1 : size);
      v.labels.push_back(std::move(label));
    }
  }

  OnnxFunction function(const std::string& bytes, int64_t offset) {
    OnnxFunction f;
    for (OnnxMessage r(bytes); r.next();) {
      switch (r.number()) {
        case 1: f.name = r.string(); break;
        case 4: f.inputs.push_back(r.string()); break;
        case 5: f.outputs.push_back(r.string()); break;
        case 7: {
          protozero::data_view v = r.bytes();
          int64_t at = offset + (v.data() - bytes.data());
          f.nodes.push_back(within(text("node[", f.nodes.size(), "]"), at, [&] {
            return node({v.data(), v.size()}, at, 0);
          }));
          break;
        }
        case 9: add_opset(f.opsets, r.string()); break;
        case 10: f.domain = r.string(); break;
        case 11: {
          protozero::data_view v = r.bytes();
          f.defaults.push_back(attribute(v, offset + (v.data() - bytes.data()), 0));
          break;
        }
        default: r.skip();
      }
    }
    return f;
  }

  const OnnxSource& source_;
  const std::string* folder_;
  std::vector<std::string> path_;
  int64_t offset_ = 0;
};

}  // namespace

OnnxModel read_onnx(const std::string& path) {
  OnnxSource source(path);
  std::string folder = std::filesystem::path(path).parent_path().string();
  return Reader(source, &folder).model();
}

OnnxModel parse_onnx(ByteView bytes, const std::string& name) {
  OnnxSource source(bytes, name);
  return Reader(source, nullptr).model();
}

}  // namespace twibil::io
