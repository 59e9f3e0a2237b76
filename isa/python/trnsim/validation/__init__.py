"""`trn-sim validate`: published measurements beside predictions, row by row.

rows: the measurements. inputs: the kernels that they are of. predict: trace and run, with a cache.
score: offsets and errors. apart: what stands outside the averages. pages: pictures. command: the
command line.
"""
