"""Every code that the interpreter can give is explained in docs/warnings.md, and no other."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent


def test_every_code_has_its_row() -> None:
    sources = [*sorted((ROOT / "portability" / "interpret").glob("*.py")), ROOT / "portability" / "backend.py"]
    text = "\n".join(path.read_text() for path in sources)
    given = set(re.findall(r'(?:warn|refuse)\(\s*"([a-z0-9-]+)"', text))
    given |= {f"false-{name}" for name in re.findall(r'_check\(input, values, "([a-z-]+)"', text)}
    given |= set(re.findall(r'"(out-of-\w+|race|store-collision|atomic-order|undefined-lanes|unknown-option)"', text))
    page = (ROOT / "docs" / "warnings.md").read_text()
    assert len(given) > 25
    assert given == set(re.findall(r"^\| `([a-z0-9-]+)` \|", page, re.MULTILINE))
