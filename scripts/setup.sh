#!/usr/bin/env bash
# Installs the Debian packages that the build, the tests and the checks need.
set -euo pipefail

packages=(
  # compilers and build
  g++ cmake ninja-build pkg-config ccache git time
  # libraries
  libsystemc-dev libboost-dev libboost-iostreams-dev libyaml-cpp-dev nlohmann-json3-dev
  libfmt-dev libcli11-dev libprotobuf-dev protobuf-compiler
  # the Python face
  pybind11-dev python3-dev
  # tests and benchmarks
  libgtest-dev libgmock-dev libbenchmark-dev librapidcheck-dev
  # fuzzing, format and static checks
  clang-16 libclang-rt-16-dev llvm-16 clang-format-16 clang-tidy-16
  # scripts
  python3 python3-jsonschema python3-protobuf python3-yaml python3-numpy
  python3-matplotlib python3-scipy black
)

usage() {
  cat <<'USAGE'
usage: scripts/setup.sh [--check] [--hook]

Installs what is missing of the Debian 12 packages that trn-sim needs, as root or with sudo.
Does nothing, quickly, when all are there.

  --check   only lists what is missing; exit code 1 when something is
  --hook    also installs scripts/pre-commit as this clone's pre-commit hook

Example: scripts/setup.sh --hook
USAGE
}

check=false
hook=false
for argument in "$@"; do
  case $argument in
    --check) check=true ;;
    --hook) hook=true ;;
    -h | --help) usage; exit 0 ;;
    *) echo "setup.sh: unknown option '$argument'" >&2; usage >&2; exit 2 ;;
  esac
done

if ! command -v dpkg-query > /dev/null; then
  echo "setup.sh: this system has no dpkg; install by hand the equivalents of: ${packages[*]}" >&2
  exit 2
fi

installed=" $(dpkg-query -W -f '${binary:Package} ${db:Status-Status}\n' 2> /dev/null |
  sed -n 's/^\([^ :]*\)[^ ]* installed$/\1/p' | tr '\n' ' ') "
missing=()
for package in "${packages[@]}"; do
  [[ $installed == *" $package "* ]] || missing+=("$package")
done

if $check; then
  ((${#missing[@]} == 0)) || { printf '%s\n' "${missing[@]}"; exit 1; }
  exit 0
fi

if ((${#missing[@]} > 0)); then
  as_root=()
  if [[ $(id -u) != 0 ]]; then
    if ! command -v sudo > /dev/null; then
      echo "setup.sh: needs root or sudo to install: ${missing[*]}" >&2
      exit 2
    fi
    as_root=(sudo)
  fi
  echo "setup.sh: installing ${missing[*]}" >&2
  log=$(mktemp)
  trap 'rm -f "$log"' EXIT
  # A step's output is shown only when it fails.
  quietly() {
    "$@" > "$log" 2>&1 || { cat "$log" >&2; echo "setup.sh: failed: $*" >&2; exit 1; }
  }
  quietly "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q update
  quietly "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
    apt-get -q -y --no-install-recommends install "${missing[@]}"
fi

if $hook; then
  root=$(cd "$(dirname "$0")/.." && pwd)
  cd "$root"
  hooks=$(git rev-parse --git-path hooks)
  mkdir -p "$hooks"
  ln -sf "$root/scripts/pre-commit" "$hooks/pre-commit"
  echo "setup.sh: installed $hooks/pre-commit" >&2
fi
