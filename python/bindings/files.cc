// SPDX-License-Identifier: Apache-2.0
// Parameter files, pictures and atomic writing for Python: src/api/io with arrays in place of bytes.
#include "files.h"

#include <memory>
#include <unordered_map>

#include "api/io/draw.h"
#include "api/io/image_file.h"
#include "api/io/params_file.h"
#include "api/io/resize.h"
#include "api/io/torch_file.h"
#include "io_arguments.h"

namespace twibil::python {
namespace {

PyObject* save_params(PyObject*, PyObject* args, PyObject* keywords) {
  static const char* kNames[] = {"path", "names", "arrays", "legacy", nullptr};
  PyObject *path = nullptr, *names = nullptr, *arrays = nullptr;
  int legacy = 0;
  if (!PyArg_ParseTupleAndKeywords(args, keywords, "OOO|p", const_cast<char**>(kNames), &path, &names, &arrays,
                                   &legacy)) {
    return nullptr;
  }
  return guarded([&] {
    const Ref name_list(checked(PySequence_List(names))), array_list(checked(PySequence_List(arrays)));
    const Py_ssize_t count = PyList_GET_SIZE(array_list.get()), named = PyList_GET_SIZE(name_list.get());
    TW_CHECK(named == 0 || named == count, value, "save_params: there must be a name for every array or none at all; ",
             "got ", int64_t{named}, " names and ", int64_t{count}, " arrays");
    std::vector<Val> held;
    std::vector<io::ParamsEntry> entries;
    for (Py_ssize_t i = 0; i < count; ++i) {
      held.push_back(row_major(PyList_GET_ITEM(array_list.get(), i), "save_params", "arrays"));
      const Value& v = *held.back();
      io::ParamsEntry entry{"", v.dtype(), {v.shape().begin(), v.shape().end()}, bytes_of_value(v)};
      if (named != 0) {
        entry.name = utf8(PyList_GET_ITEM(name_list.get(), i));
        TW_CHECK(!entry.name.empty(), value, "save_params: a name must not be empty");
      }
      entries.push_back(std::move(entry));
    }
    const std::string file = to_path(path);
    {
      const WithoutLock unlocked;
      io::write_params(file, entries, legacy ? io::ParamsForm::legacy : io::ParamsForm::numpy);
    }
    Py_RETURN_NONE;
  });
}

PyObject* load_params(PyObject*, PyObject* path) {
  return guarded([&] {
    const std::string name = to_path(path);
    const io::ParamsFile file = [&] {
      const WithoutLock unlocked;
      return io::read_params(name);
    }();
    Ref names(checked(PyList_New(0))), arrays(checked(PyList_New(0)));
    for (const io::ParamsEntry& e : file.entries) {
      const Ref array(e.none ? Py_NewRef(Py_None) : checked(wrap(value_from_bytes(e.dtype, e.shape, e.data))));
      checked(PyList_Append(arrays.get(), array.get()));
      if (!file.has_names) continue;
      const auto length = static_cast<Py_ssize_t>(e.name.size());
      const Ref text(checked(PyUnicode_DecodeUTF8(e.name.data(), length, "strict")));
      checked(PyList_Append(names.get(), text.get()));
    }
    return Py_BuildValue("(NN)", names.leak(), arrays.leak());
  });
}

// The object of a file that torch.save() wrote. Lists and dictionaries are remembered before they are filled, so they
// may hold themselves; what is nested too deeply is an error, which ends every other cycle.
class TorchObjects {
 public:
  explicit TorchObjects(const io::TorchFile& file) : file_(file) {}

