"""Settings of a training run."""

from dataclasses import dataclass

from accord.errors import OptionError

PRECISIONS = ("32-true", "tf32", "bf16-mixed", "64-true")


@dataclass(frozen=True, kw_only=True)
class PartOptions:
    """How one part (the node network, the edge network) is updated; each has its own optimiser."""

    learning_rate: float = 1e-3
    weight_decay: float = 0.0
    label_smoothing: float = 0.0  # of cross-entropies; a field trained as a whole does not use it

    def __post_init__(self) -> None:
        if not (0 < self.learning_rate < float("inf") and 0 <= self.weight_decay < float("inf")):
            raise OptionError(
                f"learning_rate is {self.learning_rate} and weight_decay {self.weight_decay}; "
                "the first must be positive, the second not negative."
            )
        if not 0 <= self.label_smoothing < 1:
            raise OptionError(f"label_smoothing is {self.label_smoothing}; it must lie in [0, 1).")


@dataclass(frozen=True, kw_only=True)
class TrainingOptions:
    """How long to train, in what batches, and when to evaluate on validation data."""

    max_epochs: int = 150
    batch_graphs: int | None = None  # graphs per update; None takes all
    clusters: int | None = None  # divide the training nodes into so many clusters; None trains on whole graphs
    batch_clusters: int = 4  # clusters per update, drawn anew in every epoch; edges between them count
    evaluate_every: int = 5  # epochs between evaluations
    patience: int | None = None  # evaluations without improvement after which a replica stops; None never stops early
    clip_norm: float | None = None  # largest gradient norm of a part; None for any
    checkpoint_every: int = 10  # epochs between checkpoints, if there is a folder
    deterministic: bool = False  # the same bits in every run on the same machine, also on a GPU
    # "tf32": products of float32 on tensor cores; "bf16-mixed": networks in bfloat16; "64-true": in float64 while they
    # are trained, to compare runs whose sums differ in order
    precision: str = "32-true"
    cuda_graphs: bool = True  # record updates on a GPU and replay them, where possible
    accelerator: str = "auto"  # Lightning Fabric's names: "cpu", "cuda", "auto"
    devices: int = 1  # processes of each machine, one device each, which a launcher has started
    nodes: int = 1  # machines; the graphs of each batch are divided among all processes

    def __post_init__(self) -> None:
        for name in ("max_epochs", "batch_clusters", "evaluate_every", "checkpoint_every", "devices", "nodes"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < (0 if name == "max_epochs" else 1):
                raise OptionError(
                    f"TrainingOptions: {name} is {value!r}; a whole number is needed, not negative for "
                    "max_epochs and positive for the others."
                )
        for name in ("batch_graphs", "clusters", "patience"):
            value = getattr(self, name)
            if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 1):
                raise OptionError(f"TrainingOptions: {name} is {value!r}; None or a positive whole number is needed.")
        if self.precision not in PRECISIONS:
            raise OptionError(f"TrainingOptions: precision {self.precision!r} is unknown. Choose one of {PRECISIONS}.")
        if not isinstance(self.cuda_graphs, bool):
            raise OptionError(f"TrainingOptions: cuda_graphs is {self.cuda_graphs!r}; True or False is needed.")
        if self.clip_norm is not None and not self.clip_norm > 0:
            raise OptionError(f"TrainingOptions: clip_norm is {self.clip_norm}; None or a positive number is needed.")
        if self.clusters is not None and self.processes > 1:
            raise OptionError(
                f"TrainingOptions: clusters={self.clusters} with {self.processes} processes. A batch of clusters is "
                "one graph, which is not divided. Set clusters=None, or devices=1 and nodes=1."
            )

    @property
    def processes(self) -> int:
        """How many processes train together."""
        return self.devices * self.nodes


@dataclass(frozen=True, kw_only=True)
class RefinementOptions:
    """Refinement by the maximin game of networks that have been trained on the proxy problem."""

    learning_rate: float = 1e-5  # of both networks
    max_epochs: int = 50

    def __post_init__(self) -> None:
        if isinstance(self.learning_rate, bool) or not isinstance(self.learning_rate, (int, float)):
            raise OptionError(f"RefinementOptions: learning_rate is {self.learning_rate!r}; a number is needed.")
        if not 0 < self.learning_rate < float("inf"):
            raise OptionError(f"RefinementOptions: learning_rate is {self.learning_rate}; it must be positive.")
        if isinstance(self.max_epochs, bool) or not isinstance(self.max_epochs, int) or self.max_epochs < 0:
            raise OptionError(f"RefinementOptions: max_epochs is {self.max_epochs!r}; a whole number is needed.")
