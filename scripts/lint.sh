#!/bin/sh
# make lint: types, the one-way import rule, shell scripts. Each tool that is missing is named; none is skipped in silence.
set -eu

npx tsc --noEmit
npx eslint --max-warnings=0 .
scripts=$(find shell scripts test -type f \( -name '*.sh' -o -path 'shell/ql-sidecar' \) -not -path 'test/fixtures/panel/*')
for tool in shellcheck shfmt; do
  if ! command -v "$tool" >/dev/null 2>&1; then
    echo "make lint: $tool is not found: PATH; install it (Debian: apt-get install $tool)" >&2
    exit 78
  fi
done
# shellcheck disable=SC2086 # one word per file: none has a space
shellcheck -x $scripts .ci/run
# shellcheck disable=SC2086 # one word per file, as above
shfmt -i 2 -ci -d $scripts .ci/run
