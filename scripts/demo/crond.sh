# shellcheck shell=bash disable=SC2154 # demo: the directory, set by demo.sh
# Finds a crond and runs it on the demo's crontab alone. Sourced by demo.sh.
# Sets demo_crond to the pid of what it started, demo_kind to what runs the lines.

# busybox_crond: prints the command of busybox's crond, or fails.
busybox_crond() {
  if command -v crond >/dev/null && [ "$(basename "$(readlink -f "$(command -v crond)")")" = busybox ]; then
    echo crond
  elif command -v busybox >/dev/null && busybox --list | grep -qx crond; then
    echo 'busybox crond'
  else
    return 1
  fi
}

# start_crond LINES ENVIRONMENT: files with the crontab lines, and with one KEY=VALUE a line.
start_crond() {
  local lines=$1 environment=$2 command user
  user=$(id -un)
  demo_crond=''
  if [ "$(id -u)" != 0 ]; then
    demo_kind='no crond (a crond of our own needs root)'
  elif command=$(busybox_crond); then
    demo_kind='busybox crond'
    mkdir -p "$demo/crontabs"
    cp "$lines" "$demo/crontabs/$user"
    # busybox crond hands its own environment on.
    # shellcheck disable=SC2086,SC2046 # two words on purpose; no value of ours holds a space
    env -i SHELL=/bin/sh $(cat "$environment") $command -f -l 8 -L "$demo/crond.log" -c "$demo/crontabs" &
    demo_crond=$!
  elif command -v cron >/dev/null && command -v unshare >/dev/null && unshare -m true 2>/dev/null; then
    demo_kind="Debian's cron"
    mkdir -p "$demo/crontabs" "$demo/none" "$demo/run"
    cat "$environment" "$lines" >"$demo/crontabs/$user"
    chmod 600 "$demo/crontabs/$user"
    # In a mount namespace of its own it sees no crontab of this machine, and its pid file is no other cron's.
    # shellcheck disable=SC2016 # expanded by the inner shell
    unshare -m sh -c '
      mount --bind "$1/crontabs" /var/spool/cron/crontabs && mount --bind "$1/none" /etc/cron.d &&
        mount --bind /dev/null /etc/crontab && mount --bind "$1/run" /run && exec cron -f' \
      - "$demo" >"$demo/crond.log" 2>&1 &
    demo_crond=$!
  else
    demo_kind='no crond'
  fi
  [ -z "$demo_crond" ] || sleep 1
  if [ -n "$demo_crond" ] && ! kill -0 "$demo_crond" 2>/dev/null; then
    demo_kind="no crond ($demo_kind did not start, see $demo/crond.log)"
    demo_crond=''
  fi
}

# run_lines LINES ENVIRONMENT: what crond would do once, with crond's environment.
run_lines() {
  local line
  while IFS= read -r line; do
    # shellcheck disable=SC2046 # one word per variable
    env -i SHELL=/bin/sh LOGNAME="$(id -un)" $(cat "$2") sh -c "${line#'* * * * * '}" </dev/null >/dev/null 2>&1 &
  done <"$1"
}

stop_crond() {
  [ -z "${demo_crond:-}" ] || kill "$demo_crond" 2>/dev/null || :
  demo_crond=''
}
