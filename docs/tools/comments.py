"""Fields of dataclasses in the API reference: the comment at the end of a field's line becomes its description."""

import re

import griffe

COMMENT = re.compile(r"\s{2}# (.+)$")
SPECIAL = re.compile(r"([\[*<])")  # shapes such as [*replicas, nodes] are not Markdown


class FieldComments(griffe.Extension):
    """Reads `name: type  # comment` where a field has no docstring."""

    def on_attribute_instance(self, *, attr: griffe.Attribute, **kwargs: object) -> None:
        """Describe one field."""
        if attr.docstring is not None or not isinstance(attr.parent, griffe.Class) or not attr.source:
            return
        found = COMMENT.search(attr.source.splitlines()[-1])
        if found:
            text = SPECIAL.sub(r"\\\1", found[1])
            attr.docstring = griffe.Docstring(text, lineno=attr.endlineno, parent=attr)
