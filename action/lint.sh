#!/usr/bin/env bash
# What action.yml runs: lints what a workflow is about, annotates the lines, writes the summary of the job.
#
# Everything comes in as variables, INPUT_… from action.yml and GITHUB_… and RUNNER_… from the runner, and is
# only ever used in quotes. What may hold words of the repository is printed between `stop-commands` lines, so
# that no file name and no line of code is taken for a command to the runner. Bash 3.2, as on macOS, is enough.

set -euo pipefail

# A workflow command takes its data up to the end of the line.
escaped() {
  local text=$1 return=$'\r' newline=$'\n'
  text=${text//[%]/%25}
  text=${text//$return/%0D}
  text=${text//$newline/%0A}
  printf '%s' "$text"
}

fail() {
  printf '::error title=torchlint::%s\n' "$(escaped "$1")"
  exit 2
}

# Print a file without the runner's obeying anything in it.
show() {
  [[ -s $1 ]] || return 0
  local token
  token=torchlint-$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')
  printf '::stop-commands::%s\n' "$token"
  cat -- "$1"
  printf '\n::%s::\n' "$token"
}

# Whether input $1, whose value is $2, is on; anything but true and false is a mistake.
enabled() {
  case $2 in
    true) return 0 ;;
    false) return 1 ;;
    *) fail "$1 should be true or false, not '$2'" ;;
  esac
}

find_python() {
  local name
  for name in ${INPUT_PYTHON:+"$INPUT_PYTHON"} python3 python; do
    if command -v -- "$name" >/dev/null; then
      python=$name
      return
    fi
    [[ -z $INPUT_PYTHON ]] || fail "there is no Python '$INPUT_PYTHON'"
  done
  fail 'there is no python3; set one up with actions/setup-python'
}

# Split $2, the value of input $1, as a shell would, into the array `words`. Nothing is expanded.
split() {
  words=()
  local word
  # -I: a shlex.py of the repository is not the one meant.
  TEXT=$2 "$python" -I -c '
import os, shlex, sys
for word in shlex.split(os.environ["TEXT"]):
    sys.stdout.buffer.write(os.fsencode(word) + b"\0")
' >"$scratch/words" 2>/dev/null || fail "$1 has a quote that is not closed: $2"
  while IFS= read -r -d '' word; do
    words+=("$word")
  done <"$scratch/words"
}

# Set `torchlint` to the program to run.
find_torchlint() {
  if ! enabled install "$INPUT_INSTALL"; then
    torchlint=$(command -v -- torchlint) || fail 'install is false, and there is no torchlint on the PATH'
    return
  fi
  local home=$RUNNER_TEMP/torchlint-environment bin
  if [[ ! -d $home ]]; then
    "$python" -I -m venv "$home" >"$scratch/log" 2>&1 || { show "$scratch/log"; fail "$python makes no environment"; }
  fi
  bin=$home/bin
  [[ -d $bin ]] || bin=$home/Scripts
  # What torchlint needs comes from the index as pinned, what it is built with too; nothing else is fetched.
  python=$bin/python
  install --require-hashes --requirement "$action/action/requirements.txt"
  install --no-index --no-deps --no-build-isolation "$action"
  torchlint=$bin/torchlint
}

install() {
  "$python" -I -m pip install --quiet --disable-pip-version-check "$@" >"$scratch/log" 2>&1 ||
    { show "$scratch/log"; fail 'torchlint cannot be installed; it needs Python 3.10 or newer'; }
}

git_quietly() {
  git --no-pager "$@" >/dev/null 2>&1
}

