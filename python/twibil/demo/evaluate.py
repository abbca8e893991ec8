# SPDX-License-Identifier: Apache-2.0
"""Mean average precision as PASCAL VOC defines it since 2010: the area under the whole precision curve, IoU 0.5."""
import numpy as np


def box_iou(a, b):
    """IoU of every box of `a` (n, 4) with every box of `b` (m, 4); boxes are left, top, right, bottom."""
    a, b = np.asarray(a, np.float64)[:, None], np.asarray(b, np.float64)[None]
    sides = np.minimum(a[..., 2:], b[..., 2:]) - np.maximum(a[..., :2], b[..., :2])
    overlap = np.prod(np.maximum(sides, 0), axis=-1)
    union = np.prod(a[..., 2:] - a[..., :2], axis=-1) + np.prod(b[..., 2:] - b[..., :2], axis=-1) - overlap
    return overlap / np.maximum(union, 1e-12)


def match_class(detections, truths, label, iou):
    """Scores of all detections of one class and whether each is right, and how many boxes there were to find.

    In a picture, better scored detections choose first; a box that was found already makes the next one wrong.
    """
    scores, correct, positives = [], [], 0
    for found, truth in zip(detections, truths):
        boxes = truth[truth[:, 0] == label, 1:5]
        found = found[found[:, 0] == label]
        found = found[np.argsort(-found[:, 1], kind="stable")]
        positives += len(boxes)
        free = np.ones(len(boxes), bool)
        overlaps = box_iou(found[:, 2:6], boxes)
        for row, score in zip(overlaps, found[:, 1]):
            best = int(np.argmax(row)) if len(boxes) else -1
            right = best >= 0 and row[best] >= iou and free[best]
            if right:
                free[best] = False
            scores.append(score)
            correct.append(right)
    return np.array(scores), np.array(correct, bool), positives


def average_precision(scores, correct, positives):
    """The area under precision over recall, precision made to fall only; nan where there was nothing to find."""
    if positives == 0:
        return float("nan")
    order = np.argsort(-scores, kind="stable")
    right = np.cumsum(correct[order])
    precision = right / np.arange(1, len(order) + 1)
    recall = np.concatenate([[0.0], right / positives])
    envelope = np.maximum.accumulate(precision[::-1])[::-1]
    return float(np.sum(np.diff(recall) * envelope))


def mean_average_precision(detections, truths, classes, iou=0.5):
    """Returns the mean over classes and the list of each.

    `detections`: for every picture an array of rows class, score, left, top, right, bottom. `truths`: for every picture
    rows class, left, top, right, bottom. Rows of class -1 are ignored in both.
    """
    if len(detections) != len(truths):
        raise ValueError(f"mean_average_precision: as many detections as truths are needed; got {len(detections)} and "
                         f"{len(truths)}")
    each = [average_precision(*match_class(detections, truths, label, iou)) for label in range(classes)]
    return float(np.nanmean(each)), each
