#!/bin/sh
# npm ci, with one line of help when the native SQLite module can neither be downloaded nor built.
set -eu

if ! command -v npm >/dev/null 2>&1; then
  echo 'make install: npm is not found: PATH; install Node 20.19 or later with npm' >&2
  exit 78
fi
if npm ci --no-audit --no-fund --loglevel=error; then exit 0; fi
echo 'make install: npm ci failed: see the lines above; to build SQLite it needs python3, make and a C++ compiler' >&2
echo '  Debian: apt-get install python3 make g++    Alpine: apk add python3 make g++' >&2
exit 74
