from accord.app.scores import PART_TITLES, format_score, score_rows


def test_tables_leave_out_metrics_that_no_part_has():
    columns, rows = score_rows(
        {"gnn": {"node_accuracy": 0.5, "ece": None}, "ceiling": {"node_accuracy": 1.0}}, PART_TITLES
    )
    assert columns == ["node accuracy"]
    assert rows == [["GNN", "50.0 %"], ["ceiling", "100.0 %"]]
    assert format_score("node_accuracy", None) == "-"
