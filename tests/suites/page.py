"""The tables in docs/clients.md, each between two marks."""

from servers import ROOT

PAGE = ROOT / "docs" / "clients.md"


def write_table(name, header, rows):
    """Writes a table in place of the one between the marks of a name."""
    begin, end = f"<!-- {name} -->\n", f"<!-- end of {name} -->\n"
    before, _, rest = PAGE.read_text().partition(begin)
    lines = ["| " + " | ".join(map(str, cells)) + " |" for cells in [header, *rows]]
    lines.insert(1, "|" + "---|" * len(header))
    PAGE.write_text(before + begin + "\n".join(lines) + "\n" + end + rest.partition(end)[2])
