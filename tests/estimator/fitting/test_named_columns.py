"""A model keeps categories, means and scales of its training columns, and reads new graphs by them."""

import pytest
import torch

from accord import NodeClassifier
from accord.datasets import read_graph, read_graphs
from accord.errors import GraphError, MissingValuesWarning, UnseenCategoriesWarning

EDGES = "source,target,kind,time\nu,v,{},{}\nv,w,road,{}\n"


def write(folder, colours, kind="rail", time=2_000_000, size=("1", "2", "3")):
    folder.mkdir(parents=True)
    rows = zip("uvw", ("cat", "dog", "cat"), colours, size, strict=True)
    (folder / "nodes.csv").write_text("id,label,colour,size\n" + "".join(",".join(row) + "\n" for row in rows))
    (folder / "edges.csv").write_text(EDGES.format(kind, time, 3 * time))
    return folder


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("train")
    write(folder / "a", ("red", "blue", "red"))
    write(folder / "b", ("blue", "grey", ""), kind="road", time=1_000_000)
    write(folder / "c", ("red", "grey", "blue"), kind="road", time=1_500_000)
    graphs = read_graphs(folder)
    return NodeClassifier("spn", "mlp", max_epochs=2, accelerator="cpu").fit(graphs[:2], graphs[2:])


def test_the_columns_are_those_of_training_and_survive_saving(model, tmp_path):
    assert sorted(model.feature_names_) == ["colour is missing", "colour=blue", "colour=grey", "colour=red", "size"]
    model.save(tmp_path / "m")
    loaded = NodeClassifier.load(tmp_path / "m")
    assert loaded.columns_ == model.columns_
    assert loaded.columns_.nodes.fill is not None and loaded.columns_.edges.spread is not None
    new = read_graph(write(tmp_path / "new", ("red", "grey", "blue")))
    assert torch.equal(loaded.predict_proba(new), model.predict_proba(new))


def test_a_new_graph_may_lack_categories(model, tmp_path):
    fewer = read_graph(write(tmp_path / "new", ("red", "red", "red"), kind="road"))
    more = read_graph(write(tmp_path / "same", ("red", "red", "red"), kind="road"))
    more.x = torch.cat([more.x, torch.zeros(3, 1)], 1)
    more.feature_names, more.feature_kinds = [*more.feature_names, "colour=grey"], [*more.feature_kinds, "category"]
    assert torch.equal(model.predict_proba(fewer), model.predict_proba(more))


def test_unknown_categories_are_reported_and_left_out(model, tmp_path):
    unknown = read_graph(write(tmp_path / "new", ("red", "pink", "blue")))
    with pytest.warns(UnseenCategoriesWarning, match=r"'colour' .*'pink' \(at 1\)"):
        found = model.predict_proba(unknown)
    none = unknown.clone()
    keep = [place for place, name in enumerate(none.feature_names) if name != "colour=pink"]
    none.x = none.x[:, keep]
    none.feature_names, none.feature_kinds = (
        [own[k] for k in keep] for own in (none.feature_names, none.feature_kinds)
    )
    assert torch.equal(found, model.predict_proba(none))


def test_a_missing_number_counts_as_the_training_mean(model, tmp_path):
    gap = read_graph(write(tmp_path / "gap", ("red", "red", "red"), size=("1", "", "3")))
    mean = read_graph(write(tmp_path / "mean", ("red", "red", "red"), size=("1", "2", "3")))  # 2 is the mean
    with pytest.warns(MissingValuesWarning, match="'size' is missing at 1 nodes, but never"):
        found = model.predict_proba(gap)
    torch.testing.assert_close(found, model.predict_proba(mean))


def test_edge_attributes_are_matched_by_name_and_scaled(model, tmp_path):
    new = read_graph(write(tmp_path / "new", ("red", "grey", "blue")))
    turned = new.clone()
    order = [2, 0, 1]
    turned.edge_attr = new.edge_attr[:, order]
    turned.edge_names, turned.edge_kinds = ([own[k] for k in order] for own in (new.edge_names, new.edge_kinds))
    assert torch.equal(model.predict_proba(new), model.predict_proba(turned))
    assert model.collate([new]).edge_attr.abs().max() < 5, "times of millions are scaled"


def test_a_column_that_is_not_there_is_refused(model, tmp_path):
    (tmp_path / "new").mkdir()
    (tmp_path / "new" / "nodes.csv").write_text("id,size\nu,1\nv,2\n")
    (tmp_path / "new" / "edges.csv").write_text("source,target,kind,time\nu,v,road,1\n")
    with pytest.raises(GraphError, match="no feature 'colour=blue'"):
        model.predict(read_graph(tmp_path / "new"))


def test_a_graph_without_edges_fits_in(model, tmp_path):
    bare = write(tmp_path / "bare", ("red", "grey", "blue"))
    (bare / "edges.csv").write_text("source,target,kind,time\n")
    whole, empty = read_graph(write(tmp_path / "whole", ("red", "grey", "blue"))), read_graph(bare)
    assert model.predict(empty).shape == (3,)
    fitted = NodeClassifier("gnn", "mlp", max_epochs=0, accelerator="cpu").fit([whole, empty], [empty])
    assert fitted.columns_.edges.names == tuple(whole.edge_names)
