"""How much decoding searches. All amounts are of work, never of time, so that labels are the same in every call."""

WORK = 5e-5  # seconds of work for each node of a graph, on a usual machine; native/maximise.cpp adds some for edges
PATIENCE = 4.0  # seconds of work until a component without an allowed labelling is given up
WAYS = 1 | 4  # elimination and local search: bounds and proofs are of no use in decoding
UNLIMITED = 1e9  # seconds: the amount of work ends the search
SEED = 0