# Set `base` to the commit that changes are counted from; empty if all lines count.
find_base() {
  base=
  case $INPUT_CHANGED_ONLY in
    false) return ;;
    true) ;;
    auto)
      if [[ -z $INPUT_BASE ]] && { [[ -z ${GITHUB_BASE_REF:-} ]] || [[ $INPUT_SARIF == true ]]; }; then
        return
      fi
      ;;
    *) fail "changed-only should be auto, true or false, not '$INPUT_CHANGED_ONLY'" ;;
  esac
  if [[ -n $INPUT_BASE ]]; then
    base=$INPUT_BASE
  elif [[ -z ${GITHUB_BASE_REF:-} ]]; then
    fail 'only a pull request has a base of its own; say with the input base what changes are counted from'
  elif [[ ${GITHUB_REF:-} == refs/pull/*/merge && $(git rev-parse HEAD 2>/dev/null) == "${GITHUB_SHA:-}" ]]; then
    # HEAD merges the pull request into its base. A shallow clone has to be told of the parents first.
    git_quietly rev-parse --verify 'HEAD^1^{commit}' ||
      git_quietly fetch --no-tags --no-recurse-submodules --depth=2 origin "$GITHUB_SHA" || true
    base=$(git rev-parse --verify --quiet 'HEAD^1^{commit}') ||
      fail 'the base of the pull request is not in this clone; set fetch-depth: 0 of actions/checkout'
  else
    base=refs/remotes/origin/$GITHUB_BASE_REF
    git_quietly rev-parse --verify "$base^{commit}" ||
      git_quietly fetch --no-tags --no-recurse-submodules origin "+refs/heads/$GITHUB_BASE_REF:$base" || true
  fi
}

main() {
  : "${INPUT_SRC=.}" "${INPUT_ARGS=}" "${INPUT_CHANGED_ONLY=auto}" "${INPUT_BASE=}" "${INPUT_FAIL_ON=}"
  : "${INPUT_SUMMARY=true}" "${INPUT_SARIF=false}" "${INPUT_CACHE=true}" "${INPUT_INSTALL=true}"
  : "${INPUT_PYTHON=}"
  action=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd)
  : "${RUNNER_TEMP:=${TMPDIR:-/tmp}}"
  scratch=$(mktemp -d "$RUNNER_TEMP/torchlint.XXXXXX")
  # What the workflow sets for other steps is not for this one.
  unset TORCHLINT_OUTPUT_FILE TORCHLINT_OUTPUT_FORMAT
  if enabled cache "$INPUT_CACHE"; then
    export TORCHLINT_CACHE_DIR=$RUNNER_TEMP/torchlint-cache
  fi

  find_python
  split args "$INPUT_ARGS"
  local arguments=(${words[@]+"${words[@]}"})
  split src "$INPUT_SRC"
  local paths=(${words[@]+"${words[@]}"})

  arguments+=(--color never --report "github=$scratch/annotations")
  if enabled summary "$INPUT_SUMMARY"; then
    arguments+=(--report "markdown=$scratch/summary")
  fi
  if enabled sarif "$INPUT_SARIF"; then
    arguments+=(--report "sarif=$scratch/torchlint.sarif")
  fi
  case $INPUT_FAIL_ON in
    '') ;;
    never) arguments+=(--exit-zero) ;;
    note | warning | error) arguments+=(--fail-on "$INPUT_FAIL_ON") ;;
    *) fail "fail-on should be note, warning, error or never, not '$INPUT_FAIL_ON'" ;;
  esac
  find_base
  if [[ -n $base ]]; then
    arguments+=("--changed-since=$base")
    # torchlint fetches nothing; a clone without blobs gets those that are going to be compared.
    if git_quietly config --get-regexp '^remote\..*\.promisor$'; then
      git_quietly diff --merge-base --end-of-options "$base" -- || true
    fi
  fi
  find_torchlint

  local status=0
  "$torchlint" check "${arguments[@]}" -- ${paths[@]+"${paths[@]}"} >"$scratch/log" 2>&1 || status=$?
  show "$scratch/log"
  if [[ -f $scratch/annotations ]]; then
    cat -- "$scratch/annotations"
  fi
  if [[ -f $scratch/summary && -n ${GITHUB_STEP_SUMMARY:-} ]]; then
    cat -- "$scratch/summary" >>"$GITHUB_STEP_SUMMARY"
  fi
  if [[ -f $scratch/torchlint.sarif && -n ${GITHUB_OUTPUT:-} ]]; then
    printf 'sarif=%s\n' "$scratch/torchlint.sarif" >>"$GITHUB_OUTPUT"
  fi
  if [[ $status -gt 1 ]]; then
    fail "torchlint failed with status $status; the log says why"
  fi
  exit "$status"
}

main