  Ref object(uint32_t i, int depth = 0) {
    TW_CHECK(depth < 64, value, "load_torch: lists and dictionaries are nested too deeply");
    if (auto found = made_.find(i); found != made_.end()) return Ref(Py_NewRef(found->second.get()));
    const io::PickleNode& n = file_.node(i);
    Ref o(checked(begin(n)));
    made_.emplace(i, Ref(Py_NewRef(o.get())));
    using Kind = io::PickleNode::Kind;
    if (n.kind == Kind::list)
      for (uint32_t item : n.items) checked(PyList_Append(o.get(), object(item, depth + 1).get()));
    if (n.kind == Kind::tuple) {
      made_.erase(i);  // a tuple exists only when it is full
      for (size_t k = 0; k < n.items.size(); ++k)
        PyTuple_SET_ITEM(o.get(), static_cast<Py_ssize_t>(k), object(n.items[k], depth + 1).leak());
      made_.emplace(i, Ref(Py_NewRef(o.get())));
    }
    if (n.kind == Kind::dict)
      for (size_t k = 0; k + 1 < n.items.size(); k += 2) {
        Kind key = file_.node(n.items[k]).kind;
        TW_CHECK(key < Kind::list, value, "load_torch: keys of dictionaries must be texts or numbers");
        checked(PyDict_SetItem(o.get(), object(n.items[k], depth + 1).get(), object(n.items[k + 1], depth + 1).get()));
      }
    return o;
  }

