# SPDX-License-Identifier: Apache-2.0
"""Chapters of *Dive into Deep Learning* (its `d2l` package, MXNet edition) on small data: linear regression, softmax
regression, multilayer perceptrons, LeNet and single-shot detection, from scratch and with layers."""

import os

import numpy as onp
import pytest

import twibil as mx

os.environ.setdefault("MPLBACKEND", "Agg")
for needed in ("d2l", "matplotlib", "pandas", "requests", "IPython", "matplotlib_inline"):
    pytest.importorskip(needed)
mx.install_as_mxnet()
from d2l import mxnet as d2l  # noqa: E402
from mxnet import autograd, gluon, image, init, np, npx  # noqa: E402
from mxnet.gluon import nn  # noqa: E402

npx.set_np()
RNG = onp.random.default_rng(0)


def setup_module():
    mx.random.seed(1)


def silent(model):
    model.board.display = False
    return model


@pytest.fixture(scope="module")
def fashion():
    """The book's data module with three kinds of synthetic garment in place of the downloaded pictures."""
    data = d2l.FashionMNIST.__new__(d2l.FashionMNIST)
    d2l.DataModule.__init__(data, num_workers=2)
    data.batch_size = 64
    trans = gluon.data.vision.transforms.Compose(
        [gluon.data.vision.transforms.Resize((28, 28)), gluon.data.vision.transforms.ToTensor()]
    )

    def garments(n):
        labels = RNG.integers(0, 10, n).astype("int32")
        pictures = RNG.integers(0, 60, (n, 28, 28, 1)).astype("uint8")
        for x, label in zip(pictures, labels):
            x[2 + 2 * label : 6 + 2 * label, 4:24] = 255
        return gluon.data.ArrayDataset(np.array(pictures), labels).transform_first(trans)

    data.train, data.val = garments(1024), garments(256)
    return data


def accuracy(model, data):
    right = [float(model.accuracy(model(X), y, averaged=False).sum()) for X, y in data.val_dataloader()]
    return sum(right) / len(data.val)


@pytest.mark.parametrize("kind", ["scratch", "concise"])
def test_linear_regression(kind):
    data = d2l.SyntheticRegressionData(w=np.array([2, -3.4]), b=4.2)
    model = silent(d2l.LinearRegressionScratch(2, lr=0.1) if kind == "scratch" else d2l.LinearRegression(lr=0.1))
    d2l.Trainer(max_epochs=3).fit(model, data)
    w, b = (model.w, model.b) if kind == "scratch" else model.get_w_b()
    onp.testing.assert_allclose(w.reshape(-1).asnumpy(), [2, -3.4], atol=0.15)
    onp.testing.assert_allclose(b.asnumpy(), [4.2], atol=0.2)
    assert len(model.board.data["train_loss"]) == 6


def test_weight_decay():
    class WeightDecay(d2l.LinearRegression):
        def __init__(self, wd, lr):
            super().__init__(lr)
            self.save_hyperparameters()
            self.wd = wd

        def configure_optimizers(self):
            self.collect_params(".*bias").setattr("wd_mult", 0)
            return gluon.Trainer(self.collect_params(), "sgd", {"learning_rate": self.lr, "wd": self.wd})

    data = d2l.SyntheticRegressionData(w=np.ones(20), b=1.0, num_train=60, num_val=20, batch_size=5)
    norms = []
    for wd in (0, 3):
        model = silent(WeightDecay(wd=wd, lr=0.01))
        d2l.Trainer(max_epochs=5).fit(model, data)
        norms.append(float(np.linalg.norm(model.get_w_b()[0])))
    assert norms[1] < 0.7 * norms[0]


def test_softmax_regression_scratch(fashion):
    def softmax(X):
        X_exp = d2l.exp(X)
        return X_exp / d2l.reduce_sum(X_exp, 1, keepdims=True)

    class SoftmaxRegressionScratch(d2l.Classifier):
        def __init__(self, num_inputs, num_outputs, lr, sigma=0.01):
            super().__init__()
            self.save_hyperparameters()
            self.W = np.random.normal(0, sigma, (num_inputs, num_outputs))
            self.b = np.zeros(num_outputs)
            self.W.attach_grad()
            self.b.attach_grad()

        def forward(self, X):
            return softmax(d2l.matmul(d2l.reshape(X, (-1, self.W.shape[0])), self.W) + self.b)

        def loss(self, y_hat, y):
            return -d2l.reduce_mean(d2l.log(y_hat[list(range(len(y_hat))), y]))

    model = silent(SoftmaxRegressionScratch(784, 10, lr=0.1))
    assert len(model.parameters()) == 2
    d2l.Trainer(max_epochs=3).fit(model, fashion)
    assert accuracy(model, fashion) > 0.9


