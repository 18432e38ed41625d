"""Translation models of several families, behind one interface (`interface`).

Imports kernels, `dragoman.data` (batches) and options; never training, decoding or serving. Add an
attention in `attention`, a layer in `layers`, a family beside `transformer`, and choose it in
`build`.
"""
