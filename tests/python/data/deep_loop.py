"""Four loops of 25 x 8 x 32 x 16 iterations: a batch of images, blocks of channels, rows, taps."""

import nki
import nki.isa as nisa
import nki.language as nl

BATCH, BLOCKS, ROWS, TAPS = 25, 8, 32, 16


@nki.jit
def deep(image, weights, batch=BATCH, blocks=BLOCKS, rows=ROWS, taps=TAPS):
    """out[b, o, r] = sum over taps t of weights[o, t].T @ image[b, :, r + t]."""
    width = 64
    out = nl.ndarray((batch, blocks, 128, rows * width), dtype=image.dtype, buffer=nl.shared_hbm)
    for b in range(batch):
        padded = nl.ndarray((128, (rows + taps) * width), dtype=image.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=padded, src=image[b])
        for o in range(blocks):
            block = nl.ndarray((128, taps * 128), dtype=image.dtype, buffer=nl.sbuf)
            nisa.dma_copy(dst=block, src=weights[o])
            result = nl.ndarray((128, rows * width), dtype=image.dtype, buffer=nl.sbuf)
            for r in range(rows):
                psum = nl.ndarray((128, width), dtype=nl.float32, buffer=nl.psum)
                for t in range(taps):
                    start = (r + t) * width
                    nisa.nc_matmul(
                        dst=psum,
                        stationary=block[:, t * 128 : (t + 1) * 128],
                        moving=padded[:, start : start + width],
                    )
                nisa.tensor_copy(dst=result[:, r * width : (r + 1) * width], src=psum)
            nisa.dma_copy(dst=out[b, o], src=result)
    return out
