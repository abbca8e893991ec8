// SPDX-License-Identifier: Apache-2.0
// Files and pictures, namespace twibil::io: atomic writing, MXNet's .params, JPEG and PNG, resizing, drawing, IDX, and
// garments on photographs for training a detector. Only bytes, shapes and pictures; nothing here needs an array.
#pragma once
#include "api/io/draw.h"            // draw_box(picture, left, top, right, bottom, "bag 0.97", palette_color(2))
#include "api/io/fashion_scenes.h"  // FashionScenes(images, labels, photographs, options).render(index, pixels, label)
#include "api/io/file.h"            // read_file(path), write_atomic(path, bytes), AtomicFile
#include "api/io/idx_file.h"        // read_idx("train-images-idx3-ubyte.gz")
#include "api/io/image_file.h"      // read_image(path), write_image(path, picture), decode_image, encode_png
#include "api/io/params_file.h"     // read_params(path), write_params(path, entries)
#include "api/io/resize.h"          // resize(picture, height, width), crop
