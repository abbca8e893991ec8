// SPDX-License-Identifier: Apache-2.0
// Drawing on pictures: smooth lines, boxes with labels, text in a small built-in font. For looking at what a detector
// found, with no other library at hand.
#pragma once
#include <string_view>

#include "api/io/picture.h"

namespace twibil::io {

struct Color {
  uint8_t red, green, blue;
};

/// Colors that are told apart well, on light and on dark pictures; they repeat after eight.
Color palette_color(int64_t i);

/// A line of `thickness` pixels with smooth edges. (0, 0) is the upper left corner of the picture, (1, 1) the lower
/// right one of its first pixel. What lies outside is cut off, here and below.
void draw_line(Picture& picture, double x0, double y0, double x1, double y1, Color color, double thickness = 1);

/// Columns left to right - 1 of rows top to bottom - 1.
void fill_rectangle(Picture& picture, int64_t left, int64_t top, int64_t right, int64_t bottom, Color color,
                    double opacity = 1);

inline constexpr int64_t kGlyphWidth = 6, kGlyphHeight = 9;  // with the space to the next letter and line
/// Every letter outside printable ASCII becomes a box. `scale` enlarges; a newline begins a line.
void draw_text(Picture& picture, int64_t left, int64_t top, std::string_view text, Color color, int64_t scale = 1);

/// A frame with its label on a bar of the frame's color: above the box where there is room, else inside it.
void draw_box(Picture& picture, double left, double top, double right, double bottom, std::string_view label,
              Color color, double thickness = 2, int64_t text_scale = 1);

/// Puts `part` into `picture`, its upper left corner at (left, top).
void paste(Picture& picture, const Picture& part, int64_t left, int64_t top);

}  // namespace twibil::io
