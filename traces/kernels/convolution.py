"""3 x 3 convolution with bias, and the same with a 2 x 2 maximum pool after it.

x [in, height, width], w [3, 3, in, out], bias [out, 1]; no padding. The channels are multiples of
128; output rows are worked on in blocks that fill a PSUM bank.
"""

import nki
import nki.isa as nisa
import nki.language as nl
import numpy as np

BANK = 512
TILE = 128


def conv3x3_reference(x, w, bias):
    """Nine shifted products, summed."""
    height, width = x.shape[1] - 2, x.shape[2] - 2
    out = np.zeros((w.shape[3], height, width), np.float32)
    for dy in range(3):
        for dx in range(3):
            shifted = x[:, dy : dy + height, dx : dx + width]
            out += np.tensordot(w[dy, dx].T, shifted, axes=1)
    return out + bias[:, :, None]


def conv3x3_pool_reference(x, w, bias):
    """Maxima of 2 x 2 fields of the convolution."""
    y = conv3x3_reference(x, w, bias)
    channels, height, width = y.shape
    return y.reshape(channels, height // 2, 2, width // 2, 2).max(axis=(2, 4))


def load_channels(x, row, rows):
    """Rows of the image, one SBUF tile for 128 channels."""
    tiles = []
    for c in range(0, x.shape[0], TILE):
        tile = nl.ndarray((TILE, rows, x.shape[2]), dtype=x.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=tile, src=x[c : c + TILE, row : row + rows, :])
        tiles.append(tile)
    return tiles


def load_weights(w):
    """Tiles [128, 9, out] by input channels: all nine taps."""
    out_channels = w.shape[3]
    tiles = []
    for c in range(0, w.shape[2], TILE):
        tile = nl.ndarray((TILE, 9, out_channels), dtype=w.dtype, buffer=nl.sbuf)
        for dy in range(3):
            for dx in range(3):
                nisa.dma_copy(dst=tile[:, 3 * dy + dx, :], src=w[dy, dx, c : c + TILE, :])
        tiles.append(tile)
    return tiles


def convolve(out, x, w, bias, pool):
    """Blocks of rows through all output channels; `pool` 1 or 2 rows and columns to one."""
    height, width = x.shape[1] - 2, x.shape[2] - 2
    block = max(pool, BANK // width // pool * pool)
    weights = load_weights(w)
    biases = []
    for c in range(0, w.shape[3], TILE):
        tile = nl.ndarray((TILE, 1), dtype=nl.float32, buffer=nl.sbuf)
        nisa.dma_copy(dst=tile, src=bias[c : c + TILE, :])
        biases.append(tile)
    for row in range(0, height, block):
        rows = min(block, height - row)
        image = load_channels(x, row, rows + 2)
        for c in range(0, w.shape[3], TILE):
            psum = nl.ndarray((TILE, rows, width), dtype=nl.float32, buffer=nl.psum)
            for i in range(len(image)):
                for dy in range(3):
                    for dx in range(3):
                        nisa.nc_matmul(
                            dst=psum,
                            stationary=weights[i][:, 3 * dy + dx, c : c + TILE],
                            moving=image[i][:, dy : dy + rows, dx : dx + width],
                        )
            tile = nl.ndarray((TILE, rows, width), dtype=out.dtype, buffer=nl.sbuf)
            nisa.activation(dst=tile, op=nl.copy, data=psum, bias=biases[c // TILE])
            if pool == 2:
                tile = pooled(tile)
            first = row // pool
            nisa.dma_copy(dst=out[c : c + TILE, first : first + rows // pool, :], src=tile)


def pooled(tile):
    """[128, rows, columns] to half of each: maxima of row pairs, then of column pairs."""
    channels, rows, columns = tile.shape
    flat = nl.ndarray((channels, rows // 2, columns), dtype=tile.dtype, buffer=nl.sbuf)
    nisa.tensor_tensor(dst=flat, data1=tile[:, 0::2, :], data2=tile[:, 1::2, :], op=nl.maximum)
    small = nl.ndarray((channels, rows // 2, columns // 2), dtype=tile.dtype, buffer=nl.sbuf)
    nisa.tensor_tensor(dst=small, data1=flat[:, :, 0::2], data2=flat[:, :, 1::2], op=nl.maximum)
    return small


@nki.jit
def conv3x3(x, w, bias):
    """out [out, height - 2, width - 2]."""
    shape = (w.shape[3], x.shape[1] - 2, x.shape[2] - 2)
    out = nl.ndarray(shape, dtype=x.dtype, buffer=nl.shared_hbm)
    convolve(out, x, w, bias, pool=1)
    return out


@nki.jit
def conv3x3_pool(x, w, bias):
    """out [out, (height - 2) / 2, (width - 2) / 2]; height and width are even."""
    shape = (w.shape[3], (x.shape[1] - 2) // 2, (x.shape[2] - 2) // 2)
    out = nl.ndarray(shape, dtype=x.dtype, buffer=nl.shared_hbm)
    convolve(out, x, w, bias, pool=2)
    return out
