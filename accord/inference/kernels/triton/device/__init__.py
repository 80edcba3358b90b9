"""Code that runs on the GPU. Nothing here is imported before the first problem is solved there.

`_kernels` holds the kernels that are launched in sweeps, `_tables` the one that lays out edge tables. `_edges` updates
one block of edges, on rows of states in registers (`_rows`), on tiles shared by threads (`_tiles`), or on log-ratios
(`_ratios`).
"""
