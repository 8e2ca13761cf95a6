#!/bin/sh
# Everything worth doing once an NVIDIA GPU is at hand, in one call of at most eight minutes.
#
#   tests/gpu/run.sh --fetch DIR [--light]           beforehand, where there is a network
#   tests/gpu/run.sh [--wheels DIR] [--out DIR] [--seconds N] [--only PART]...   on the machine
#
# --fetch    builds a folder of wheels for this Python and platform: 385 MiB with the compilers,
#            51 MiB without (--light), where the driver compiles the shipped PTX.
# --wheels   installs from that folder, without a network, into a new environment in the scratch
#            folder. Else specrepro and pytest are taken from the Python of PYTHON, or python3.
# --out      where the small JSON files go (default: gpu-results, which must not exist or be empty).
# --seconds  of all of it (default 460).
# --only     this part, without a limit of its own: selftest, benchmark, tests or cases. doctor is
#            always asked.
#
# Exit status: 0 all came out as it must; 1 some of it did not; 125 no GPU lane can run here, or
# nothing could be installed. What did not fit into the time is in DIR/session.json.
# `python tests/gpu/page.py DIR` makes the page of docs/gpu/ of it.
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
python=${PYTHON:-python3}
out=gpu-results wheels= fetch= light= seconds=460 only=
began=$(date +%s)

say() { printf '%s\n' "run.sh: $*" >&2; }

while [ $# -gt 0 ]; do
  case $1 in
    --light) light=1; shift ;;
    --fetch | --wheels | --out | --seconds | --only)
      [ $# -gt 1 ] || { say "$1 needs a value"; exit 2; }
      case $1 in
        --fetch) fetch=$2 ;;
        --wheels) wheels=$2 ;;
        --out) out=$2 ;;
        --seconds) seconds=$2 ;;
        --only) only="$only --only $2" ;;
      esac
      shift 2 ;;
    *) say "unknown option $1"; exit 2 ;;
  esac
done
case $seconds in '' | *[!0-9]*) say "--seconds needs a whole number"; exit 2 ;; esac

if [ -n "$fetch" ]; then
  wanted="$root[gpu,check]"
  [ -z "$light" ] || wanted="$root[check] cuda-bindings nvidia-cuda-sanitizer-api"
  # shellcheck disable=SC2086 # the words of --light are several
  "$python" -m pip wheel -q -w "$fetch" -c "$root/tests/constraints.txt" \
    $wanted pytest hypothesis setuptools
  rm -f "$fetch"/specrepro-*.whl # the checkout itself is installed, as it is then
  du -sm "$fetch" | awk '{print "run.sh: " $1 " MiB of wheels"}' >&2
  exit 0
fi

if [ -e "$out" ] && [ -n "$(ls -A "$out")" ]; then
  say "$out is not empty"
  exit 2
fi
mkdir -p "$out"
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
if [ -n "$wheels" ]; then
  install() { "$scratch/venv/bin/python" -m pip install -q --no-index --no-deps "$@"; }
  if ! {
    "$python" -m venv "$scratch/venv" && install --no-compile "$wheels"/*.whl &&
      install --no-build-isolation -e "$root"
  } >"$scratch/log" 2>&1; then
    say "the wheels cannot be installed:"
    tail -n 5 "$scratch/log" >&2
    exit 125
  fi
  python=$scratch/venv/bin/python
fi
left=$((seconds - ($(date +%s) - began)))
status=0
# shellcheck disable=SC2086 # the words of --only are several
"$python" "$root/tests/gpu/session.py" --out "$out" --seconds "$left" --scratch "$scratch" $only ||
  status=$?
exit "$status"
