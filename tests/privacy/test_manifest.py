"""The list of trusted modules, in the order to read them, is complete."""

from pathlib import Path

from reticent import privacy


def test_the_reading_order_names_every_module_once():
    root = Path(privacy.__file__).parent
    modules = [path for path in root.rglob("*.py") if path.name != "__init__.py"]
    found = [".".join(path.relative_to(root).with_suffix("").parts) for path in modules]
    assert sorted(privacy.READING_ORDER) == sorted(found)
