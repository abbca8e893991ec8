// SPDX-License-Identifier: Apache-2.0
#include "api/io/fashion_scenes.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/error.h"
#include "base/parallel.h"

namespace twibil::io {
namespace {

constexpr int kSide = 28;     // of a Fashion-MNIST picture
constexpr int kMinArea = 40;  // garments of fewer pixels are lost in their own edge
constexpr uint8_t kFaint = 10;
constexpr std::array<std::string_view, 10> kClassNames = {"t-shirt", "trouser", "pullover", "dress", "coat",
                                                          "sandal",  "shirt",   "sneaker",  "bag",   "ankle boot"};

uint64_t mixed(uint64_t x) {  // splitmix64's finaliser
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

// Positions and weights of a bilinear sample along one axis, computed once for all rows or columns.
struct Tap {
  int32_t low, high;
  int32_t weight;  // of `high`, in 256ths
};

std::vector<Tap> taps(int64_t count, double begin, double step, int64_t limit, bool mirrored) {
  std::vector<Tap> result(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) {
    const double x = std::clamp(begin + (static_cast<double>(mirrored ? count - 1 - i : i) + 0.5) * step - 0.5, 0.0,
                                static_cast<double>(limit - 1));
    const auto low = static_cast<int32_t>(x);
    result[static_cast<size_t>(i)] = {low, std::min(low + 1, static_cast<int32_t>(limit) - 1),
                                      static_cast<int32_t>((x - low) * 256)};
  }
  return result;
}

// One row of a photograph at the columns of the picture, in 256ths.
void stretch_row(const uint8_t* row, const std::vector<Tap>& columns, std::vector<int32_t>& to) {
  int32_t* out = to.data();
  for (const Tap& column : columns) {
    const uint8_t *a = row + column.low * 3, *b = row + column.high * 3;
    for (int c = 0; c < 3; ++c) *out++ = a[c] * 256 + (b[c] - a[c]) * column.weight;
  }
}

// Marks what a walk over faint pixels reaches from outside, and enclosed holes of pure black (a bag's handle).
std::array<bool, kSide * kSide> find_outside(const uint8_t* image) {
  std::array<bool, kSide * kSide> outside{}, seen{};
  const auto flood = [&](int start, uint8_t limit) {
    std::vector<int> region{start};
    seen[static_cast<size_t>(start)] = true;
    for (size_t i = 0; i < region.size(); ++i) {
      const int y = region[i] / kSide, x = region[i] % kSide;
      const std::array<std::array<int, 2>, 4> next{{{y - 1, x}, {y + 1, x}, {y, x - 1}, {y, x + 1}}};
      for (const auto& [ny, nx] : next) {
        if (ny < 0 || nx < 0 || ny >= kSide || nx >= kSide) continue;
        const int at = ny * kSide + nx;
        if (seen[static_cast<size_t>(at)] || image[at] > limit) continue;
        seen[static_cast<size_t>(at)] = true;
        region.push_back(at);
      }
    }
    return region;
  };
  for (int at = 0; at < kSide * kSide; ++at) {
    const bool border = at < kSide || at >= kSide * (kSide - 1) || at % kSide == 0 || at % kSide == kSide - 1;
    if (!border || seen[static_cast<size_t>(at)] || image[at] > kFaint) continue;
    for (int pixel : flood(at, kFaint)) outside[static_cast<size_t>(pixel)] = true;
  }
  for (int at = 0; at < kSide * kSide; ++at) {
    if (seen[static_cast<size_t>(at)] || image[at] != 0) continue;
    const std::vector<int> hole = flood(at, 0);
    if (hole.size() < 8) continue;
    for (int pixel : hole) outside[static_cast<size_t>(pixel)] = true;
  }
  return outside;
}

std::array<float, 3> tint_of(float hue, float saturation) {
  std::array<float, 3> rgb;
  for (size_t channel = 0; channel < 3; ++channel) {
    const float distance = std::fabs(std::fmod(hue * 6 + 4 - 2 * static_cast<float>(channel) + 6, 6.0f) - 3);
    rgb[channel] = 1 - saturation * (1 - std::clamp(distance - 1, 0.0f, 1.0f));
  }
  return rgb;
}

}  // namespace

// Numbers that depend on the seed, the picture's number and their order only.
class FashionScenes::Random {
 public:
  Random(uint64_t seed, int64_t index)
      : state_(mixed(mixed(seed + 0x9E3779B97F4A7C15u) + static_cast<uint64_t>(index))) {}
  uint64_t bits() { return mixed(state_ += 0x9E3779B97F4A7C15u); }
  double uniform(double low, double high) { return low + (high - low) * static_cast<double>(bits() >> 11) * 0x1p-53; }
  int64_t below(int64_t n) {
    return static_cast<int64_t>((static_cast<unsigned __int128>(bits()) * static_cast<uint64_t>(n)) >> 64);
  }
  bool coin() { return bits() >> 63; }

