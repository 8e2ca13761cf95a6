"""A stand-in for the HTTP server of vLLM, around the stand-in of its engine."""

import argparse
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from vllm import LLM, SamplingParams, __version__

LOCK = threading.Lock()


def options():
    parser = argparse.ArgumentParser()
    for name in ("model", "served-model-name", "host", "dtype"):
        parser.add_argument(f"--{name}")
    for name in ("port", "max-model-len", "max-num-seqs", "seed"):
        parser.add_argument(f"--{name}", type=int)
    for name in ("hf-overrides", "speculative-config"):
        parser.add_argument(f"--{name}", type=json.loads)
    for name in ("skip-tokenizer-init", "enforce-eager"):
        parser.add_argument(f"--{name}", action="store_true")
    parser.add_argument("--enable-prefix-caching", action=argparse.BooleanOptionalAction)
    return vars(parser.parse_args())


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        llm = self.server.llm
        if self.path == "/metrics":
            lines = [f'vllm:generation_tokens_total{{engine="0"}} {float(self.server.said)}']
            for metric in llm.get_metrics():
                for place, value in enumerate(getattr(metric, "values", ())):
                    labels = f'engine="0",position="{place}"'
                    lines.append(f"{metric.name}_total{{{labels}}} {float(value)}")
                if hasattr(metric, "value"):
                    lines.append(f'{metric.name}_total{{engine="0"}} {metric.value}')
            self.answer("\n".join(lines))
        else:
            length = self.server.options["max_model_len"]
            name = self.server.options["served_model_name"]
            bodies = {
                "/health": "",
                "/version": json.dumps({"version": __version__}),
                "/v1/models": json.dumps({"data": [{"id": name, "max_model_len": length}]}),
            }
            self.answer(bodies[self.path])

    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        sampling = SamplingParams(
            asked["max_tokens"], asked["temperature"], asked["ignore_eos"], asked["detokenize"]
        )
        engine, tokens = self.server.llm.llm_engine, []
        with LOCK:  # one after the other: what the neighbour feels is not seen over HTTP
            engine.add_request("r", {"prompt_token_ids": asked["prompt"]}, sampling)
            while engine.has_unfinished_requests():
                [out] = engine.step()
                tokens = list(out.outputs[0].token_ids)
            self.server.said += len(tokens)
        self.answer(json.dumps({"choices": [{"token_ids": tokens}]}))

    def answer(self, text):
        self.send_response(200)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, *args):
        """Nothing."""


if __name__ == "__main__":
    given = options()
    llm = LLM(**given)
    server = ThreadingHTTPServer((given["host"], given["port"]), Handler)
    server.llm, server.options, server.said = llm, given, 0
    server.serve_forever()
