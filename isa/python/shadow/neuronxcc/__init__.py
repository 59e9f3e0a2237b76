"""The older package of NKI, as trn-sim understands it."""
