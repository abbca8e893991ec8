# SPDX-License-Identifier: Apache-2.0
"""TinySSD, the network of *Dive into Deep Learning*: five scales, four anchors at every place of each."""
from __future__ import annotations

import math

from twibil import np, npx
from twibil.gluon import HybridBlock, nn

SIZES = [[0.2, 0.272], [0.37, 0.447], [0.54, 0.619], [0.71, 0.79], [0.88, 0.961]]
RATIOS = [1, 2, 0.5]
OVERLAP = 0.45  # boxes of one class that share more are merged
ANCHORS = len(SIZES[0]) + len(RATIOS) - 1


def down_sample(channels):
    """Two convolutions and a pooling that halves the sides."""
    block = nn.HybridSequential()
    for _ in range(2):
        block.add(nn.Conv2D(channels, kernel_size=3, padding=1), nn.BatchNorm(in_channels=channels),
                  nn.Activation("relu"))
    block.add(nn.MaxPool2D(2))
    return block


def base():
    """Three halvings: the features of the first scale."""
    block = nn.HybridSequential()
    for channels in (16, 32, 64):
        block.add(down_sample(channels))
    return block


def _rows(x):
    """(batch, channels, height, width) to (batch, rest), channels last. Says nothing of the batch, so that a graph traced
    from it fits any."""
    x = x.transpose(0, 2, 3, 1)
    return x.reshape(-1, math.prod(x.shape[1:]))


class TinySSD(HybridBlock):
    """Returns anchors (1, n, 4), class scores (batch, n, classes + 1) and box offsets (batch, 4 n)."""

    def __init__(self, classes: int):
        super().__init__()
        self.classes = classes
        self.stages, self.class_heads, self.box_heads = nn.HybridSequential(), nn.HybridSequential(), nn.HybridSequential()
        self.stages.add(base(), down_sample(128), down_sample(128), down_sample(128), nn.GlobalMaxPool2D())
        for _ in SIZES:
            self.class_heads.add(nn.Conv2D(ANCHORS * (classes + 1), kernel_size=3, padding=1))
            self.box_heads.add(nn.Conv2D(ANCHORS * 4, kernel_size=3, padding=1))

    def forward(self, x):
        anchors, scores, offsets = [], [], []
        for stage, class_head, box_head, sizes in zip(self.stages, self.class_heads, self.box_heads, SIZES):
            x = stage(x)
            anchors.append(npx.multibox_prior(x, sizes=sizes, ratios=RATIOS))
            scores.append(_rows(class_head(x)))
            offsets.append(_rows(box_head(x)))
        scores = np.concatenate(scores, axis=1)
        return (np.concatenate(anchors, axis=1),
                scores.reshape(-1, scores.shape[1] // (self.classes + 1), self.classes + 1),
                np.concatenate(offsets, axis=1))


def losses(anchors, scores, offsets, labels):
    """The losses of classes and of boxes, both per anchor that holds a garment.

    Most anchors hold none. Of those only the ones that look most like a garment count, three for each that holds one
    (negative mining); the others get the label -1.
    """
    offset_targets, offset_mask, class_targets = npx.multibox_target(
        anchors, labels, scores.transpose(0, 2, 1), overlap_threshold=0.5, ignore_label=-1, negative_mining_ratio=3,
        negative_mining_thresh=0.5)
    holding = np.maximum((class_targets > 0).sum(), 1)
    chosen = npx.pick(npx.log_softmax(scores, axis=-1), np.maximum(class_targets, 0), axis=-1)
    class_loss = -(chosen * (class_targets >= 0)).sum() / holding
    box_loss = (np.abs(offsets - offset_targets) * offset_mask).sum() / holding
    return class_loss, box_loss


def detect(net, x, threshold=0.01, overlap=OVERLAP):
    """For each picture a NumPy array of rows class, score, left, top, right, bottom; overlapping boxes are merged."""
    anchors, scores, offsets = net(x)
    chances = npx.softmax(scores, axis=-1).transpose(0, 2, 1)
    found = npx.multibox_detection(chances, offsets, anchors, threshold=threshold, nms_threshold=overlap).asnumpy()
    return [rows[rows[:, 0] >= 0] for rows in found]