def test_softmax_regression(fashion):
    model = silent(d2l.SoftmaxRegression(num_outputs=10, lr=0.1))
    d2l.Trainer(max_epochs=3).fit(model, fashion)
    assert accuracy(model, fashion) > 0.9
    X, _ = next(iter(fashion.val_dataloader()))
    assert X.shape == (64, 1, 28, 28)


@pytest.mark.parametrize("kind", ["scratch", "concise", "dropout"])
def test_multilayer_perceptron(fashion, kind):
    class MLPScratch(d2l.Classifier):
        def __init__(self, lr):
            super().__init__()
            self.save_hyperparameters()
            self.W1, self.b1 = np.random.randn(784, 64) * 0.01, np.zeros(64)
            self.W2, self.b2 = np.random.randn(64, 10) * 0.01, np.zeros(10)
            for param in self.get_scratch_params():
                param.attach_grad()

        def forward(self, X):
            H = np.maximum(d2l.matmul(d2l.reshape(X, (-1, 784)), self.W1) + self.b1, 0)
            return d2l.matmul(H, self.W2) + self.b2

    class MLP(d2l.Classifier):
        def __init__(self, lr):
            super().__init__()
            self.save_hyperparameters()
            self.net = nn.Sequential()
            self.net.add(nn.Dense(64, activation="relu"), nn.Dropout(0.1 if kind == "dropout" else 0), nn.Dense(10))
            self.net.initialize()

    model = silent(MLPScratch(0.1) if kind == "scratch" else MLP(0.1))
    d2l.Trainer(max_epochs=4).fit(model, fashion)
    assert accuracy(model, fashion) > 0.9


def test_lenet(fashion, capsys):
    model = silent(d2l.LeNet(lr=0.9))
    model.layer_summary((1, 1, 28, 28))
    text = capsys.readouterr().out
    assert "Conv2D output shape:\t (1, 6, 28, 28)" in text and "Dense output shape:\t (1, 10)" in text
    d2l.Trainer(max_epochs=1).fit(model, fashion)
    first = model.board.data["train_loss"][0].y
    net = nn.Sequential()
    net.add(
        nn.Conv2D(6, kernel_size=5, padding=2, activation="relu"),
        nn.MaxPool2D(2, 2),
        nn.Dense(32, activation="relu"),
        nn.Dense(10),
    )
    model.net = net
    net.initialize(init.Xavier())
    model.lr = 0.1
    d2l.Trainer(max_epochs=3, gradient_clip_val=5).fit(model, fashion)
    assert onp.isfinite(first) and accuracy(model, fashion) > 0.9


# ---- single-shot detection ----
def test_anchors_and_targets_from_scratch():
    boxes = d2l.multibox_prior(np.zeros((1, 3, 10, 12)), sizes=[0.75, 0.5, 0.25], ratios=[1, 2, 0.5])
    assert boxes.shape == (1, 600, 4)
    built_in = npx.multibox_prior(np.zeros((1, 3, 10, 12)), sizes=[0.75, 0.5, 0.25], ratios=[1, 2, 0.5])
    onp.testing.assert_allclose(boxes.asnumpy(), built_in.asnumpy(), atol=1e-5)
    truth = np.array([[0, 0.1, 0.08, 0.52, 0.92], [1, 0.55, 0.2, 0.9, 0.88]])
    anchors = np.array(
        [
            [0, 0.1, 0.2, 0.3],
            [0.15, 0.2, 0.4, 0.4],
            [0.63, 0.05, 0.88, 0.98],
            [0.66, 0.45, 0.8, 0.8],
            [0.57, 0.3, 0.92, 0.9],
        ]
    )
    offset, mask, label = d2l.multibox_target(np.expand_dims(anchors, axis=0), np.expand_dims(truth, axis=0))
    assert label.tolist() == [[0, 1, 2, 0, 2]]
    assert mask.tolist() == [[0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 1, 1, 1, 1]]
    onp.testing.assert_allclose(offset[0, 4:8].asnumpy(), [1.4, 10, 2.5940, 7.1754], rtol=1e-3)
    b_offset, b_mask, b_label = npx.multibox_target(
        np.expand_dims(anchors, 0), np.expand_dims(truth, 0), np.zeros((1, 3, 5))
    )
    onp.testing.assert_allclose(b_offset.asnumpy(), offset.asnumpy(), rtol=1e-3, atol=1e-4)
    assert b_label.tolist() == label.tolist() and b_mask.tolist() == mask.tolist()


