"""What a kernel is compiled for."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Form:
    """The properties that a kernel is compiled for."""

    states: int
    ratios: bool  # two states and no -inf: messages are log-ratios, see device/_ratios.py
    padded: int  # `numbers` rounded up to a power of two: the length of a row of totals
    width: int  # edges that a program processes at once
    warps: int  # warps of a program
    block: int  # edges whose numbers are interleaved in memory
    stride: int  # numbers from one row of an edge to the next
    tiled: bool  # the threads of a warp share the rows of an edge; otherwise one thread holds them all in registers
    rows: int  # rows of each table processed at once, if threads share them
    starts: tuple[int, ...]  # first states of the chunks that a row is stored in
    sizes: tuple[int, ...]  # number of states of each chunk
    nodes: int  # nodes whose totals are set at once: one vector for each thread
    vector: int  # numbers in 16 bytes, or in a row of totals if that is less
    count_vector: int  # the same for counts of infinities
    best: bool  # max-product
    linear: bool  # sums of exp(potential); otherwise sums in log space, which are safe for any table
    barred: bool  # there may be -inf
    weighted: bool  # edge appearance is not 1 everywhere
    damped: bool
    many: bool  # more than one graph
    runs: bool  # edges are sorted by source, and many share one
    atomic: bool  # messages are added to totals in any order; otherwise in the same order in every run
    cached: bool  # totals fit in the cache if everything else is evicted first

    @property
    def numbers(self) -> int:
        """How many numbers a message or a total has."""
        return 1 if self.ratios else self.states

    @property
    def columns(self) -> int:
        """The stride rounded up to a power of two."""
        return 1 << (self.stride - 1).bit_length()

    @property
    def lanes(self) -> int:
        """Threads of a program."""
        return 32 * self.warps

    @property
    def message(self) -> int:
        """Numbers from one message of an edge to the other."""
        return 1 if self.ratios else self.stride

    @property
    def keep(self) -> str:
        """Eviction policy for totals, which are scattered and read many times in a sweep."""
        return "evict_last" if self.cached else ""

    @property
    def stream(self) -> str:
        """Eviction policy for tables, messages and indices, which are read once in a sweep."""
        return "evict_first" if self.cached else ""
