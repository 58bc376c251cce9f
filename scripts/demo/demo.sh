#!/usr/bin/env bash
# make demo: real crond lines, through the bridge and the sidecar, to Runs that a person can read. All of it is in .demo/.
set -euo pipefail
# What the demo lays out is its own; what is installed and built stays as open as its user has it.
usual=$(umask)
umask 077

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
demo=$root/.demo
. "$root/scripts/demo/crond.sh"
sidecar=$root/dist/ql-sidecar/bin/ql-sidecar
data=$demo/panel/data

say() { printf '%s\n' "$*"; }

finish() {
  stop_crond
  [[ -z ${build:-} ]] || kill "$build" 2>/dev/null || :
}
trap finish EXIT
trap 'exit 130' INT TERM

# A stand-in for the panel: its `task` command and its API. The tasks and the data directory are the demo's own.
lay_out() {
  rm -rf "$demo"
  mkdir -p "$demo"
  bash "$root/test/fixtures/panel/make-panel.sh" "$demo/panel" 2.21.0 9
  cp "$root"/scripts/demo/tasks/* "$data/scripts/"
  mkdir "$data/ql-sidecar" "$data/ql-sidecar/spool" "$data/ql-sidecar/notices"
  printf 'QL3_SHADOW_ORIGINS=scheduled_system\n' >"$data/config/ql-sidecar.env"
  printf 'if [ -f %s ]; then . %s; fi\n' "$root/shell/share.sh" "$root/shell/share.sh" >>"$data/config/config.sh"
}

# What the panel writes into the crontab, with the marker that the `crontab` front adds.
write_crontab() {
  local mark='QL_EXECUTION_ORIGIN=scheduled_system real_time=false no_tee=true'
  cat >"$demo/crontab" <<END
* * * * * $mark ID=1 log_name=ok_1 task ok.js
* * * * * $mark ID=2 log_name=fail_2 task fail.js
* * * * * $mark ID=3 log_name=exit3_3 task exit3.sh
* * * * * $mark ID=4 log_name=killed_4 task killed.sh
* * * * * $mark ID=5 log_name=slow_5 task slow.sh
* * * * * sleep 2; $mark ID=5 log_name=slow_5 task slow.sh
END
  printf '%s\n' "PATH=$demo/panel/bin:$PATH" "HOME=$demo" "QL_DIR=$demo/panel" "QL_DATA_DIR=$data" >"$demo/environment"
}

# How many envelopes of this event (1 started, 2 finished) have been written.
written() {
  local files=("$data"/ql-sidecar/spool/*-"$1".json)
  [[ -e ${files[0]} ]] && echo ${#files[@]} || echo 0
}

wait_for_tasks() {
  local end=$((SECONDS + 85))
  while ((SECONDS < end)); do
    (($(written 1) >= 6 && $(written 2) >= 5)) && return
    sleep 0.5
  done
  say "Some tasks have not ended; what is there is shown. See $demo/crond.log"
}

[[ -z $(command -v node) ]] && {
  say 'make demo: node is not found: PATH; install Node 20.19 or later' >&2
  exit 78
}
say "A throw-away data directory: $data"
lay_out
write_crontab
# Installing may take as long as waiting for crond: both at once. The bridge needs nothing that is built.
(cd "$root" && umask "$usual" && make --no-print-directory build >"$demo/build.log" 2>&1) &
build=$!
start_crond "$demo/crontab" "$demo/environment"
if [[ -n $demo_crond ]]; then
  say "$demo_kind runs six lines at the next full minute ($((60 - $(date +%-S))) s); meanwhile ql-sidecar is built."
else
  say "$demo_kind: the lines are run once with the environment of crond instead."
  say 'For a real one, as root: apt-get install busybox-static (Debian), apk add busybox (Alpine).'
  run_lines "$demo/crontab" "$demo/environment"
fi
wait_for_tasks
stop_crond
wait "$build" || {
  tail -n 5 "$demo/build.log" >&2
  say "make demo: build failed: $demo/build.log; see the lines above" >&2
  exit 74
}
build=''

say
say '$ ql-sidecar migrate'
"$sidecar" --data-dir "$data" migrate
say
say '$ ql-sidecar tick'
"$sidecar" tick --data-dir "$data"
say
say '$ ql-sidecar runs'
"$sidecar" runs --data-dir "$data"
lost=$("$sidecar" runs --data-dir "$data" --status lost --json | sed -n '1s/.*"run_id":"\([^"]*\)".*/\1/p')
if [[ -n $lost ]]; then
  say
  say '$ ql-sidecar show: the task that was killed, and how we know'
  "$sidecar" show "$lost" --data-dir "$data"
fi
cat <<END

Cron 3 calls "exit 3" itself: the panel would show it as running for ever. Cron 5 ran twice at once, and both Runs are kept.
Next, from $root:
  ${sidecar#"$root"/} runs --data-dir ${data#"$root"/} --status failed
  ${sidecar#"$root"/} metrics --data-dir ${data#"$root"/}
  make demo-clean
END