@pytest.mark.parametrize("detect", ["scratch", "built in"])
def test_detection(detect):
    anchors = np.array(
        [[0.1, 0.08, 0.52, 0.92], [0.08, 0.2, 0.56, 0.95], [0.15, 0.3, 0.62, 0.91], [0.55, 0.2, 0.9, 0.88]]
    )
    preds = np.array([0.0] * anchors.size)
    probs = np.array([[0] * 4, [0.9, 0.8, 0.7, 0.1], [0.1, 0.2, 0.3, 0.9]])
    function = d2l.multibox_detection if detect == "scratch" else npx.multibox_detection
    output = function(
        np.expand_dims(probs, axis=0), np.expand_dims(preds, axis=0), np.expand_dims(anchors, axis=0), nms_threshold=0.5
    )
    kept = sorted(r for r in output[0].tolist() if r[0] >= 0)
    onp.testing.assert_allclose(kept, [[0, 0.9, 0.1, 0.08, 0.52, 0.92], [1, 0.9, 0.55, 0.2, 0.9, 0.88]], atol=1e-5)


@pytest.fixture(scope="module")
def bananas(tmp_path_factory):
    """Pictures of bright rectangles in the folders and tables of the book's banana data set."""
    root = tmp_path_factory.mktemp("banana-detection")
    for part, count in (("bananas_train", 16), ("bananas_val", 4)):
        (root / part / "images").mkdir(parents=True)
        rows = ["img_name,label,xmin,ymin,xmax,ymax"]
        for i in range(count):
            picture = RNG.integers(0, 90, (256, 256, 3)).astype("uint8")
            x, y = RNG.integers(10, 150, 2)
            w, h = RNG.integers(50, 100, 2)
            picture[y : y + h, x : x + w] = (255, 220, 60)
            image.imwrite(str(root / part / "images" / f"{i}.png"), np.array(picture))
            rows.append(f"{i}.png,0,{x},{y},{x + w},{y + h}")
        (root / part / "label.csv").write_text("\n".join(rows))
    return root


def cls_predictor(num_anchors, num_classes):
    return nn.Conv2D(num_anchors * (num_classes + 1), kernel_size=3, padding=1)


def bbox_predictor(num_anchors):
    return nn.Conv2D(num_anchors * 4, kernel_size=3, padding=1)


def down_sample_blk(num_channels):
    blk = nn.Sequential()
    for _ in range(2):
        blk.add(
            nn.Conv2D(num_channels, kernel_size=3, padding=1),
            nn.BatchNorm(in_channels=num_channels),
            nn.Activation("relu"),
        )
    blk.add(nn.MaxPool2D(2))
    return blk


SIZES = [[0.2, 0.272], [0.37, 0.447], [0.54, 0.619], [0.71, 0.79], [0.88, 0.961]]
RATIOS = [[1, 2, 0.5]] * 5


