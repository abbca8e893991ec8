# SPDX-License-Identifier: Apache-2.0
"""Pictures: `mx.image` and `npx.image`. Arrays are (height, width, channels), red first, unless said otherwise."""
from __future__ import annotations

from .augment import (Augmenter, BrightnessJitterAug, CastAug, CenterCropAug, ColorJitterAug, ColorNormalizeAug,
                      ContrastJitterAug, CreateAugmenter, ForceResizeAug, HorizontalFlipAug, HueJitterAug, LightingAug,
                      RandomCropAug, RandomGrayAug, RandomOrderAug, RandomSizedCropAug, ResizeAug, SaturationJitterAug,
                      SequentialAug)
from .color import (adjust_brightness, adjust_contrast, adjust_hue, adjust_lighting, adjust_saturation, color_normalize,
                    normalize, random_brightness, random_color_jitter, random_contrast, random_hue, random_lighting,
                    random_saturation, to_tensor)
from .files import imdecode, imread, imwrite
from .geometry import (center_crop, copyMakeBorder, crop, fixed_crop, flip_left_right, flip_top_bottom, imresize,
                       random_crop, random_flip_left_right, random_flip_top_bottom, random_resized_crop,
                       random_size_crop, resize, resize_short, scale_down)

__all__ = [name for name in dir() if not name.startswith("_") and name not in
           ("annotations", "augment", "color", "files", "geometry")]
