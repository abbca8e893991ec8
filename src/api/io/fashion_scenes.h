// SPDX-License-Identifier: Apache-2.0
// Pictures for training a detector, made from what packages ship: garments of Fashion-MNIST, enlarged, tinted and
// pasted on crops of photographs, so that every box is known exactly. Picture number i of a seed is the same on every
// machine, with any number of threads, in any order: a training run can stop and go on anywhere.
#pragma once
#include <string>
#include <vector>

#include "api/io/idx_file.h"
#include "api/io/picture.h"

namespace twibil::io {

struct SceneOptions {
  int64_t side = 256;                    // pictures are square
  std::vector<int> classes{0, 1, 7, 8};  // Fashion-MNIST's labels; the place in this list is the class in a box
  int min_garments = 1;
  int max_garments = 3;
  float min_size = 0.3f;  // longer side of a garment's box, as part of the picture's side
  float max_size = 0.7f;
  float max_overlap = 0.05f;  // intersection of two boxes, as part of the smaller one
  uint64_t seed = 0;
};

/// One row of a label: {class, left, top, right, bottom}, in parts of the side; class -1 fills up unused rows.
inline constexpr int64_t kLabelColumns = 5;

class FashionScenes {
 public:
  /// `images` (n, 28, 28) and `labels` (n) as read_idx gives them; `photographs` have 3 channels. Give different
  /// garments and photographs to the training and the held-out scenes.
  FashionScenes(const IdxArray& images, const IdxArray& labels, std::vector<Picture> photographs, SceneOptions options);

  const SceneOptions& options() const { return options_; }
  int64_t count_garments() const;
  static std::string_view class_name(int fashion_mnist_label);

  /// Picture `index`: side x side x 3 bytes, and max_garments rows of kLabelColumns floats.
  void render(int64_t index, uint8_t* pixels, float* label) const;
  /// Pictures first to first + count - 1 one after the other, on all threads.
  void render_many(int64_t first, int64_t count, uint8_t* pixels, float* labels) const;

 private:
  struct Cutout {           // a garment without its black surroundings, with a transparent border of one pixel
    int32_t height, width;  // with the border
    std::vector<uint8_t> brightness, alpha;
  };
  class Random;
  struct Box;

  void add_cutout(const uint8_t* image, int32_t class_index);
  void paint_background(Random& random, uint8_t* pixels) const;
  void paint_garment(Random& random, const Cutout& cutout, const Box& box, uint8_t* pixels) const;

  SceneOptions options_;
  std::vector<Picture> photographs_;
  std::vector<std::vector<Cutout>> cutouts_;  // by class
};

}  // namespace twibil::io
