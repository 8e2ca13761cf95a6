"""Modules that load others by a name made at run time are known, each with its reason."""

from __future__ import annotations

import ast

# Modules that load others by a name made at run time, and what they load so.
DYNAMIC = {
    "cli": "a command, by its name on the command line",
    "repro.check.kernel.probes": "a probe of a kernel, by the name in a case file",
    "repro.check.probes": "a probe, by the name in a case file",
    "repro.check.probing.child": "of the standard library, what cannot be loaded after the lock",
    "repro.emulation.script": "the script of the user that `sanitize` was asked to run",
    "repro.execution.entries": "what a task runs, by its name in a fixed list",
    "repro.scenarios.registry": "a scenario, by the name in a case file",
    "repro.lanes.reference": "the reference of an op, by its name",
}
LOADERS = {"import_module", "__import__", "run_module", "run_path", "spec_from_file_location"}


def test_modules_are_loaded_by_a_made_up_name_in_known_places_only(
    trees: dict[str, tuple[str, ast.Module]],
) -> None:
    users = {
        module
        for module, (_, tree) in trees.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Name | ast.Attribute)
        and (node.id if isinstance(node, ast.Name) else node.attr) in LOADERS
    }
    assert users == set(DYNAMIC)
