"""Planted secrets: none survives. What a report needs: all of it survives, to the letter."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from specrepro.repro.report.redact import Known, redact, redact_record, summary
from specrepro.repro.report.redact_secrets import REMOVED, secret_name

KNOWN = Known("/srv/people/marlene", "marlene", ("gpubox7.example.org", "gpubox7"))
# 36 characters of no meaning: what stands where a service would put its own
BODY = "Zk3Qw9Lm2Xv7Bn4Tr8Yp1Hs6Jd5Fg0Ca3Eu7"

# (text with a secret, the secret in it)
PLANTED = [
    (f"HF_TOKEN=hf_{BODY}", f"hf_{BODY}"),
    (f"login with hf_{BODY}.", f"hf_{BODY}"),
    (f"remote: ghp_{BODY} rejected", f"ghp_{BODY}"),
    (f"github_pat_{BODY}_{BODY}", BODY),
    (f"export OPENAI_API_KEY='sk-proj-{BODY}'", BODY),
    (f"--api-key sk-{BODY} --port 8000", BODY),
    ("--api-key mylittlekey --port 8000", "mylittlekey"),
    ("non-default args: {'api_key': ['mylittlekey'], 'port': 8000}", "mylittlekey"),
    ('{"password": "two words here", "user": 3}', "two words here"),
    ("AWS_ACCESS_KEY_ID=AKIAZQ3WXEC5RVTB7NYU", "AKIAZQ3WXEC5RVTB7NYU"),
    ("AWS_SECRET_ACCESS_KEY: wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", "wJalrXUtnFEMI"),
    (f"Authorization: Bearer {BODY}", BODY),
    ("authorization: Basic dXNlcjpwYXNzd29yZA==", "dXNlcjpwYXNzd29yZA"),
    ("Looking in indexes: https://bot:hunter2@pypi.corp.example/simple", "hunter2"),
    ("git clone https://x-access-token:abc123def@github.com/o/r", "abc123def"),
    ("GET /blob?sv=2024&sig=Ab%2Fcd%3D123&x=1", "Ab%2Fcd"),
    ("https://b.s3.example/k?X-Amz-Signature=0a1b2c3d4e5f&X-Amz-Date=1", "0a1b2c3d4e5f"),
    (f"eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.{BODY}", BODY),
    (f"xoxb-123456789012-{BODY}", BODY),
    (f"nvapi-{BODY}", BODY),
    (f"NGC_API_KEY={BODY}", BODY),
    (f"env: token={BODY}", BODY),
    (f"MY_SERVICE_TOKEN={BODY}", BODY),
    (
        "-----BEGIN RSA PRIVATE KEY-----\nMIIEpAIB\nAAKCAQ\n-----END RSA PRIVATE KEY-----",
        "MIIEpAIB",
    ),
    ("-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXk\ncut", "b3BlbnNzaC1rZXk"),
    ('File "/home/alice/vllm/model.py", line 3', "alice"),
    ("cd /Users/bob; ls", "bob"),
    (r"C:\Users\carol\vllm", "carol"),
    ("model='/srv/people/marlene/models/qwen'", "marlene"),
    ("started by marlene on gpubox7", "marlene"),
    ("started by marlene on gpubox7", "gpubox7"),
    ("Nov 30 02:40:18 trainhost-3 kernel: NVRM: Xid (PCI:0000:3b:00): 31", "trainhost-3"),
    ("2026-11-30T02:40:18+00:00 trainhost-3 vllm[812]: INFO", "trainhost-3"),
    ("hostname: node-a17", "node-a17"),
    ("tcp://ip-10-3-4-5.ec2.internal:29500", "ip-10-3-4-5"),
    ("(RayWorkerWrapper pid=1234, ip=10.12.1.7) INFO", "10.12.1.7"),
    ("distributed_init_method=tcp://192.168.17.4:41234 backend=nccl", "192.168.17.4"),
    ("MASTER_ADDR=10.12.1.7", "10.12.1.7"),
    ("VLLM_HOST_IP=10.12.1.7", "10.12.1.7"),
    ("export RAY_ADDRESS='10.12.1.7'", "10.12.1.7"),
    ("head-node-ip 10.12.1.7", "10.12.1.7"),
    ("init_method=192.168.17.4", "192.168.17.4"),
    ("store at [fe80::1ff:fe23:4567:890a]:29500", "fe80::1ff"),
    ("eth0 link/ether 52:54:00:ab:cd:ef brd", "52:54:00:ab:cd:ef"),
    ("GPU 0: NVIDIA H200 (UUID: GPU-5ad2f0c1-9b7e-4c35-8d3a-0f1e2d3c4b5a)", "9b7e-4c35"),
    (
        "Received request cmpl-1: prompt: 'my diagnosis is', params: SamplingParams(n=1)",
        "diagnosis",
    ),
    ('"messages": [{"role": "user", "content": "my diagnosis"}]', "diagnosis"),
    ("NewRequestData(req_id=a,prompt_token_ids=[101, 2009, 102],mm_features=[])", "2009"),
    ("Authorization: Bearer onlyletters", "onlyletters"),
    ("Authorization: token 0a1b2c3d4e5f", "0a1b2c3d4e5f"),
    ("proxy-authorization: ApiKey onlyletters, Accept: */*", "onlyletters"),
    ("Cookie: theme=dark; sessionid=k3jh4k5; csrftoken=x9", "k3jh4k5"),
    ("curl -s -u admin:hunter2 https://api.example.com/x", "hunter2"),
    ("curl -u me:one --proxy-user you:hunter2 https://api.example.com/x", "hunter2"),
    ("curl --user 'admin:hunter2' https://api.example.com/x", "hunter2"),
    ("PGPASSWORD=hunter2 psql", "hunter2"),
    ("DB_PASS=hunter2", "hunter2"),
    ("ray start --redis-password=5241590000000000", "5241590000000000"),
    (f"gsk_{BODY}{BODY}", BODY),
    (f"https://chat.example/services/T01234567/B01234567/{BODY}", BODY),
    (f"https://chat.example/api/webhooks/123456789012345678/{BODY}", BODY),
    ("node-a17:12345:12399 [0] NCCL INFO Bootstrap : Using eth0", "node-a17"),
    ("(Worker pid=7) node-a17:12345:12399 [0] NCCL INFO comm 0x55", "node-a17"),
    ("\ncarol@node-a17:~/vllm$ vllm serve m", "node-a17"),
    ("\n(venv) [carol@node-a17 vllm]$ vllm serve m", "carol"),
    ("/mnt/home/carol/models/qwen", "carol"),
    ("/lustre/home/carol/models/qwen", "carol"),
    ("Signed-off-by: Carol <carol.smith@mail.example.com>", "carol.smith"),
]

KEPT = [
    "scikit: sk-learn-compatible-estimators",
    "docker run -u 1000:1000 vllm/vllm-openai",
    "memcpy@GLIBC_2.2.5 from libc, @torch.compile, @%p1 bra $L__BB0_2;",
    "git clone git@github.com:vllm-project/vllm.git",
    "flashinfer-python @ git+https://github.com/flashinfer-ai/flashinfer@v0.2.0",
    "Authorization failed for the request",
    "one pass: 1234, num_passes=3, pass_config={}",
    "CUDA error: an illegal memory access was encountered at 0x7f3a_42000000",
    "NVRM: Xid (PCI:0000:3b:00): 31, pid=4211, name=python, Ch 00000008",
    "MMU Fault: ENGINE GRAPHICS GPC0 GPCCLIENT_T1_2 faulted @ 0x7ec9_34000000",
    "sha256 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    "commit 06ac11c7f0d1d6ed1f4d8a2a4e4b6f7d3a5c9e01",
    "vLLM 0.28.0+cu130, torch 2.13.0, triton 3.9.0, driver 580.95.05",
    "nvidia-cudnn-cu12==9.10.2.21",
    "nvidia-cudnn-cu12         9.10.2.21",
    "cuDNN version: 9.10.2.21",
    "NV_CUDNN_VERSION=9.10.2.21\nNVIDIA_REQUIRE_CUDA=cuda>=12.9 brand=unknown,driver>=535",
    "[conda] nvidia-cublas-cu12        12.4.5.8                 pypi_0    pypi",
    "NUMA node0 CPU(s): 0-55,112-167\nNIC0: mlx5_0\nGPU0\tCPU Affinity\tGPU NUMA ID",
    "num_speculative_tokens=3, max_num_batched_tokens: 8192, tokenizer='/models/qwen'",
    "eos_token='</s>' pad_token: '<pad>' token_ids",
    "'speculative_config': {'method': 'mtp', 'num_speculative_tokens': 5}",
    "--tokenizer-mode auto --trust-remote-code --skip-tokenizer-init",
    "key_cache fp16[64, 2, 8], key: (64, 2, 8), kv_cache_dtype=fp8, key_cache[slot] = key[token]",
    "Uvicorn running on http://127.0.0.1:8000 and http://0.0.0.0:8000",
    "void at::native::elementwise_kernel<128, 4, c10::d>(int, T2)",
    "_ZN2at6native27unrolled_elementwise_kernelIZZZNS0_",
    "std::runtime_error: c10::Error at /opt/pytorch/c10/cuda/CUDAException.cpp:43",
    "INFO 11-30 02:40:18 [model.py:1548] Using max model len 262144",
    "10:46:43 engine dead",
    "request prompt=10, new_tokens=2, seed=1",
    "prompt_tokens: 20, Avg prompt throughput: 12.5 tokens/s",
    "api_key=None, hf_token=None, password: null",
    "specrepro run cases/mtp-tail-overflow.yaml --variant faulty --set seq_len=62",
    "https://github.com/vllm-project/vllm/issues/40756 (docs/faults/mtp-tail-overflow.md)",
    "/usr/local/lib/python3.12/dist-packages/vllm/v1/worker/gpu_model_runner.py:2314",
    "#running-req: 3, #token: 812, the bonus token: 1.00, this changes no token: the next one",
    "the auth of a request; a secret kept; password rules",
    "Worker_TP0 rank 0 local_rank=0 host=localhost port=29500",
]


@pytest.mark.parametrize(("text", "secret"), PLANTED)
def test_no_planted_secret_survives(text: str, secret: str) -> None:
    assert secret in text
    done = redact(text, KNOWN)
    assert secret not in done.text
    assert sum(done.removed.values()) >= 1


@pytest.mark.parametrize(("text", "secret"), PLANTED)
def test_a_secret_in_the_middle_of_a_record_does_not_survive(text: str, secret: str) -> None:
    record, removed = redact_record({"log": [{"line": f"before {text}\nafter"}]}, KNOWN)
    said = record["log"][0]["line"]
    assert secret not in said
    assert said.startswith("before ")
    assert removed


@pytest.mark.parametrize("text", KEPT)
def test_what_a_report_needs_stays_to_the_letter(text: str) -> None:
    assert redact(text, KNOWN).text == text
    assert redact_record([text], KNOWN)[0] == [text]


def test_what_was_removed_is_counted_by_kind() -> None:
    done = redact(f"hf_{BODY} from 10.1.2.3 and 10.1.2.4")
    assert done.removed == {"Hugging Face token": 1, "IP address": 2}
    assert summary(done.removed) == "1 × Hugging Face token, 2 × IP address"
    assert summary({}) == "nothing"


def test_the_gpus_of_a_report_can_still_be_told_apart() -> None:
    one = redact("GPU-5ad2f0c1-9b7e-4c35-8d3a-0f1e2d3c4b5a").text
    other = redact("GPU-77d2f0c1-9b7e-4c35-8d3a-0f1e2d3c4b5a").text
    assert (one, other) == ("GPU-5ad2f0c1…", "GPU-77d2f0c1…")


def test_keys_numbers_and_truth_of_a_record_stay() -> None:
    record = {"seed": 3, "prompt": 10, "clean": True, "got": None, "x": [1.5], "hf_token": 7}
    assert redact_record(record, KNOWN) == (record, {})


def test_a_text_under_a_secret_key_goes_whole() -> None:
    record, removed = redact_record({"env": {"WANDB_API_KEY": "short", "PATH": "/usr/bin"}}, KNOWN)
    assert record == {"env": {"WANDB_API_KEY": f"{REMOVED} secret]", "PATH": "/usr/bin"}}
    assert removed == {"value of a secret name": 1}


def test_the_word_behind_an_option_that_is_secret_goes_too() -> None:
    words = ["vllm", "serve", "m", "--api-key", "mylittlekey", "--port", "8000", "--hf-token"]
    record, removed = redact_record({"words": words})
    kept = ["vllm", "serve", "m", "--api-key", "[removed secret]", "--port", "8000", "--hf-token"]
    assert record == {"words": kept}
    assert removed == {"value of a secret name": 1}
    assert redact_record(record)[0] == record


def test_a_user_or_host_with_a_common_name_is_not_a_name() -> None:
    text = "docker run vllm as root on localhost"
    assert redact(text, Known("/srv/admin", "root", ("localhost",))).text == text


def test_the_home_of_a_user_with_a_common_name_is_a_home_too() -> None:
    done = redact("cached in /srv/admin/.cache/vllm", Known("/srv/admin", "root"))
    assert done.text == "cached in ~/.cache/vllm"


@pytest.mark.parametrize(
    "name",
    [
        "num_tokens",
        "tokenizer",
        "max_tokens",
        "key",
        "keys",
        "token_id",
        "eos_token",
        "author",
        "prompt_tokens",
        "key_cache",
    ],
)
def test_names_of_the_field_are_not_secret(name: str) -> None:
    assert not secret_name(name)


@pytest.mark.parametrize(
    "name",
    [
        "token",
        "hfToken",
        "api-key",
        "client.secret",
        "DB_PASSWORD",
        "ACCESS_TOKEN",
        "X-Auth-Token",
        "privateKey",
    ],
)
def test_names_of_secrets_are(name: str) -> None:
    assert secret_name(name)


PIECES = st.one_of(
    st.sampled_from([text for text, _ in PLANTED] + KEPT),
    st.text(max_size=20),
    st.sampled_from(["'", '"', "=", ":", " ", "[", "]", "\n", "@", "://", "--"]),
)


@example("MASTER_ADDR=10.12.1.7/mnt/home/carol/models/qwen")
@given(st.lists(PIECES, max_size=6).map("".join))
def test_to_redact_again_changes_nothing(text: str) -> None:
    once = redact(text, KNOWN)
    assert redact(once.text, KNOWN).text == once.text


@given(st.lists(PIECES, max_size=5), st.sampled_from(PLANTED))
def test_a_token_between_any_lines_does_not_survive(
    around: list[str], planted: tuple[str, str]
) -> None:
    text, secret = planted
    whole = "\n".join([*around, text, *around])
    if not any(secret in piece for piece in around):
        assert secret not in redact(whole, KNOWN).text


@pytest.mark.parametrize("character", ["eyJ", "a.", "1:", *"a0:.-_=[\"'/@ "])
def test_a_long_line_of_one_character_ends(character: str) -> None:
    """Not a time: quadratic work on 400,000 characters would not end in the life of a test run."""
    assert redact(character * 400_000, KNOWN).text is not None
