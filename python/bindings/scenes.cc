// SPDX-License-Identifier: Apache-2.0
// The demo's pictures for Python: _core.FashionScenes.
#include <memory>

#include "api/io/fashion_scenes.h"
#include "files.h"
#include "io_arguments.h"

namespace twibil::python {
namespace {

struct ScenesObject {
  PyObject_HEAD io::FashionScenes* scenes;
};

std::vector<int> to_classes(PyObject* o) {
  std::vector<int> classes;
  IntList labels = to_int_list(o, "fashion_scenes: classes");
  for (int64_t label : labels) classes.push_back(static_cast<int>(label));
  return classes;
}

PyObject* make(PyTypeObject* type, PyObject* args, PyObject* keywords) {
  static const char* kNames[] = {"images",       "labels",   "photographs", "side",        "classes", "min_garments",
                                 "max_garments", "min_size", "max_size",    "max_overlap", "seed",    nullptr};
  PyObject *images = nullptr, *labels = nullptr, *photographs = nullptr, *classes = nullptr;
  io::SceneOptions o;
  long long side = o.side;
  unsigned long long seed = o.seed;
  if (!PyArg_ParseTupleAndKeywords(args, keywords, "OOO|$LOiifffK", const_cast<char**>(kNames), &images, &labels,
                                   &photographs, &side, &classes, &o.min_garments, &o.max_garments, &o.min_size,
                                   &o.max_size, &o.max_overlap, &seed)) {
    return nullptr;
  }
  return guarded([&]() -> PyObject* {
    o.side = side, o.seed = seed;
    if (classes != nullptr) o.classes = to_classes(classes);
    std::vector<io::Picture> pictures;
    const Ref list(checked(PySequence_List(photographs)));
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list.get()); ++i) {
      pictures.push_back(to_picture(PyList_GET_ITEM(list.get(), i), "fashion_scenes"));
    }
    const std::string image_path = to_path(images), label_path = to_path(labels);
    auto scenes = [&] {
      const WithoutLock unlocked;
      return std::make_unique<io::FashionScenes>(io::read_idx(image_path), io::read_idx(label_path),
                                                 std::move(pictures), o);
    }();
    PyObject* self = checked(type->tp_alloc(type, 0));
    reinterpret_cast<ScenesObject*>(self)->scenes = scenes.release();
    return self;
  });
}

void destroy_scenes(PyObject* self) {
  delete reinterpret_cast<ScenesObject*>(self)->scenes;
  Py_TYPE(self)->tp_free(self);
}

PyObject* render(PyObject* self, PyObject* args) {
  long long first = 0, count = 0;
  if (!PyArg_ParseTuple(args, "LL", &first, &count)) return nullptr;
  return guarded([&] {
    TW_CHECK(first >= 0 && count >= 0, value, "render: first and count must not be negative; got ", int64_t{first},
             " and ", int64_t{count});
    const io::FashionScenes& scenes = *reinterpret_cast<ScenesObject*>(self)->scenes;
    const io::SceneOptions& o = scenes.options();
    const int64_t picture_shape[] = {count, o.side, o.side, 3},
                  label_shape[] = {count, o.max_garments, io::kLabelColumns};
    Val pictures = Val::adopt(new_value(DType::uint8, picture_shape));
    Val labels = Val::adopt(new_value(DType::float32, label_shape));
    auto* pixels = reinterpret_cast<uint8_t*>(pictures->data);
    auto* rows = reinterpret_cast<float*>(labels->data);
    {
      const WithoutLock unlocked;
      scenes.render_many(first, count, pixels, rows);
    }
    return Py_BuildValue("(NN)", wrap(std::move(pictures)), wrap(std::move(labels)));
  });
}

PyObject* names(PyObject* self, void*) {
  return guarded([&] {
    Ref list(checked(PyList_New(0)));
    for (int label : reinterpret_cast<ScenesObject*>(self)->scenes->options().classes) {
      const std::string_view name = io::FashionScenes::class_name(label);
      const Ref text(checked(PyUnicode_FromStringAndSize(name.data(), static_cast<Py_ssize_t>(name.size()))));
      checked(PyList_Append(list.get(), text.get()));
    }
    return list.leak();
  });
}

PyMethodDef methods[] = {
    {"render", render, METH_VARARGS,
     "render(first, count): uint8 (count, side, side, 3) and float32 (count, max_garments, 5) of class, left, top, "
     "right, bottom in parts of the side; class -1 fills up."},
    {},
};
PyGetSetDef members[] = {{"class_names", names, nullptr, "The names of the classes in boxes.", nullptr}, {}};

PyTypeObject ScenesType = {
    .ob_base = {PyObject_HEAD_INIT(nullptr) 0},
    .tp_name = "twibil._core.FashionScenes",
    .tp_basicsize = sizeof(ScenesObject),
    .tp_dealloc = destroy_scenes,
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_doc =
        "FashionScenes(images, labels, photographs, *, side, classes, min_garments, max_garments, min_size, "
        "max_size, max_overlap, seed): garments of Fashion-MNIST's files pasted on photographs.",
    .tp_methods = methods,
    .tp_getset = members,
    .tp_new = make,
};

}  // namespace

void add_scenes(PyObject* module) {
  checked(PyType_Ready(&ScenesType));
  checked(PyModule_AddObjectRef(module, "FashionScenes", reinterpret_cast<PyObject*>(&ScenesType)));
}

}  // namespace twibil::python
