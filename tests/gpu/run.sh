#!/bin/sh
# Everything worth doing once an NVIDIA GPU is at hand, in one call of at most eight minutes.
#
#   tests/gpu/run.sh --fetch DIR [--light]           beforehand, where there is a network
#   tests/gpu/run.sh [--wheels DIR] [--out DIR] [--seconds N] [--only PART]... [--case ID]...
#                    [--rounds N]                    on the machine
#
# --fetch    builds a folder of wheels for this Python and platform: 385 MiB with the compilers,
#            51 MiB without (--light), where the driver compiles the shipped PTX.
# --wheels   installs from that folder, without a network, into a new environment in the scratch
#            folder; that took 15 s (light) to 49 s on two cores. Else specrepro and pytest are
#            taken from the Python of PYTHON, or python3.
# --out      where the small JSON files go (default: gpu-results, which must not exist or be empty).
# --seconds  of all of it (default 460).
# --only     this part: selftest, tests, cases or benchmark. One alone has no limit of its own.
#            doctor is always asked.
# --case     of the part cases this one (default: all that are shipped).
# --rounds   of the benchmark, at most (default 5).
#
# Exit status: 0 all that was looked at came out as it must; 1 some of it did not, or was cut; 125 no
# GPU lane can run here, or nothing could be installed; 2 usage; 128 + N ended by signal N, and what
# was gathered stays. What did not fit into the time is in DIR/session.json.
# `python tests/gpu/page.py DIR` makes the page of docs/gpu/ of it.
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
python=${PYTHON:-python3}
out=gpu-results wheels= fetch= light= seconds=460 rounds=5 only=

say() { printf '%s\n' "run.sh: $*" >&2; }
usage() { say "$*; run.sh --help says what there is"; exit 2; }

while [ $# -gt 0 ]; do
  case $1 in
    -h | --help) sed -n '2,/^set /{/^#/s/^# \{0,1\}//p;}' "$0"; exit 0 ;;
    --light) light=1; shift ;;
    --fetch | --wheels | --out | --seconds | --rounds | --only | --case)
      [ $# -gt 1 ] || usage "$1 needs a value"
      case $1 in
        --fetch) fetch=$2 ;;
        --wheels) wheels=$2 ;;
        --out) out=$2 ;;
        --seconds) seconds=$2 ;;
        --rounds) rounds=$2 ;;
        --case)
          case $2 in
            '' | *[!a-z0-9-]*) usage "$2 is no id of a case" ;;
            *) only="$only --case $2" ;;
          esac ;;
        --only)
          case $2 in
            selftest | tests | cases | benchmark) only="$only --only $2" ;;
            *) usage "no part is called $2" ;;
          esac ;;
      esac
      shift 2 ;;
    *) usage "unknown option $1" ;;
  esac
done
for number in "$seconds" "$rounds"; do
  case $number in '' | *[!0-9]*) usage "--seconds and --rounds need a whole number" ;; esac
done
[ -z "$light" ] || [ -n "$fetch" ] || usage "--light goes with --fetch"
if ! "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))'; then
  say "$python is no Python 3.11 or newer; PYTHON names another"
  exit 125
fi

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
# shellcheck disable=SC2086 # the words of --only and --case are several
set -- --out "$out" --seconds "$seconds" --rounds "$rounds" $only
[ -z "$wheels" ] || set -- "$@" --wheels "$wheels"
exec "$python" "$root/tests/gpu/session.py" "$@" # which gets the signals, and cleans up