 private:
  PyObject* begin(const io::PickleNode& n) {
    using Kind = io::PickleNode::Kind;
    switch (n.kind) {
      case Kind::boolean: return PyBool_FromLong(static_cast<long>(n.integer));
      case Kind::integer: return PyLong_FromLongLong(n.integer);
      case Kind::real: return PyFloat_FromDouble(n.real);
      case Kind::text:
        return PyUnicode_DecodeUTF8(n.text.data(), static_cast<Py_ssize_t>(n.text.size()), "surrogateescape");
      case Kind::list: return PyList_New(0);
      case Kind::tuple: return PyTuple_New(static_cast<Py_ssize_t>(n.items.size()));
      case Kind::dict: return PyDict_New();
      case Kind::tensor: {
        io::Bytes kept;
        io::ParamsEntry e = file_.tensor(n, kept);
        return wrap(value_from_bytes(e.dtype, e.shape, e.data));
      }
      default: return Py_NewRef(Py_None);
    }
  }
  const io::TorchFile& file_;
  std::unordered_map<uint32_t, Ref> made_;
};

PyObject* load_torch(PyObject*, PyObject* path) {
  return guarded([&] {
    const std::string name = to_path(path);
    const auto file = [&] {
      const WithoutLock unlocked;
      return std::make_unique<io::TorchFile>(name);
    }();
    return TorchObjects(*file).object(file->root()).leak();
  });
}

// The bytes of any object with a buffer: bytes, bytearray, memoryview, NumPy arrays.
struct Buffer {
  Py_buffer view{};
  Buffer(PyObject* o, int flags) { checked(PyObject_GetBuffer(o, &view, flags)); }
  ~Buffer() { PyBuffer_Release(&view); }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  io::ByteView bytes() const { return {static_cast<const std::byte*>(view.buf), static_cast<size_t>(view.len)}; }
};

PyObject* imdecode(PyObject*, PyObject* args) {
  PyObject* data = nullptr;
  int flag = 1;
  if (!PyArg_ParseTuple(args, "O|i", &data, &flag)) return nullptr;
  return guarded([&] {
    TW_CHECK(flag >= -1 && flag <= 1, value, "imdecode: flag must be 1 (color), 0 (grey) or -1 (unchanged); got ",
             flag);
    const io::ColorMode mode = flag == 1   ? io::ColorMode::color
                               : flag == 0 ? io::ColorMode::grey
                                           : io::ColorMode::unchanged;
    const Buffer buffer(data, PyBUF_SIMPLE);
    const io::Picture picture = [&] {
      const WithoutLock unlocked;
      return io::decode_image(buffer.bytes(), mode);
    }();
    return wrap(value_from_picture(picture));
  });
}

PyObject* encode_image(PyObject*, PyObject* args) {
  PyObject* picture = nullptr;
  const char* ending = nullptr;
  int quality = 95;
  if (!PyArg_ParseTuple(args, "Os|i", &picture, &ending, &quality)) return nullptr;
  return guarded([&] {
    const std::string_view kind = ending;
    TW_CHECK(kind == ".png" || kind == ".jpg", value, "encode_image: the ending must be .png or .jpg; got '", kind,
             "'");
    const io::Picture source = to_picture(picture, "encode_image");
    const io::Bytes bytes = [&] {
      const WithoutLock unlocked;
      return kind == ".png" ? io::encode_png(source) : io::encode_jpeg(source, quality);
    }();
    return PyBytes_FromStringAndSize(reinterpret_cast<const char*>(bytes.data()),
                                     static_cast<Py_ssize_t>(bytes.size()));
  });
}

PyObject* imresize(PyObject*, PyObject* args) {
  PyObject* picture = nullptr;
  long long width = 0, height = 0;
  int method = 1;
  if (!PyArg_ParseTuple(args, "OLL|i", &picture, &width, &height, &method)) return nullptr;
  return guarded([&] {
    TW_CHECK(method >= 0 && method <= 3, value,
             "imresize: interp must be 0 (nearest), 1 (bilinear), 2 (bicubic) or 3 (area); got ", method);
    TW_CHECK(width <= 65500 && height <= 65500, value, "imresize: sides must be at most 65500; got ", int64_t{height},
             " x ", int64_t{width});
    const io::Picture source = to_picture(picture, "imresize");
    const io::Picture result = [&] {
      const WithoutLock unlocked;
      return io::resize(source, height, width, static_cast<io::Interpolation>(method));
    }();
    return wrap(value_from_picture(result));
  });
}

PyObject* write_file(PyObject*, PyObject* args) {
  PyObject *path = nullptr, *data = nullptr;
  if (!PyArg_ParseTuple(args, "OO", &path, &data)) return nullptr;
  return guarded([&] {
    const std::string file = to_path(path);
    const Buffer buffer(data, PyBUF_SIMPLE);
    {
      const WithoutLock unlocked;
      io::write_atomic(file, buffer.bytes());
    }
    Py_RETURN_NONE;
  });
}

PyObject* draw_box(PyObject*, PyObject* args) {
  PyObject* target = nullptr;
  double left = 0, top = 0, right = 0, bottom = 0, thickness = 2;
  const char* label = "";
  long long color = 0, text_scale = 1;
  if (!PyArg_ParseTuple(args, "O(dddd)sL|dL", &target, &left, &top, &right, &bottom, &label, &color, &thickness,
                        &text_scale)) {
    return nullptr;
  }
  return guarded([&] {
    const Buffer buffer(target, PyBUF_WRITABLE | PyBUF_C_CONTIGUOUS | PyBUF_FORMAT);
    const Py_buffer& b = buffer.view;
    TW_CHECK(b.ndim == 3 && b.itemsize == 1 && b.shape[2] == 3, type,
             "draw_box: the picture must be a writable uint8 buffer of shape [height, width, 3]");
    io::Picture picture(b.shape[0], b.shape[1], 3);
    std::memcpy(picture.pixels.data(), b.buf, picture.pixels.size());
    io::draw_box(picture, left, top, right, bottom, label, io::palette_color(color), thickness, text_scale);
    std::memcpy(b.buf, picture.pixels.data(), picture.pixels.size());
    Py_RETURN_NONE;
  });
}

PyMethodDef functions[] = {
    {"save_params", as_method(save_params), METH_VARARGS | METH_KEYWORDS,
     "save_params(path, names, arrays, legacy=False): writes MXNet's format; legacy: as without npx.set_np()."},
    {"load_params", load_params, METH_O, "load_params(path): (names, arrays) of a .params file; no names: []."},
    {"load_torch", load_torch, METH_O, "load_torch(path): the object of a file that torch.save() wrote."},
    {"imdecode", imdecode, METH_VARARGS, "imdecode(bytes, flag=1): JPEG or PNG to uint8 (height, width, channels)."},
    {"encode_image", encode_image, METH_VARARGS, "encode_image(picture, '.png' or '.jpg', quality=95): bytes."},
    {"imresize", imresize, METH_VARARGS, "imresize(picture, width, height, interp=1): the picture in another size."},
    {"write_file", write_file, METH_VARARGS, "write_file(path, bytes): replaces the file completely or not at all."},
    {"draw_box", draw_box, METH_VARARGS,
     "draw_box(buffer, (left, top, right, bottom), label, color number, thickness=2, text_scale=1): in place."},
    {},
};

}  // namespace

void add_files(PyObject* module) { checked(PyModule_AddFunctions(module, functions)); }

}  // namespace twibil::python
