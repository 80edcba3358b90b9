import base64

import pytest

from accord.drawing import page


@pytest.mark.parametrize(
    "html",
    [
        page.page("<b>", []),
        page.section("<b>"),
        page.paragraph("<b>"),
        page.paragraph("<b>", "soft"),
        page.caption("<b>"),
        page.table(["<b>"], [["<b>", "1"]], 0),
        page.settings([("<b>", "<b>")]),
        page.picture(b"", b"", "<b>"),
    ],
)
def test_text_cannot_become_markup(html):
    assert "<b>" not in html and "&lt;b&gt;" in html


def test_one_row_of_a_table_is_highlighted():
    html = page.table(["accuracy"], [["GNN", "0.5"], ["SPN", "0.9"]], best=1)
    assert '<tr class="best"><td>SPN</td><td>0.9</td></tr>' in html
    assert "<tr><td>GNN</td><td>0.5</td></tr>" in html
    assert "<th></th><th>accuracy</th>" in html


def test_pictures_are_part_of_the_page():
    html = page.picture(b"light", b"dark", "curves")
    for content in (b"light", b"dark"):
        assert f"data:image/png;base64,{base64.b64encode(content).decode()}" in html
