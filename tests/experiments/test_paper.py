"""The paper's numbers as data: nothing is missing, and what can be checked against other sources agrees."""

from collections import Counter

import pytest

from accord.experiments._paper import paper_numbers, paper_ppi_score, paper_score
from accord.methods import preset_recipe

SIZES = {1: 120, 2: 52, 3: 6, 4: 12, 5: 9, 6: 9, 7: 6, 8: 55, 9: 24, 10: 24, 11: 24, 12: 39, 13: 2}


def test_every_cell_of_every_table_is_there():
    assert Counter(number.table for number in paper_numbers()) == SIZES
    places = [(n.table, n.row, n.data, n.measure) for n in paper_numbers()]
    assert len(set(places)) == len(places)


def test_scores_have_deviations_and_are_percentages():
    for number in paper_numbers():
        scored = number.table in (1, 2, 4, 5, 6, 7, 12, 13)
        assert (number.deviation is not None) == scored
        assert not scored or 30 < number.mean < 100


def test_some_scores_by_hand():
    """Corners of the tables, where a shifted row or column would show."""
    assert paper_score("graph", "gnn", "gcn", "cora*") == (57.26, 0.66)
    assert paper_score("graph", "spn", "gcnii", "pubmed*") == (54.35, 0.64)
    assert paper_score("node", "crf", "gcnii", "cora*") == (35.98, 7.40)
    assert paper_score("graph", "gmnn", "gat", "citeseer*") == (48.46, 1.06)  # the paper's GMNN names no encoder
    assert paper_score("graph", "gnn", "mlp", "cora*") is None and paper_score("graph", "gnn", "gcn", "ppi-1") is None
    assert paper_ppi_score("accuracy", "gnn", "gcn", "ppi-1") == (76.62, 0.10)
    assert paper_ppi_score("f1", "spn", "gcnii", "ppi-20") == (99.02, 0.00)
    assert paper_ppi_score("f1", "crf", "linear", "ppi-10") == (50.17, 0.39)


@pytest.mark.parametrize("table", [9, 10, 11])
def test_preset_paper_has_the_settings_of_the_appendix(table):
    """Tables 9 to 11 were parsed, the presets typed: they must agree."""
    for number in (n for n in paper_numbers() if n.table == table):
        recipe = preset_recipe("paper", number.encoder, benchmark=number.data)
        found = {9: recipe.node.learning_rate, 10: recipe.edge.learning_rate, 11: recipe.grid.sharpness[0]}
        assert found[table] == number.mean