class TinySSD(nn.Block):
    """The chapter's network with half the channels."""

    def __init__(self, num_classes, **kwargs):
        super().__init__(**kwargs)
        self.num_classes = num_classes
        for i in range(5):
            setattr(self, f"blk_{i}", self.block(i))
            setattr(self, f"cls_{i}", cls_predictor(4, num_classes))
            setattr(self, f"bbox_{i}", bbox_predictor(4))

    @staticmethod
    def block(i):
        if i == 0:
            blk = nn.Sequential()
            for channels in (8, 16, 32):
                blk.add(down_sample_blk(channels))
            return blk
        return nn.GlobalMaxPool2D() if i == 4 else down_sample_blk(64)

    def forward(self, X):
        anchors, cls_preds, bbox_preds = [None] * 5, [None] * 5, [None] * 5
        for i in range(5):
            X = getattr(self, f"blk_{i}")(X)
            anchors[i] = npx.multibox_prior(X, sizes=SIZES[i], ratios=RATIOS[i])
            cls_preds[i] = npx.batch_flatten(getattr(self, f"cls_{i}")(X).transpose(0, 2, 3, 1))
            bbox_preds[i] = npx.batch_flatten(getattr(self, f"bbox_{i}")(X).transpose(0, 2, 3, 1))
        anchors = np.concatenate(anchors, axis=1)
        cls_preds = np.concatenate(cls_preds, axis=1)
        return (
            anchors,
            cls_preds.reshape(cls_preds.shape[0], -1, self.num_classes + 1),
            np.concatenate(bbox_preds, axis=1),
        )


@pytest.mark.parametrize("targets", ["scratch", "built in"])
def test_single_shot_detection(bananas, monkeypatch, tmp_path, targets):
    monkeypatch.setattr(d2l, "download_extract", lambda name: str(bananas))
    train_iter, _ = d2l.load_data_bananas(8)
    X, Y = next(iter(train_iter))
    assert X.shape == (8, 3, 256, 256) and Y.shape == (8, 1, 5)
    mx.random.seed(2)
    device, net = d2l.try_gpu(), TinySSD(num_classes=1)
    net.initialize(init=init.Xavier(), ctx=device)
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.2, "wd": 5e-4})
    cls_loss, bbox_loss = gluon.loss.SoftmaxCrossEntropyLoss(), gluon.loss.L1Loss()
    losses, errors = [], []
    for _ in range(3):
        metric = d2l.Accumulator(4)
        for features, target in train_iter:
            X, Y = features.as_in_ctx(device), target.as_in_ctx(device)
            with autograd.record():
                anchors, cls_preds, bbox_preds = net(X)
                if targets == "scratch":
                    bbox_labels, bbox_masks, cls_labels = d2l.multibox_target(anchors, Y)
                else:
                    bbox_labels, bbox_masks, cls_labels = npx.multibox_target(anchors, Y, cls_preds.transpose(0, 2, 1))
                value = cls_loss(cls_preds, cls_labels) + bbox_loss(bbox_preds * bbox_masks, bbox_labels * bbox_masks)
            value.backward()
            trainer.step(X.shape[0])
            losses.append(float(value.mean()))
            right = float((cls_preds.argmax(axis=-1).astype(cls_labels.dtype) == cls_labels).sum())
            wrong = float((np.abs((bbox_labels - bbox_preds) * bbox_masks)).sum())
            metric.add(right, cls_labels.size, wrong, bbox_labels.size)
        errors.append((1 - metric[0] / metric[1], metric[2] / metric[3]))
    assert anchors.shape == (1, 5444, 4) and cls_preds.shape == (8, 5444, 2) and bbox_preds.shape == (8, 21776)
    assert losses[-1] < 0.5 * losses[0] and errors[-1][0] < 0.1
    net.save_parameters(str(tmp_path / "ssd.params"))
    again = TinySSD(num_classes=1)
    again.load_parameters(str(tmp_path / "ssd.params"), ctx=device)
    anchors, cls_preds, bbox_preds = again(X[:1])
    cls_probs = npx.softmax(cls_preds).transpose(0, 2, 1)
    output = npx.multibox_detection(cls_probs, bbox_preds, anchors)
    onp.testing.assert_array_equal(bbox_preds.asnumpy(), net(X[:1])[2].asnumpy())
    assert output.shape == (1, 5444, 6)
    idx = [i for i, row in enumerate(output[0]) if row[0] != -1]
    assert all(0 <= float(output[0, i, 1]) <= 1 for i in idx)


def test_show_images_and_boxes():
    axes = d2l.show_images([np.zeros((8, 8, 3)), np.ones((8, 8, 3))], 1, 2, scale=2)
    d2l.show_bboxes(axes[0], np.array([[1.0, 1, 4, 4]]), ["banana"])
    d2l.plot(np.arange(0, 3, 0.5), [np.arange(0, 3, 0.5) ** 2], "x", "f(x)")
    assert len(axes[0].patches) == 1
    d2l.plt.close("all")
