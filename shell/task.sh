#!/usr/bin/env bash
# Mount: laid over the panel's task.sh together with share.sh (DESIGN 4.3). The panel's own task.sh, kept in
# QL_UPSTREAM_SHELL_DIR, runs in this very process; it sources $QL_DIR/shell/share.sh, which is ours, and that one
# takes the marker out of the environment before anything else runs.

# shellcheck source=/dev/null
. "${QL_UPSTREAM_SHELL_DIR:-${QL_SIDECAR_DIR:-${QL_DATA_DIR:-${QL_DIR-}/data}/ql-sidecar}/upstream}/task.sh"
