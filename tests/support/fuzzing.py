"""Calls of public functions with broken arguments, drawn from seeded generators.

A case is one call: valid arguments, of which none, one or a few are then broken. The same target and number always give
the same case, so `draw_case("propagate", 17).run()` repeats a failure.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from support.breaking import (
    BAD_COUNTS,
    COUNTS,
    DATA,
    EDGES,
    ENDLESS,
    FACTORS,
    FIELDS,
    FORMS,
    NUMBERS,
    OPTIONS,
    OUTSIDE,
    POTENTIALS,
    SAMPLES,
    SEMIRINGS,
    SIZES,
    SWEEPS,
    VALID,
    WHOLE,
    Arguments,
    Breaker,
    Random,
    across,
    emptied,
    one_of,
    poked,
    scalar,
    too_short,
    wrong_object,
)
from support.valid_arguments import (
    batch_of,
    build_data,
    carry_arguments,
    classifier_arguments,
    combination_arguments,
    combine,
    data_arguments,
    ego_arguments,
    egos_arguments,
    features_arguments,
    field_arguments,
    fit_and_predict,
    fit_arguments,
    forbid_arguments,
    gibbs_arguments,
    labelling_arguments,
    logits_arguments,
    potentials_arguments,
    probabilities_arguments,
    propagate_arguments,
    resolve,
    sample_arguments,
    search_arguments,
    symmetrise_arguments,
    topology_arguments,
    with_field,
)
from torch import Tensor

import accord
from accord import PairwiseField
from accord.field import Pseudomarginals, symmetrise
from accord.graphs import ego_network, ego_networks, graph_topology, topology
from accord.graphs._checks import check_features
from accord.inference import eliminate_beliefs, find_labels, maximise, possible_states, sample_exact, sample_gibbs

# Where, what, and how to fix it ("not an int" is a fix, too). Errors about a setting may begin with the setting itself.
MESSAGE = re.compile(
    r"([A-Za-z_.]+: |(encoder|level|method|preset|There is) ).+(\. |; |, but |, not an? ).+\.", re.DOTALL
)
BROKEN_COUNTS = (0, 1, 2, 3)  # arguments that are broken in a case
BROKEN_WEIGHTS = (4, 60, 24, 12)  # how often, in percent


@dataclass(frozen=True)
class FuzzTarget:
    """One public function, its valid arguments, and the breakers of each argument."""

    cases: int
    call: Callable[..., object]
    valid: Callable[[Random], Arguments]
    breakers: dict[str, Sequence[Breaker]]


@dataclass(frozen=True)
class Case:
    """One call."""

    target: str
    number: int
    call: Callable[..., object]
    arguments: Arguments
    done: tuple[str, ...]  # what was broken, and how

    def run(self) -> object:
        return self.call(**self.arguments)

    def __str__(self) -> str:
        listed = "\n".join(f"  {name} = {describe(value)}" for name, value in self.arguments.items())
        return f'fuzzing.draw_case("{self.target}", {self.number}), broken: {list(self.done)}\n{listed}'


def draw_case(name: str, number: int, broken: int | None = None) -> Case:
    """Case `number` of a target, with `broken` arguments broken; None breaks a random number of them."""
    rng = Random(f"{name} {number}")
    target = TARGETS[name]
    arguments = target.valid(rng)
    done = []
    for _ in range(rng.choices(BROKEN_COUNTS, BROKEN_WEIGHTS)[0] if broken is None else broken):
        argument = rng.choice(list(target.breakers))
        breaker = rng.choice(target.breakers[argument])
        arguments[argument] = breaker(rng, arguments[argument], arguments)
        done.append(f"{argument}: {getattr(breaker, '__name__', breaker)}")
    return Case(name, number, target.call, arguments, tuple(done))


def describe(value: object) -> str:
    if isinstance(value, Tensor):
        kind = f"{value.dtype} {list(value.shape)} on {value.device}, {value.layout}"
        plain = value.layout == torch.strided and not value.is_meta and value.numel() <= 40
        return f"tensor({value.tolist()}, {kind})" if plain else f"tensor({kind})"
    if isinstance(value, (PairwiseField, Pseudomarginals)):
        return f"{type(value).__name__}({', '.join(f'{k}={describe(v)}' for k, v in vars(value).items())})"
    return "ENDLESS" if isinstance(value, int) and abs(value) >= ENDLESS else repr(value)[:200]


TARGETS: dict[str, FuzzTarget] = {
    "PairwiseField": FuzzTarget(
        2400,
        PairwiseField,
        field_arguments,
        {"edge_index": EDGES, "node": POTENTIALS, "edge": POTENTIALS, "graph": WHOLE, "num_graphs": COUNTS},
    ),
    "PairwiseField.to": FuzzTarget(
        200,
        lambda field, target: field.to(target),
        lambda rng: with_field(rng, target=rng.choice(["cpu", torch.device("cpu"), torch.float32, torch.float64])),
        {
            "target": [
                one_of("unknown", "nowhere", "cuda:99", "meta", torch.device("meta"), torch.float16, torch.int64),
                one_of("complex", torch.complex64, torch.bool, 99, -1),
                wrong_object,
            ]
        },
    ),
    "PairwiseField.clamp": FuzzTarget(
        800, lambda field, labels: field.clamp(labels), labelling_arguments, {"labels": WHOLE}
    ),
    "PairwiseField.score": FuzzTarget(
        800, lambda field, labels: field.score(labels), labelling_arguments, {"labels": WHOLE}
    ),
    "PairwiseField.forbid": FuzzTarget(
        800,
        lambda field, pairs, edges, symmetric: field.forbid(pairs, edges, symmetric),
        forbid_arguments,
        {
            "pairs": [
                *WHOLE,
                one_of("bad list", [(0, 1), (1,)], [(0, 9)], [(-1, 0)], [(0.5, 1)], [0], "ab", ["ab"], [(2**70, 0)]),
                one_of("bad triple", [(0, 0, 0)], [(None, 0)], [(True, False)], [[(0, 1)]], [("a", "b")], 7),
            ],
            "edges": WHOLE,
            "symmetric": [wrong_object],
        },
    ),
    "PairwiseField.with_potentials": FuzzTarget(
        800,
        lambda field, node, edge: field.with_potentials(node, edge),
        potentials_arguments,
        {"node": POTENTIALS, "edge": POTENTIALS},
    ),
    "propagate": FuzzTarget(2400, accord.propagate, propagate_arguments, {"field": FIELDS, **OPTIONS}),
    "enumerate_beliefs": FuzzTarget(
        300,
        accord.enumerate_beliefs,
        lambda rng: with_field(rng, semiring=rng.choice(["sum", "max"])),
        {"field": FIELDS, "semiring": SEMIRINGS},
    ),
    "eliminate_beliefs": FuzzTarget(
        300,
        eliminate_beliefs,
        lambda rng: with_field(rng, semiring=rng.choice(["sum", "max"]), max_table=2**22),
        {"field": FIELDS, "semiring": SEMIRINGS, "max_table": COUNTS},
    ),
    "possible_states": FuzzTarget(200, possible_states, with_field, {"field": FIELDS}),
    "find_labels": FuzzTarget(
        400, find_labels, search_arguments, {"field": FIELDS, "preference": POTENTIALS, "max_revisions": SWEEPS}
    ),
    "maximise": FuzzTarget(
        200,
        maximise,
        lambda rng: with_field(rng, budget=rng.choice([0.01, 0.02]), seed=rng.choice([0, 7])),
        {
            "field": FIELDS,
            "budget": [one_of("bad budget", "long", None, -1.0, 0, float("nan"), float("inf"), [], 1j, True)],
            "seed": [one_of("bad seed", "zero", None, -1, 1.5, 2**64, True, [1], torch.tensor(2))],
        },
    ),
    "sample_exact": FuzzTarget(
        300,
        sample_exact,
        sample_arguments,
        {"field": FIELDS, "num_samples": SAMPLES},
    ),
    "sample_gibbs": FuzzTarget(
        400,
        sample_gibbs,
        gibbs_arguments,
        {"field": FIELDS, "num_samples": SAMPLES, "sweeps": SWEEPS, "start": WHOLE},
    ),
    "topology": FuzzTarget(
        1000,
        topology,
        topology_arguments,
        {"edge_index": [*WHOLE, across], "num_nodes": COUNTS, "graph": WHOLE, "num_graphs": COUNTS},
    ),
    "Topology.carry": FuzzTarget(
        200,
        lambda graph, attributes: graph.carry(attributes),
        carry_arguments,
        {"attributes": [*FORMS, too_short, scalar, emptied]},
    ),
    "graph_topology": FuzzTarget(
        400,
        lambda **parts: graph_topology(build_data(**parts)),
        data_arguments,
        {**{name: DATA[name] for name in ("edge_index", "num_nodes", "kind")}, "x": FORMS},
    ),
    "graph_topology (batch)": FuzzTarget(
        300,
        lambda **parts: graph_topology(build_data(**parts)),
        lambda rng: {**data_arguments(rng), "kind": batch_of},
        {**DATA, "y": WHOLE},
    ),
    "ego_network": FuzzTarget(
        300,
        lambda node, **parts: ego_network(build_data(**parts), node),
        ego_arguments,
        {**DATA, "node": [one_of("bad node", -1, 99, 2**70, 1.0, "1", None, True, torch.tensor(0))]},
    ),
    "ego_networks": FuzzTarget(
        300,
        lambda nodes, **parts: ego_networks(build_data(**parts), nodes),
        egos_arguments,
        {**DATA, "nodes": [*WHOLE, one_of("bad nodes", [-1], [99], [2**70], [0.5], ["a"], 7, [[0]], [None])]},
    ),
    "check_features": FuzzTarget(
        400,
        check_features,
        features_arguments,
        {"x": [*FORMS, *SIZES, *VALID, *NUMBERS], "num_nodes": [one_of("other count", 7, 9)]},
    ),
    "Pseudomarginals.from_logits": FuzzTarget(
        800,
        Pseudomarginals.from_logits,
        logits_arguments,
        {"node": POTENTIALS, "edge": POTENTIALS, "sharpness": FACTORS},
    ),
    "Pseudomarginals.from_probabilities": FuzzTarget(
        600,
        Pseudomarginals.from_probabilities,
        probabilities_arguments,
        {name: [*POTENTIALS, poked("improbable", -0.1, 1.1, 2.0)] for name in ("node", "edge")},
    ),
    "Combination.field": FuzzTarget(
        1000,
        combine,
        combination_arguments,
        {
            "node": POTENTIALS,
            "edge": POTENTIALS,
            "marginals": [wrong_object],
            "normaliser": [one_of("unknown", "rows", "", 3, None, b"own", [], {}, 1.5)],
            "power": FACTORS,
            "node_weight": FACTORS,
            "edge_index": EDGES,
            "graph": WHOLE,
            "num_graphs": COUNTS,
        },
    ),
    "symmetrise": FuzzTarget(
        400,
        symmetrise,
        symmetrise_arguments,
        {name: [*FORMS, *SIZES, *VALID] for name in ("forward", "backward")},
    ),
    "NodeClassifier": FuzzTarget(
        500,
        resolve,
        classifier_arguments,
        {
            "method": [one_of("unknown", "svm", "", "SPN ", None, 3, ["spn"], {})],
            "encoder": [one_of("unknown", "resnet", "", None, 3, ["gcn"], {}), wrong_object],
            "level": [one_of("unknown", "edge", "", None, 3, ["node"], {})],
            "seed": [one_of("bad seed", -1, 1.5, "3", True, None, float("nan"), [3], 1j, torch.tensor([1, 2]))],
            "preset": [one_of("unknown", "none", "", None, 3, ["accord"], {})],
            "benchmark": [one_of("unknown", "corra", "", 3, ["cora"], {}, "ppi-7")],
            "num_states": [one_of("bad count", *BAD_COUNTS[:5], ENDLESS * -1, float("nan"), [3], 1j)],
            "label_names": [one_of("bad names", "ab", [1, 2], 3, [None], [["a"]], object())],
            "task_names": [one_of("bad names", "ab", [1, 2], 3, [None], [["a"]], object())],
            "accelerator": [one_of("unknown", "abacus", "", None, 3, ["cpu"], {})],
            "features": [one_of("unknown", "bleached", "RAW", "", None, 3, ["raw"], {}, torch.ones(2))],
            "max_epochs": [one_of("bad count", -1, 1.5, "3", True, float("nan"), [3], 1j)],
            "ensemble": [one_of("bad count", 0, -1, 1.5, "3", True, None, float("nan"), [3], 1j)],
            "refit": [one_of("not a switch", None, 1, 0.0, "yes", [True], torch.ones(2))],
        },
    ),
    "NodeClassifier.fit": FuzzTarget(
        200,
        fit_and_predict,
        fit_arguments,
        {
            **{name: breakers for name, breakers in DATA.items() if name != "num_nodes"},
            "y": [*FORMS, *SIZES, OUTSIDE],
            "feature_names": [one_of("bad names", [], ["a"], ["a", "a"], ["a", "b", "c"], "ab c", 3, [1, 2], object())],
            "label_names": [one_of("bad names", [], ["a"], ["a", "b", "c"], "ab", 3, [1, 2])],
            "task_names": [one_of("bad names", [], ["a", "b"], "a", 3, [1])],
            "features": [one_of("unknown", "bleached", "", None, 3, ["raw"])],
        },
    ),
}
