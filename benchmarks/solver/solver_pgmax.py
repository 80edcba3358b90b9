"""PGMax as a solver: max-product with damping for a given time, the best of the labellings that it passes through."""

import itertools
import time

import numpy as np
import torch

from accord import FactorField, PairwiseField
from accord.bench.inference._peers import _load_jax, pgmax_missing
from accord.field.factors import from_pairwise, table_blocks, tabulate

BARRED = -1e4  # log-potential of what is forbidden; PGMax computes in float32 and takes no infinities
DAMPING = 0.5
CHUNK = 50  # sweeps between two decodings
NOISE = 0.01  # added to the evidence: without it, beliefs of symmetric fields stay uniform


def missing() -> str | None:
    """Why PGMax cannot run here, or None."""
    return pgmax_missing("cpu")


def _by_shape(field: FactorField) -> dict[tuple[int, ...], tuple[list[list[int]], list[np.ndarray]]]:
    """Scopes and flat tables of all factors by shape; PGMax takes a set of variables only once."""
    tables: dict[tuple[int, ...], torch.Tensor] = {}
    for block in table_blocks(field):
        own = block.tables_of(field)
        for scope, number in zip(block.scope, block.table.tolist(), strict=True):
            order = scope.argsort()
            key, table = tuple(scope[order].tolist()), own[number].permute(*order.tolist())
            tables[key] = tables[key] + table if key in tables else table
    shapes: dict[tuple[int, ...], tuple[list[list[int]], list[np.ndarray]]] = {}
    for scope, table in tables.items():
        scopes, values = shapes.setdefault(tuple(table.shape), ([], []))
        scopes.append(list(scope))
        values.append(table.clamp(min=BARRED).flatten().numpy())
    return shapes


def solve(given: PairwiseField | FactorField, seconds: float, enough: float = np.inf) -> tuple[float, float]:
    """The best score found, or one that is enough, and the seconds it took; compiling is not counted."""
    jax = _load_jax()
    from pgmax import fgraph, fgroup, infer, vgroup

    field = tabulate(from_pairwise(given) if isinstance(given, PairwiseField) else given)
    counts = field.states.numpy()
    variables = vgroup.NDVarArray(num_states=counts, shape=(field.num_nodes,))
    names = variables[:]
    graph = fgraph.FactorGraph(variable_groups=variables)
    for shape, (scopes, values) in _by_shape(field).items():
        configs = np.array(list(itertools.product(*(range(size) for size in shape))))
        variables_of = [[names[variable] for variable in scope] for scope in scopes]
        group = fgroup.EnumFactorGroup(
            variables_for_factors=variables_of, factor_configs=configs, log_potentials=np.stack(values)
        )
        graph.add_factors(group)
    inference = infer.BP(graph.bp_state, temperature=0.0)
    evidence = np.where(np.arange(field.num_states) < counts[:, None], field.node.clamp(min=BARRED).numpy(), 0.0)
    evidence = evidence + NOISE * np.random.default_rng(0).normal(size=evidence.shape)
    state = inference.init(evidence_updates={variables: evidence})
    run = jax.jit(lambda arrays: inference.run(arrays, num_iters=CHUNK, damping=DAMPING))
    jax.block_until_ready(run(state))  # compiles
    best, begun = -float("inf"), time.perf_counter()
    while best < enough and time.perf_counter() - begun < seconds:
        state = jax.block_until_ready(run(state))
        chosen = np.asarray(infer.decode_map_states(inference.get_beliefs(state))[variables])
        labels = torch.from_numpy(chosen.astype(np.int64)).clamp(max=field.num_states - 1)
        best = max(best, float(field.score(labels).sum()))
    spent = time.perf_counter() - begun
    jax.clear_caches()
    return best, spent
