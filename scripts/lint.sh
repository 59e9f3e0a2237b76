#!/usr/bin/env bash
# Format and clang-tidy checks: the one script that the pre-commit hook and CI run.
set -euo pipefail
cd "$(dirname "$0")/.."

usage() {
  cat <<'USAGE'
usage: scripts/lint.sh [--changed | --staged] [--format-only | --tidy-only] [--sources] [--fix]
                       [--jobs N]

Checks C++ with clang-format-16 and clang-tidy-16, Python with black, shell scripts with bash -n.
Without a selection all files are checked. Files that clang-tidy found clean are remembered.

  --changed      only files that differ from HEAD, and new ones
  --staged       only files in the index that differ from HEAD
  --format-only  no clang-tidy
  --tidy-only    no format checks
  --sources      clang-tidy leaves out the tests
  --fix          rewrites the format instead of checking it
  --jobs N       clang-tidy processes (default: number of processors)

Example: scripts/lint.sh --changed --fix
USAGE
}

select=all
format=true
tidy=true
only_sources=false
fix=false
jobs=$(nproc)
while (($#)); do
  case $1 in
    --changed) select=changed ;;
    --staged) select=staged ;;
    --format-only) tidy=false ;;
    --tidy-only) format=false ;;
    --sources) only_sources=true ;;
    --fix) fix=true ;;
    --jobs) jobs=${2:?--jobs needs a number}; shift ;;
    -h | --help) usage; exit 0 ;;
    *) echo "lint.sh: unknown option '$1'" >&2; usage >&2; exit 2 ;;
  esac
  shift
done

list_files() {
  case $select in
    all)
      git ls-files --cached --others --exclude-standard 2> /dev/null ||
        find . \( -path ./build -o -path ./.git \) -prune -o -type f -printf '%P\n'
      ;;
    changed)
      git diff --name-only --diff-filter=d HEAD
      git ls-files --others --exclude-standard
      ;;
    staged) git diff --cached --name-only --diff-filter=d HEAD ;;
  esac | sort -u
}

cpp=()
python=()
shell=()
while IFS= read -r file; do
  [[ -f $file ]] || continue
  case $file in
    *.h | *.cc) cpp+=("$file") ;;
    *.py) python+=("$file") ;;
    *.sh | .ci/run | scripts/pre-commit) shell+=("$file") ;;
  esac
done < <(list_files)

failed=false

black=(black --quiet --line-length 100)
if $format; then
  if ((${#cpp[@]})); then
    if $fix; then
      clang-format-16 -i "${cpp[@]}"
    else
      for file in "${cpp[@]}"; do
        clang-format-16 "$file" | cmp -s "$file" || {
          echo "$file: not in clang-format's form"
          failed=true
        }
      done
    fi
  fi
  if ((${#python[@]})); then
    if $fix; then
      "${black[@]}" "${python[@]}"
    else
      "${black[@]}" --check --diff "${python[@]}" || failed=true
    fi
  fi
  for script in "${shell[@]}"; do
    bash -n "$script" || failed=true
  done
  $failed && echo "lint.sh: scripts/lint.sh --fix --format-only rewrites the format" >&2
fi

if $tidy; then
  sources=()
  if $only_sources || [[ $select != all ]]; then
    # A header is checked through the source of its name, where there is one.
    for file in "${cpp[@]}"; do
      source=${file%.*}.cc
      $only_sources && [[ $source == tests/* ]] && continue
      [[ -f $source ]] && sources+=("$source")
    done
  fi
  if { [[ $select == all ]] && ! $only_sources; } || ((${#sources[@]})); then
    cmake --preset tidy > /dev/null
    cmake --build --preset tidy --target trn_generated_headers > /dev/null
    scripts/tidy.py --jobs "$jobs" "${sources[@]}" || failed=true
  fi
fi

if $failed; then
  exit 1
fi
