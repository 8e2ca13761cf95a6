"""An engine behind its own HTTP server, on this machine alone: asked as a user asks, and no closer.

Steps cannot be seen from here, nor what the engine says of its configuration; its metrics and its
log can.
"""

from __future__ import annotations

import http.client
import ipaddress
import json
import os
import re
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from typing import Any

HOST = str(ipaddress.IPv4Address(socket.INADDR_LOOPBACK))
METRIC = re.compile(
    r"^vllm:(spec_decode_num_[a-z_]+?|generation_tokens)_total\{(.*)\} ([0-9.e+]+)$"
)
POSITION = re.compile(r'position="(\d+)"')
SETTLE = 10.0  # seconds that counters may lag behind answers
FLAGS = ("skip_tokenizer_init", "enforce_eager")
SWITCHES = ("enable_prefix_caching", "async_scheduling")
VALUES = ("max_model_len", "max_num_seqs", "max_num_batched_tokens", "block_size", "dtype", "seed")
OBJECTS = ("hf_overrides", "speculative_config")


def command(arguments: dict[str, Any], port: int, name: str) -> list[str]:
    """The command line that says what the keywords of `vllm.LLM` say; `name` is the model's."""
    words = [sys.executable, "-I", "-u", "-m", "vllm.entrypoints.openai.api_server"]
    words += ["--model", arguments["model"], "--served-model-name", name]
    words += ["--host", HOST, "--port", str(port)]
    for name, value in arguments.items():
        option = "--" + name.replace("_", "-")
        if name in FLAGS:
            words += [option] if value else []
        elif name in SWITCHES:
            words.append(option if value else "--no-" + option[2:])
        elif name in OBJECTS:
            words += [option, json.dumps(value)]
        elif name in VALUES:
            words += [option, str(value)]
        elif name not in ("model", "disable_log_stats"):
            raise RuntimeError(f"{name} cannot be said to a server")
    return words


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])


def taken(port: int) -> bool:
    """Whether somebody listens on a port of this machine."""
    with socket.socket() as probe:
        probe.settimeout(5)
        return probe.connect_ex((HOST, port)) == 0


class Server:
    """Starts a server and waits until it answers; RuntimeError if it ends before, or if its port
    was taken by another one meanwhile. A port is free when it is chosen, and nobody holds it then.
    """

    def __init__(self, job: dict[str, Any], seen: Any) -> None:
        self.seen = seen
        port = job.get("port") or free_port()
        self.url = f"http://{HOST}:{port}"
        # by this a server of somebody else's is told from ours
        self.name = f"specrepro-{os.urandom(6).hex()}"
        # no proxy of the user's stands between two processes of one machine
        self.opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        self.process = subprocess.Popen(command(job["arguments"], port, self.name))
        while True:
            status = self.process.poll()
            if status is not None:
                reason = f"the server ended with status {status} before it was ready"
                if taken(port):
                    reason += f"; port {port} was taken by another process meanwhile"
                raise RuntimeError(reason)
            if self.ready():
                return
            time.sleep(0.2)

    def ready(self) -> bool:
        """Whether the server that answers is ours."""
        try:
            self.get("/health")
            models = json.loads(self.get("/v1/models"))["data"]
            return any(model["id"] == self.name for model in models)
        except (OSError, http.client.HTTPException, ValueError, KeyError, TypeError):
            return False

    def get(self, path: str) -> str:
        with self.opener.open(self.url + path, timeout=30) as answer:
            return str(answer.read().decode())

    def about(self) -> dict[str, Any]:
        models = json.loads(self.get("/v1/models"))["data"]
        return {
            "served": True,
            "vllm": json.loads(self.get("/version")).get("version"),
            "target_max_model_len": models[0].get("max_model_len"),
        }

    def run(self, name: str, requests: list[dict[str, Any]]) -> dict[str, Any]:
        """Ask for all of `requests` at once; what came back, as it is written."""
        before = self.counters()
        answers: dict[str, Any] = {}
        threads = [threading.Thread(target=self.ask, args=(r, answers)) for r in requests]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        failed = next((a for a in answers.values() if isinstance(a, Exception)), None)
        if failed is not None:
            raise failed
        said = sum(len(tokens) for tokens in answers.values())
        after = self.settled(before.get("generation_tokens", 0) + said)
        metrics = {
            key.replace("spec_decode_num_", ""): difference(before.get(key), value)
            for key, value in after.items()
            if key != "generation_tokens"
        }
        line = {
            "batch": name,
            "prompts": {r["id"]: len(r["prompt"]) for r in requests},
            "steps": [],
            "tokens": answers,
            "stuck": False,
            "metrics": metrics,
        }
        self.seen.add("batch", **line)
        return line

    def ask(self, request: dict[str, Any], answers: dict[str, Any]) -> None:
        body = {
            "model": self.name,
            "prompt": request["prompt"],
            "max_tokens": request["new"],
            "temperature": 0,
            "ignore_eos": True,
            "detokenize": False,
            "return_token_ids": True,
        }
        headers = {"Content-Type": "application/json"}
        asked = urllib.request.Request(  # noqa: S310  # a server of ours
            self.url + "/v1/completions", json.dumps(body).encode(), headers
        )
        try:
            with self.opener.open(asked, timeout=600) as answer:
                tokens = json.loads(answer.read())["choices"][0]["token_ids"]
            answers[request["id"]] = [int(token) for token in tokens]
        except urllib.error.HTTPError as error:
            said = error.read(400).decode(errors="replace")
            answers[request["id"]] = RuntimeError(f"the server answered {error.code}: {said}")
        except (OSError, ValueError, KeyError, TypeError) as error:
            answers[request["id"]] = RuntimeError(f"no answer of the server: {error!r}")

    def counters(self) -> dict[str, Any]:
        """Counters by name; those of a position as a list."""
        found: dict[str, Any] = {}
        for text in self.get("/metrics").splitlines():
            match = METRIC.match(text)
            if match and (place := POSITION.search(match[2])):
                values = found.setdefault(match[1], [])
                values += [0] * (int(place[1]) + 1 - len(values))
                values[int(place[1])] = int(float(match[3]))
            elif match:
                found[match[1]] = int(float(match[3]))
        return found

    def settled(self, generated: int) -> dict[str, Any]:
        """Counters once they hold every token that was answered."""
        deadline = time.monotonic() + SETTLE
        while True:
            found = self.counters()
            if found.get("generation_tokens", 0) >= generated:
                return found
            if time.monotonic() > deadline:
                raise RuntimeError("the metrics of the server lag behind its answers")
            time.sleep(0.05)


def difference(before: Any, after: Any) -> Any:
    """What a counter, or each of a list of them, rose by."""
    if isinstance(after, list):
        return [a - b for a, b in zip(after, before or [0] * len(after))]  # noqa: B905  # Python 3.9
    return after - (before or 0)