 private:
  uint64_t state_;
};

struct FashionScenes::Box {
  double left, top, right, bottom;  // in pixels
  double area() const { return (right - left) * (bottom - top); }
  double overlap(const Box& other) const {  // the intersection, as part of the smaller box
    const double w = std::min(right, other.right) - std::max(left, other.left);
    const double h = std::min(bottom, other.bottom) - std::max(top, other.top);
    return w <= 0 || h <= 0 ? 0 : w * h / std::min(area(), other.area());
  }
};

FashionScenes::FashionScenes(const IdxArray& images, const IdxArray& labels, std::vector<Picture> photographs,
                             SceneOptions options)
    : options_(std::move(options)), photographs_(std::move(photographs)) {
  const SceneOptions& o = options_;
  const bool images_fit =
      images.dtype == DType::uint8 && images.shape.size() == 3 && images.shape[1] == kSide && images.shape[2] == kSide;
  TW_CHECK(images_fit, value, "fashion_scenes: images must be uint8 of shape [n, 28, 28]; got ", images.dtype,
           " of shape ", std::span<const int64_t>(images.shape));
  TW_CHECK(labels.dtype == DType::uint8 && labels.shape.size() == 1 && labels.shape[0] == images.shape[0], value,
           "fashion_scenes: labels must be uint8 of shape [", images.shape[0], "]; got ", labels.dtype, " of shape ",
           std::span<const int64_t>(labels.shape));
  TW_CHECK(o.side >= 16 && o.side <= 4096, value, "fashion_scenes: side must be 16 to 4096; got ", o.side);
  TW_CHECK(0 <= o.min_garments && o.min_garments <= o.max_garments && 1 <= o.max_garments && o.max_garments <= 64,
           value, "fashion_scenes: 0 <= min_garments <= max_garments <= 64 must hold; got ", o.min_garments, " and ",
           o.max_garments);
  TW_CHECK(0 < o.min_size && o.min_size <= o.max_size && o.max_size <= 1, value,
           "fashion_scenes: 0 < min_size <= max_size <= 1 must hold; got ", o.min_size, " and ", o.max_size);
  TW_CHECK(!photographs_.empty(), value, "fashion_scenes: at least one photograph is needed");
  for (const Picture& p : photographs_) {
    TW_CHECK(p.channels == 3 && p.height >= 8 && p.width >= 8, value,
             "fashion_scenes: photographs must have 3 channels and at least 8 x 8 pixels; got ", p.height, " x ",
             p.width, " x ", p.channels);
  }
  TW_CHECK(!o.classes.empty(), value, "fashion_scenes: at least one class is needed");
  cutouts_.resize(o.classes.size());
  for (int64_t i = 0; i < images.shape[0]; ++i) {
    const int label = std::to_integer<int>(labels.data[static_cast<size_t>(i)]);
    const auto place = std::find(o.classes.begin(), o.classes.end(), label);
    if (place == o.classes.end()) continue;
    add_cutout(reinterpret_cast<const uint8_t*>(images.data.data()) + i * kSide * kSide,
               static_cast<int32_t>(place - o.classes.begin()));
  }
  for (size_t c = 0; c < cutouts_.size(); ++c) {
    TW_CHECK(!cutouts_[c].empty(), value, "fashion_scenes: no garment has label ", o.classes[c]);
  }
}

std::string_view FashionScenes::class_name(int label) {
  TW_CHECK(label >= 0 && label < static_cast<int>(kClassNames.size()), index,
           "fashion_scenes: a label must be 0 to 9; got ", label);
  return kClassNames[static_cast<size_t>(label)];
}

int64_t FashionScenes::count_garments() const {
  int64_t count = 0;
  for (const auto& of_class : cutouts_) count += static_cast<int64_t>(of_class.size());
  return count;
}

void FashionScenes::add_cutout(const uint8_t* image, int32_t class_index) {
  const auto outside = find_outside(image);
  int top = kSide, left = kSide, bottom = -1, right = -1, area = 0;
  for (int at = 0; at < kSide * kSide; ++at) {
    if (outside[static_cast<size_t>(at)]) continue;
    const int y = at / kSide, x = at % kSide;
    top = std::min(top, y), bottom = std::max(bottom, y);
    left = std::min(left, x), right = std::max(right, x);
    ++area;
  }
  if (area < kMinArea) return;
  Cutout cutout{bottom - top + 3, right - left + 3, {}, {}};
  const auto size = static_cast<size_t>(cutout.height * cutout.width);
  cutout.brightness.assign(size, 0), cutout.alpha.assign(size, 0);
  for (int y = top; y <= bottom; ++y) {
    for (int x = left; x <= right; ++x) {
      const auto from = static_cast<size_t>(y * kSide + x);
      const auto to = static_cast<size_t>((y - top + 1) * cutout.width + x - left + 1);
      cutout.brightness[to] = image[from];
      cutout.alpha[to] = outside[from] ? 0 : 255;
    }
  }
  cutouts_[static_cast<size_t>(class_index)].push_back(std::move(cutout));
}

void FashionScenes::paint_background(Random& random, uint8_t* pixels) const {
  const Picture& photo = photographs_[static_cast<size_t>(random.below(static_cast<int64_t>(photographs_.size())))];
  const auto shorter = static_cast<double>(std::min(photo.height, photo.width));
  const double crop = shorter * random.uniform(0.4, 1.0);
  const double top = random.uniform(0, static_cast<double>(photo.height) - crop);
  const double left = random.uniform(0, static_cast<double>(photo.width) - crop);
  const double step = crop / static_cast<double>(options_.side);
  const auto rows = taps(options_.side, top, step, photo.height, false);
  const auto columns = taps(options_.side, left, step, photo.width, random.coin());
  const auto gain = static_cast<int32_t>(random.uniform(0.6, 1.1) * 256);
  // Neighbouring rows of the picture mostly lie between the same two rows of the photograph, which are kept.
  const auto length = static_cast<size_t>(options_.side * 3);
  std::vector<int32_t> above(length), below(length);
  int32_t above_row = -1, below_row = -1;
  for (const Tap& row : rows) {
    if (above_row != row.low) {
      std::swap(above, below), std::swap(above_row, below_row);
      if (above_row != row.low) stretch_row(photo.at(row.low, 0), columns, above);
      above_row = row.low;
    }
    if (below_row != row.high) stretch_row(photo.at(row.high, 0), columns, below);
    below_row = row.high;
    const int32_t* a = above.data();
    const int32_t* b = below.data();
    for (size_t i = 0; i < length; ++i) {
      const int32_t value = (a[i] * 256 + (b[i] - a[i]) * row.weight) >> 16;
      pixels[i] = static_cast<uint8_t>(std::min(value * gain >> 8, 255));
    }
    pixels += length;
  }
}

void FashionScenes::paint_garment(Random& random, const Cutout& cutout, const Box& box, uint8_t* pixels) const {
  const auto tint = tint_of(static_cast<float>(random.uniform(0, 1)), static_cast<float>(random.uniform(0, 0.8)));
  const double light = random.uniform(0.7, 1.0), floor = random.uniform(0.1, 0.35);
  std::array<int32_t, 3> gain, base;
  for (size_t c = 0; c < 3; ++c) {
    gain[c] = static_cast<int32_t>(256 * light * (1 - floor) * tint[c]);
    base[c] = static_cast<int32_t>(255 * 256 * light * floor * tint[c]);
  }
  // The border of the cutout lies outside the box: half a garment pixel of it is where the edge fades.
  const double scale_y = (box.bottom - box.top) / (cutout.height - 2),
               scale_x = (box.right - box.left) / (cutout.width - 2);
  const auto y0 = static_cast<int64_t>(std::max(0.0, box.top - scale_y)),
             x0 = static_cast<int64_t>(std::max(0.0, box.left - scale_x));
  const int64_t y1 = std::min(options_.side, static_cast<int64_t>(box.bottom + scale_y) + 1);
  const int64_t x1 = std::min(options_.side, static_cast<int64_t>(box.right + scale_x) + 1);
  const auto rows = taps(y1 - y0, (static_cast<double>(y0) - box.top) / scale_y + 1, 1 / scale_y, cutout.height, false);
  auto columns = taps(x1 - x0, (static_cast<double>(x0) - box.left) / scale_x + 1, 1 / scale_x, cutout.width, false);
  const auto sample = [&](const std::vector<uint8_t>& plane, const Tap& row, const Tap& column) {
    const uint8_t* upper = plane.data() + row.low * cutout.width;
    const uint8_t* lower = plane.data() + row.high * cutout.width;
    const int32_t above = upper[column.low] * 256 + (upper[column.high] - upper[column.low]) * column.weight;
    const int32_t below = lower[column.low] * 256 + (lower[column.high] - lower[column.low]) * column.weight;
    return (above * 256 + (below - above) * row.weight) >> 16;
  };
  for (int64_t y = y0; y < y1; ++y) {
    const Tap& row = rows[static_cast<size_t>(y - y0)];
    uint8_t* pixel = pixels + (y * options_.side + x0) * 3;
    for (int64_t x = x0; x < x1; ++x, pixel += 3) {
      const Tap& column = columns[static_cast<size_t>(x - x0)];
      // Steeper than the interpolation, so that edges are smooth but not blurred: half transparent at the box's edge.
      const int32_t alpha = std::clamp((sample(cutout.alpha, row, column) - 64) * 2, 0, 256);
      if (alpha == 0) continue;
      const int32_t brightness = sample(cutout.brightness, row, column);
      for (size_t c = 0; c < 3; ++c) {
        const int32_t value = (base[c] + brightness * gain[c]) >> 8;
        pixel[c] = static_cast<uint8_t>((pixel[c] * (256 - alpha) + value * alpha) >> 8);
      }
    }
  }
}

void FashionScenes::render(int64_t index, uint8_t* pixels, float* label) const {
  constexpr int kTries = 30;
  Random random(options_.seed, index);
  paint_background(random, pixels);
  std::fill_n(label, options_.max_garments * kLabelColumns, -1.0f);
  const auto side = static_cast<double>(options_.side);
  const int64_t count = options_.min_garments + random.below(options_.max_garments - options_.min_garments + 1);
  std::vector<Box> placed;
  // A place is tried some times; when none is free the picture has fewer garments.
  for (int64_t garment = 0; garment < count; ++garment) {
    const auto class_index = static_cast<size_t>(random.below(static_cast<int64_t>(cutouts_.size())));
    const auto& of_class = cutouts_[class_index];
    const Cutout& cutout = of_class[static_cast<size_t>(random.below(static_cast<int64_t>(of_class.size())))];
    for (int attempt = 0; attempt < kTries; ++attempt) {
      const double longer = side * random.uniform(options_.min_size, options_.max_size);
      const double scale = longer / (std::max(cutout.height, cutout.width) - 2);
      const double height = scale * (cutout.height - 2), width = scale * (cutout.width - 2);
      const double top = random.uniform(0, side - height), left = random.uniform(0, side - width);
      const Box box{left, top, left + width, top + height};
      const bool free = std::none_of(placed.begin(), placed.end(),
                                     [&](const Box& other) { return box.overlap(other) > options_.max_overlap; });
      if (!free) continue;
      paint_garment(random, cutout, box, pixels);
      float* row = label + static_cast<int64_t>(placed.size()) * kLabelColumns;
      row[0] = static_cast<float>(class_index);
      row[1] = static_cast<float>(box.left / side), row[2] = static_cast<float>(box.top / side);
      row[3] = static_cast<float>(box.right / side), row[4] = static_cast<float>(box.bottom / side);
      placed.push_back(box);
      break;
    }
  }
}

void FashionScenes::render_many(int64_t first, int64_t count, uint8_t* pixels, float* labels) const {
  const int64_t bytes = options_.side * options_.side * 3, floats = options_.max_garments * kLabelColumns;
  parallel_for(count, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) render(first + i, pixels + i * bytes, labels + i * floats);
  });
}

}  // namespace twibil::io
