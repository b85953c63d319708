"""A setting that was added later declares the value that programs without it had, so that it changes no cell's identity.

`first_settings.json` has the settings that were there from the beginning, by name of their owner. Names of later owners are not in it,
and have all their settings from their own beginning."""

import json
from pathlib import Path

from program import as_json

FIRST = Path(__file__).with_name("first_settings.json")


def settings():
    """{"kind name": {setting: the value that programs without it had, or None}}"""
    entries = [entry for kind in ("estimators", "models", "tasks", "targets") for entry in as_json("list", kind)]
    return {
        f"{entry['kind']} {entry['name']}": {one["name"]: one["absent"] for one in entry["parameters"]}
        for entry in [*entries, as_json("describe", "sweep")]
    }


def test_added_settings_declare_what_programs_without_them_did():
    now, first = settings(), json.loads(FIRST.read_text())
    checked = 0
    for owner, names in first.items():
        for name, absent in now.get(owner, {}).items():
            assert (name in names) == (absent is None), (
                f"{owner}: {name} is a later addition: declare .absent_means(VALUE), the value that programs without it had"
                if name not in names
                else f"{owner}: {name} was there from the beginning: it declares no absent_means"
            )
            checked += 1
    assert len(first) > 100 and checked > 700
    added = {owner: [name for name, absent in names.items() if absent is not None] for owner, names in now.items()}
    assert "train.start_overlap" in added["sweep sweep"]
