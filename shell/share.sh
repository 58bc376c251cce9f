# shellcheck shell=bash
# The bridge: gives an execution of the panel a stable ID and writes one envelope when it starts and one when it
# ends (DESIGN 4.1 to 4.4, docs/PROTOCOL.md). It runs inside other people's scripts, so it prints nothing, leaves
# no option, trap or variable of theirs changed, never fails them, and forks only with QL_SIDECAR_URL.
#
# Two ways in, the same file. Hook: sourced at the end of the panel's config.sh. Mount: laid over the panel's own
# share.sh; then the original is sourced first. exec.sh uses it as a library (QLB_LIBRARY=1).
#
# What costs: a task of the panel forks dozens of times, and each fork pays for the memory that bash has touched since
# the last one. So what every task needs is short and comes first, and the rest is not even parsed until it is needed.

if [[ -n ${QL_DIR-} && -z ${QLB_LIBRARY-} && ${BASH_SOURCE[0]-} == "$QL_DIR/shell/share.sh" ]]; then
  # shellcheck source=/dev/null
  . "${QL_UPSTREAM_SHELL_DIR:-${QL_SIDECAR_DIR:-${QL_DATA_DIR:-$QL_DIR/data}/ql-sidecar}/upstream}/share.sh"
fi

# Who starts nothing pays nothing: bash parses a sourced file command by command.
if [[ -z ${QL_EXECUTION_ORIGIN+x}${QL_TASK_REVISION+x}${QL_RUN_ID+x}${QL_CALLBACK_TOKEN+x}${QLB_LIBRARY-} ]] &&
  [[ -z ${QL_ATTEMPT_ID+x}${QL_CALLBACK_SEQUENCE+x}${QL_CALLBACK_TOKEN_FILE+x} && ${QLB_PID-} != "$$" ]]; then
  if [[ -z ${SERVICE_TYPE-} || -z ${ID-} ]] ||
    [[ -z ${QL3_SHADOW_ORIGINS-} && ! -f ${dir_data:-${QL_DATA_DIR:-${QL_DIR-}/data}}/config/ql-sidecar.env ]]; then
    \builtin return 0
  fi
fi

# State of another process that came with the environment is not ours, and what is assigned below must not be exported.
# Where one of our names is read-only we stand aside: an assignment would end the caller's command.
if [[ ${QLB_PID-} != "$$" ]]; then
  if ! \builtin unset -v QLB_PID QLB_FILE QLB_AT QLB_STATE QLB_ORIGIN QLB_REVISION QLB_BASHPID QLB_LEARNS QLB_MAIN QLB_EXIT_WAS \
    QLB_DIR QLB_URL QLB_TOKEN QLB_HEAD QLB_LOG QLB_STARTED_AT QLB_STEM QLB_KEPT QLB_OPTIONS 2>/dev/null; then
    \builtin unset -v QL_EXECUTION_ORIGIN QL_TASK_REVISION QL_RUN_ID QL_ATTEMPT_ID QL_CALLBACK_SEQUENCE \
      QL_CALLBACK_TOKEN QL_CALLBACK_TOKEN_FILE QL_SIDECAR_TOKEN 2>/dev/null || \builtin return 0
    \builtin return 0
  fi
fi

# Under `set -a` all of this would be exported to the task, and an alias of the caller be expanded in the functions below.
if [[ $- == *a* ]]; then
  \builtin set +a
  QLB_OPTIONS=a
fi
if \builtin shopt -q expand_aliases; then
  QLB_OPTIONS=${QLB_OPTIONS-}x
  \builtin shopt -u expand_aliases
fi
QLB_PID=$$

# A task that calls `task` again must not look like a second execution, and secrets are not for user code (4.1).
if [[ -z ${QLB_STATE-} ]]; then
  QLB_FILE=${BASH_SOURCE[0]} QLB_ORIGIN=${QL_EXECUTION_ORIGIN-} QLB_REVISION=${QL_TASK_REVISION-}
fi
builtin unset -v QL_EXECUTION_ORIGIN QL_TASK_REVISION QL_RUN_ID QL_ATTEMPT_ID QL_CALLBACK_SEQUENCE QL_CALLBACK_TOKEN \
  QL_CALLBACK_TOKEN_FILE 2>/dev/null || builtin :

# Runs qlb_<verb> with options, IFS and locale of our own; the caller's come back on return. Status: the verb's. In the
# verbs `local … || return` stands aside where one of those names is read-only.
qlb_run() {
  # shellcheck disable=SC2319 # the caller's $? is meant
  local - qlb_status=$? qlb_nocase='' || builtin return 0
  local IFS=$' \t\n' LC_ALL=C
  builtin set +aefuvxnCET +o pipefail
  if builtin shopt -q nocasematch; then
    qlb_nocase=on
    builtin shopt -u nocasematch
  fi
  "qlb_$1" "${@:2}"
  qlb_status=$?
  [[ -z $qlb_nocase ]] || builtin shopt -s nocasematch
  builtin return "$qlb_status"
}

# Defines what only an unusual task needs: once, and at its start, since this file can be replaced while it runs.
qlb_rest() {
  local IFS='' qlb_n qlb_lines=() || return 0
  ! builtin declare -F qlb_notice >/dev/null || return 0
  builtin mapfile -s "$QLB_AT" qlb_lines <"$QLB_FILE"
  for ((qlb_n = 0; qlb_n < 99; qlb_n++)); do
    [[ ${qlb_lines[qlb_n]-} != '#:'* ]] || builtin eval "${qlb_lines[*]:qlb_n}"
  done
}

# Decides whether this process is an execution, and puts a line of ours at the head of the panel's start and end
# functions; changes nothing when either is not what we know. Called once, at the end of this part.
qlb_hook() {
  local qlb_first='' qlb_second='' qlb_third='' qlb_text='' qlb_data || return 0
  if [[ -z ${QLB_STATE-} ]]; then
    # Both halves read the environment, else ql-sidecar.env (DESIGN 13). -f: a pipe in that place would hold the task up.
    qlb_data=${dir_data:-${QL_DATA_DIR:-${QL_DIR:+$QL_DIR/data}}}
    qlb_data=${qlb_data:-/ql/data}
    QLB_STATE=off QLB_DIR=${qlb_data%/}/ql-sidecar QLB_URL=
    [[ ! -f $qlb_data/config/ql-sidecar.env ]] ||
      builtin read -r -N 65536 qlb_text <"$qlb_data/config/ql-sidecar.env"
    if [[ -z $QLB_ORIGIN || -n ${QL_SIDECAR_DIR+x}${QL_SIDECAR_URL+x}${QL_SIDECAR_TOKEN+x} ]] ||
      [[ $'\n'$qlb_text == *$'\n'*([$' \t\r'])QL_SIDECAR_* ]]; then
      qlb_rest
      qlb_settings
    fi
    [[ $QLB_ORIGIN == @(manual|scheduled_system|scheduled_node|boot|subscription|system|script) ]] || return 0
    QLB_STATE=armed
    # The panel's own maintenance commands run in a script that calls no task function (QINGLONG-2X).
    [[ ${0##*/} != @(ql|update.sh) ]] || qlb_start ql
  fi
  [[ $QLB_STATE == armed && ${0##*/} != @(ql|update.sh) ]] || return 0
  qlb_capture 'declare -f handle_task_start' 'declare -f handle_task_end' 'builtin trap -p EXIT'
  [[ $qlb_first != *qlb_run* ]] || return 0
  if [[ $qlb_first == 'handle_task_start () '*$'\n{ '*update_cron*$'\n}'* ]] &&
    [[ $qlb_second == 'handle_task_end () '*$'\n{ '*update_cron*$'\n}'* ]] &&
    builtin eval "${qlb_first%%$'\n{ '*}
{ qlb_run start 2>/dev/null || builtin :
${qlb_first#*$'\n{ '}
${qlb_second%%$'\n{ '*}
{ qlb_run end \"\$@\" 2>/dev/null || builtin :
${qlb_second#*$'\n{ '}"; then
    # Since 2.21 the panel learns the exit code itself.
    QLB_LEARNS=
    [[ $qlb_second != *_task_exit_code* || -n ${_task_exit_code+x} ]] || QLB_LEARNS=on
    qlb_watch "$qlb_third"
  else
    qlb_rest
    qlb_unknown handle_task_start "$qlb_first" handle_task_end "$qlb_second"
  fi
}

# Runs up to three commands (our own text) and puts what they print into the caller's qlb_first, qlb_second, qlb_third
# without a fork: an unlinked here-document file is written through /proc and read back. Never a pipe, which could
# block: bash 5.1 on makes one for short documents, 5.2 not under compatibility 50, 5.1 not above 64 KiB.
qlb_capture() {
  local qlb_pad='' qlb_done='' || return 0
  if ((BASH_VERSINFO[0] * 100 + BASH_VERSINFO[1] >= 502)) && [[ -z ${BASH_COMPAT-} ]]; then
    local BASH_COMPAT=50
  elif ((BASH_VERSINFO[0] * 100 + BASH_VERSINFO[1] >= 501)); then
    builtin printf -v qlb_pad '%66000s' ''
  fi
  # In memory where that is to be had: it spares a flash disk.
  if [[ -w /dev/shm ]]; then local TMPDIR=/dev/shm; fi
  {
    if [[ -f /proc/self/fd/0 ]] &&
      builtin eval "$1; builtin printf '\\0'; ${2:-:}; builtin printf '\\0'; ${3:-:}" >|/proc/self/fd/0; then
      builtin read -r -d '' qlb_first && qlb_done=on
      builtin read -r -d '' qlb_second
      builtin read -r -d '' qlb_third
    fi
  } <<QLB
$qlb_pad
QLB
  if [[ -z $qlb_done ]]; then
    qlb_rest
    qlb_capture_with_forks "$@"
  fi
}

# Sets the one EXIT trap, in front of what is there ($1 as `trap -p` prints it): a sourced task that exits never comes to
# the panel's own end.
qlb_watch() {
  local qlb_was='' || return 0
  [[ $1 != 'trap -- '*' EXIT'* ]] || qlb_was=${1#trap -- }
  builtin eval "QLB_EXIT_WAS=${qlb_was% EXIT*}"
  QLB_BASHPID=$BASHPID
  # Both branches, so that the old trap finds its own $? and is under `set -e` as before.
  # shellcheck disable=SC2016
  builtin trap 'if qlb_run exit "$BASH_COMMAND" 2>/dev/null; then builtin eval "${QLB_EXIT_WAS-}"
else builtin eval "${QLB_EXIT_WAS-}"; fi' EXIT
}

# The panel's task starts, or a `ql …` line ($1 is ql): the ID is made and the envelope written.
qlb_start() {
  # What the ledger takes: 1 to 2^53-1.
  [[ ${QLB_STATE-} == armed ]] && qlb_is_count "${ID-}" 16 && ((ID > 0 && ID <= 9007199254740991)) || return 0
  if [[ ${1-} == ql ]]; then
    qlb_open "\"cron_id\":$ID" '' '' || return 0
    qlb_rest
    qlb_watch_ql
  else
    qlb_open "\"cron_id\":$ID" "${begin_timestamp-}" "${log_path-}" || return 0
    # Left of a pipe the trap of the shell that was hooked does not run, and none of the caller's either.
    [[ $BASHPID == "$QLB_BASHPID" ]] || qlb_watch ''
    if [[ -z $QLB_LEARNS ]]; then
      qlb_rest
      qlb_watch_main
    fi
  fi
  qlb_deliver 1 '"event":"started"'
}

# Whether $1 is a decimal number without leading zeros, of at most $2 digits. No regular expression runs in a task's
# normal course: compiling one costs more than the rest of a check.
qlb_is_count() {
  [[ -n $1 && $1 != *[!0-9]* && ${#1} -le $2 && ($1 != 0* || $1 == 0) ]]
}

# Makes the execution: $1 what it is (JSON), $2 its start second, $3 its log path. Fails when there can be no ID.
qlb_open() {
  local qlb_uuid='' qlb_boot='' qlb_host='' qlb_own='' qlb_init='' qlb_log=$3 qlb_kind=$QLB_ORIGIN qlb_n || return 1
  builtin read -r qlb_uuid </proc/sys/kernel/random/uuid
  builtin read -r qlb_boot </proc/sys/kernel/random/boot_id
  builtin read -r qlb_host </proc/sys/kernel/hostname
  [[ ! -r /proc/$$/stat ]] || builtin read -r -d '' qlb_own <"/proc/$$/stat"
  [[ ! -r /proc/1/stat ]] || builtin read -r -d '' qlb_init </proc/1/stat
  # Field 22; the name in field 2 can hold blanks and parentheses.
  qlb_own=${qlb_own##*) } qlb_init=${qlb_init##*) }
  for qlb_n in 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21; do
    qlb_own=${qlb_own#* } qlb_init=${qlb_init#* }
  done
  qlb_own=${qlb_own%% *} qlb_init=${qlb_init%% *}
  QLB_STARTED_AT=$2
  if [[ $qlb_uuid != ????????-????-4???-[89ab]???-???????????? || ${qlb_uuid//-/}${qlb_boot//-/} == *[!0-9a-f]* ]] ||
    [[ $qlb_boot != ????????-????-????-????-???????????? || $qlb_host == *[!a-zA-Z0-9._-]* || ${#qlb_host} -gt 253 ]] ||
    [[ $qlb_own == *[!0-9]* || $qlb_init == *[!0-9]* || $3 == *[!a-zA-Z0-9._/-]* || ${#3} -gt 1024 || $2 != [1-9]* ]] ||
    [[ $2 == *[!0-9]* || ${#2} -gt 12 || ${#qlb_own} -gt 15 || ${#qlb_init} -gt 15 || -z $qlb_host ]] ||
    [[ -n $QLB_REVISION && ($QLB_REVISION != sha256:* || ${#QLB_REVISION} != 71 || ${QLB_REVISION:7} == *[!0-9a-f]*) ]]; then
    qlb_rest
    qlb_mend || return 1
  fi
  case $qlb_kind in
    scheduled_*) qlb_kind=${qlb_kind#scheduled_} ;;
    system) qlb_kind=internal ;;
  esac
  QLB_KEPT='' QLB_STEM=$QLB_STARTED_AT-$qlb_uuid QLB_LOG=${qlb_log:+,\"log_path\":\"$qlb_log\"}
  QLB_HEAD="{\"v\":1,\"execution_id\":\"legacy-$qlb_kind:$QLB_STARTED_AT:$qlb_uuid\",\"origin\":\"$QLB_ORIGIN\",$1,\
\"pid\":$$${QLB_REVISION:+,\"task_revision\":\"$QLB_REVISION\"}${qlb_own:+,\"pid_start_ticks\":$qlb_own}\
${qlb_boot:+,\"boot_id\":\"$qlb_boot\"}${qlb_host:+,\"host\":\"$qlb_host\"}${qlb_init:+,\"init_start_ticks\":$qlb_init}\
,\"started_at\":$QLB_STARTED_AT"
  QLB_STATE=open QLB_BASHPID=$BASHPID
}

# Delivers envelope $1 (1 start, 2 finish) with the fields $2: posted when there is a URL, else or after that spooled.
qlb_deliver() {
  local qlb_now qlb_now_ms=${EPOCHREALTIME-} qlb_line=$2 qlb_mask='' qlb_key || return 0
  # The decimal point of EPOCHREALTIME follows the locale; before bash 5 there are only seconds.
  qlb_now=${qlb_now_ms%%[!0-9]*} qlb_now_ms=${qlb_now_ms##*[!0-9]}
  if ((BASH_VERSINFO[0] < 5)) || [[ ${#qlb_now} -lt 9 || ${#qlb_now_ms} != 6 ]]; then
    builtin printf -v qlb_now '%(%s)T' -1
    qlb_now_ms=000
  fi
  # The panel shows 1 for a shorter run. A clock that went back says nothing.
  if [[ $1 == 2 ]] && ((qlb_now >= QLB_STARTED_AT)); then
    qlb_line+=",\"duration_s\":$((qlb_now > QLB_STARTED_AT ? qlb_now - QLB_STARTED_AT : 1))"
  fi
  qlb_line="$QLB_HEAD,\"occurred_at_ms\":$qlb_now${qlb_now_ms:0:3},\"seq\":$1,$qlb_line"
  ((${#qlb_line} + ${#QLB_LOG} > 4094)) || qlb_line+=$QLB_LOG
  qlb_line+='}'
  if [[ -n $QLB_URL ]] && qlb_post "$qlb_line"; then
    [[ $1 != 1 ]] || QLB_KEPT=on
    return 0
  fi
  # May it be spooled (PROTOCOL, spool.full)? One start in 16 counts the files of its own sixteenth.
  if [[ -z $QLB_KEPT ]]; then
    [[ ! -e $QLB_DIR/spool.full ]] || return 0
    if [[ $1$QLB_STEM == 1*0 ]]; then
      qlb_rest
      qlb_has_room || return 0
    fi
  fi
  qlb_write "$QLB_DIR/spool/$QLB_STEM-$1.json" "$qlb_line" || return 0
  [[ $1 != 1 ]] || QLB_KEPT=on
  # Rings the bell of a receiver that has announced itself; a datagram waits for nobody.
  [[ -f $QLB_DIR/receiver && -r $QLB_DIR/receiver ]] || return 0
  builtin read -r qlb_line <"$QLB_DIR/receiver"
  qlb_is_count "$qlb_line" 5 && ((qlb_line > 0 && qlb_line <= 65535)) || return 0
  builtin printf '\n' >"/dev/udp/127.0.0.1/$qlb_line"
  return 0
}

# Creates file $1 (mode 0600, noclobber) with line $2; fails without a word.
qlb_write() {
  local qlb_key='' qlb_mask='' || return 1
  # The second line, since Linux 4.7. The builtin itself only prints.
  {
    builtin read -r qlb_key
    builtin read -r qlb_key qlb_mask
  } </proc/self/status
  if [[ $qlb_key != Umask: || $qlb_mask == *[!0-7]* ]]; then
    qlb_rest
    qlb_find_mask || return 1
  fi
  builtin set -C
  builtin umask 077
  builtin printf '%s\n' "$2" >"$1"
  qlb_key=$?
  builtin umask "$qlb_mask"
  builtin set +C
  return "$qlb_key"
}

# The panel's end function is called, with its arguments: normally, or from its signal traps, which since 2.21 say the
# signal. Twice is possible: the first one counts.
qlb_end() {
  local qlb_code=${_task_exit_code-} qlb_stopped='' qlb_signal='' || return 0
  [[ ${QLB_STATE-} == open ]] || return 0
  if [[ ${MANUAL-} == true || ${QLB_MAIN-} == running || " ${FUNCNAME[*]} " == *' single_hanle '* ]]; then
    qlb_stopped=true
    [[ ${1-} != SIG?* || ${1:3} == *[!A-Z0-9+]* || ${#1} -gt 15 ]] || qlb_signal=${1:3}
  fi
  if qlb_is_count "${QLB_MAIN-}" 3; then
    qlb_code=$QLB_MAIN
  elif [[ -n $qlb_stopped ]] && ! qlb_is_count "$qlb_code" 3; then
    # The panel exits with 1 then, whatever the program did.
    qlb_code=$((qlb_status ? qlb_status : 1))
  fi
  qlb_finish "$qlb_code" "$qlb_stopped" "$qlb_signal"
}

# The process ends, at the command $1, without the panel's own end. Its status stays what it is.
qlb_exit() {
  local qlb_code=$qlb_status qlb_stopped='' || return "$qlb_status"
  [[ ${QLB_STATE-} == open && $BASHPID == "$QLB_BASHPID" ]] || return "$qlb_status"
  if qlb_is_count "${QLB_MAIN-}" 3; then
    qlb_code=$QLB_MAIN
  elif [[ -n ${QLB_LEARNS-} ]] && qlb_is_count "${_task_exit_code-}" 3; then
    qlb_code=$_task_exit_code
  elif [[ ! $1 =~ ^([a-z]+\ )?exit($|[^a-zA-Z0-9_]) && ! $1 =~ ^(eval|main|[.])\  ]]; then
    # What leaves by `exit` or `set -e` has been unwound to the panel's line that sourced the task. This was not: a
    # signal without a trap ends the shell, and bash says neither that nor which.
    qlb_code='' qlb_stopped=true
  fi
  qlb_finish "$qlb_code" "$qlb_stopped" ''
  return "$qlb_status"
}

# Writes the finish envelope, once: $1 exit code or empty, $2 `true` when stopped, $3 the signal or empty.
qlb_finish() {
  local qlb_code='' || return 0
  [[ ${QLB_STATE-} == open ]] || return 0
  # Not an assignment: a task can have made the name read-only, and that would end the panel's own end as well.
  builtin declare -g QLB_STATE=closed || return 0
  ! qlb_is_count "$1" 3 || qlb_code=",\"exit_code\":$(($1 & 255))"
  qlb_deliver 2 "\"event\":\"finished\"$qlb_code,\"stopped\":${2:-false}${3:+,\"signal\":\"$3\"}"
}

QLB_AT=$LINENO
if [[ -z ${QLB_LIBRARY-} ]]; then
  qlb_run hook 2>/dev/null || builtin :
fi
if [[ -n ${QLB_OPTIONS-} ]]; then
  [[ $QLB_OPTIONS != *x ]] || builtin shopt -s expand_aliases
  [[ $QLB_OPTIONS != a* ]] || builtin set -a
  builtin unset -v QLB_OPTIONS
fi
# What follows is not run from here (always true, but a linter is to read on).
[[ -z $QLB_PID ]] || \builtin return 0

#: The rest, for qlb_rest.

# Reads the settings in full (DESIGN 13): sets QLB_DIR, QLB_URL, QLB_TOKEN, and where there is no marker QLB_ORIGIN.
qlb_settings() {
  local qlb_dir qlb_origins qlb_edge || return 0
  qlb_read_settings
  QLB_DIR=$qlb_dir
  # Tasks change the directory between start and finish.
  [[ $QLB_DIR == /* ]] || QLB_DIR=$PWD/$QLB_DIR
  [[ $QLB_URL == http?(s)://* ]] || QLB_URL=
  builtin unset -v QL_SIDECAR_TOKEN
  [[ -n $QLB_ORIGIN ]] || qlb_prove "$qlb_origins"
}

# Puts what the environment says, else the file, into the caller's qlb_dir, qlb_origins and qlb_edge, QLB_URL and QLB_TOKEN.
qlb_read_settings() {
  local qlb_data=${dir_data:-${QL_DATA_DIR:-${QL_DIR:+$QL_DIR/data}}} qlb_line qlb_value qlb_lines=() || return 0
  local qlb_profile=${QL3_PROFILE-} || return 0
  qlb_data=${qlb_data:-/ql/data} qlb_dir=${QL_SIDECAR_DIR-} qlb_origins=${QL3_SHADOW_ORIGINS-}
  QLB_URL=${QL_SIDECAR_URL-} QLB_TOKEN=${QL_SIDECAR_TOKEN-${QLB_TOKEN-}}
  if [[ -f $qlb_data/config/ql-sidecar.env && -r $qlb_data/config/ql-sidecar.env ]]; then
    builtin mapfile -t -n 256 qlb_lines <"$qlb_data/config/ql-sidecar.env"
  fi
  for qlb_line in "${qlb_lines[@]}"; do
    qlb_trim qlb_line "$qlb_line"
    [[ $qlb_line == [A-Za-z_]*=* ]] || continue
    qlb_trim qlb_value "${qlb_line#*=}"
    [[ ${#qlb_value} -lt 2 || $qlb_value != \"*\" && $qlb_value != \'*\' ]] || qlb_value=${qlb_value:1:-1}
    case ${qlb_line%%=*} in
      QL3_PROFILE) qlb_profile=${QL3_PROFILE-$qlb_value} ;;
      QL3_SHADOW_ORIGINS) qlb_origins=${QL3_SHADOW_ORIGINS-$qlb_value} ;;
      QL_SIDECAR_DIR) qlb_dir=${QL_SIDECAR_DIR-$qlb_value} ;;
      QL_SIDECAR_URL) QLB_URL=${QL_SIDECAR_URL-$qlb_value} ;;
      QL_SIDECAR_TOKEN) QLB_TOKEN=${QL_SIDECAR_TOKEN-$qlb_value} ;;
    esac
  done
  qlb_dir=${qlb_dir:-${qlb_data%/}/ql-sidecar} qlb_edge=
  [[ $qlb_profile != edge ]] || qlb_edge=on
}

# Puts $2 without the blanks around it into the variable named $1.
qlb_trim() {
  local qlb_text=${2#"${2%%[!$' \t\r']*}"} || return 0
  builtin printf -v "$1" '%s' "${qlb_text%"${qlb_text##*[!$' \t\r']}"}"
}

# Without a marker, takes the origin from the variables that only that entry of the panel sets, all of them (4.1), when
# it is in the list $1.
qlb_prove() {
  local qlb_origin='' qlb_entry qlb_entries=() || return 0
  case ${SERVICE_TYPE-}:${real_time-}:${no_tee-} in
    grpc:false:true) [[ -n ${real_log_path-} ]] || qlb_origin=scheduled_node ;;
    http:true:true) [[ ${no_delay-} != true || -z ${real_log_path-} ]] || qlb_origin=manual ;;
  esac
  [[ -n $qlb_origin && ",${1//[$' \t']/}," == *,"$qlb_origin",* ]] || return 0
  # The panel's variables are exported to the task's children, so a `task` inside a task has them too. What the panel
  # starts has a parent that does not carry them; what a task starts has one that does.
  [[ -r /proc/$PPID/environ && $PPID != 1 ]] || return 0
  builtin mapfile -d '' -t qlb_entries <"/proc/$PPID/environ"
  [[ ${#qlb_entries[@]} -gt 0 ]] || return 0
  for qlb_entry in "${qlb_entries[@]}"; do
    [[ $qlb_entry != @(no_tee|real_log_path|real_time)=* ]] || return 0
  done
  QLB_ORIGIN=$qlb_origin
}

# Tells doctor of each function ($1 name, $2 text, $3 name, …) that is not there or not in the shape we rely on.
qlb_unknown() {
  while (($#)); do
    if [[ -z $2 ]]; then
      qlb_notice missing-function "$1"
    elif [[ $2 != "$1 () "*$'\n{ '*update_cron*$'\n}'* ]]; then
      qlb_notice unknown-shape "$1"
    fi
    builtin shift 2
  done
}

# Where /proc does not serve.
qlb_capture_with_forks() {
  [[ -e /proc/self/fd ]] || qlb_notice no-proc 'captured with a fork'
  qlb_first=$(builtin eval "$1") qlb_second=$(builtin eval "${2:-:}") qlb_third=$(builtin eval "${3:-:}")
}

# The trap of a `ql …` line: the process itself is the execution.
qlb_watch_ql() {
  local qlb_first='' qlb_second qlb_third || return 0
  qlb_capture 'builtin trap -p EXIT'
  qlb_watch "$qlb_first"
}

# Wraps `main`, which runs the task, to learn its status: panels before 2.21 never do.
qlb_watch_main() {
  local qlb_first='' qlb_second qlb_third || return 0
  QLB_MAIN=
  qlb_capture 'declare -f main'
  if [[ $qlb_first != 'main () '*$'\n{ '*run_normal*$'\n}'* ]] || ! builtin eval "qlb_upstream_main${qlb_first#main}"; then
    if [[ -n $qlb_first ]]; then qlb_notice unknown-shape main; else qlb_notice missing-function main; fi
    return 0
  fi
  # No `||`: it would switch `set -e` of a sourced task off.
  # shellcheck disable=SC2317,SC2329
  main() {
    QLB_MAIN=running
    qlb_upstream_main "$@"
    QLB_MAIN=$?
    builtin return "$QLB_MAIN"
  }
}

# Puts right what qlb_open has read (its variables) and leaves out what cannot be; fails when there can be no ID.
qlb_mend() {
  qlb_is_uuid "$qlb_uuid" 4 '[89ab]' || qlb_make_uuid || return 1
  qlb_is_count "$QLB_STARTED_AT" 12 && ((QLB_STARTED_AT > 0)) || builtin printf -v QLB_STARTED_AT '%(%s)T' -1
  qlb_is_uuid "$qlb_boot" '?' '?' || qlb_boot=
  qlb_is_count "$qlb_own" 15 || qlb_own=
  qlb_is_count "$qlb_init" 15 || qlb_init=
  qlb_json qlb_host "${qlb_host:-${HOSTNAME-}}" 253
  qlb_json qlb_log "$qlb_log" 1024
  [[ $QLB_REVISION == sha256:* && ${#QLB_REVISION} == 71 && ${QLB_REVISION:7} != *[!0-9a-f]* ]] || QLB_REVISION=
}

# Whether $1 is a lower-case UUID of version $2 and variant $3 (patterns).
qlb_is_uuid() {
  # shellcheck disable=SC2053
  [[ $1 == ????????-????-$2???-$3???-???????????? && ${1//-/} != *[!0-9a-f]* && ${#1} == 36 ]]
}

# Puts a strict lower-case UUIDv4 into qlb_uuid where the kernel gives none (ADR-0446 decision 2: uuidgen, node).
qlb_make_uuid() {
  qlb_uuid=$(uuidgen)
  qlb_uuid=${qlb_uuid,,}
  qlb_is_uuid "$qlb_uuid" 4 '[89ab]' && return
  qlb_uuid=$(node -e 'console.log(require("crypto").randomUUID())')
  qlb_is_uuid "$qlb_uuid" 4 '[89ab]' && return
  qlb_notice no-uuid 'no source of a random UUID'
  return 1
}

# Puts $2 as the inside of a JSON string into the variable named $1: any bytes in, valid UTF-8 out, and nothing when it
# is empty or longer than $3 UTF-16 units. What is plain goes through whole; the rest byte by byte (the locale is C).
qlb_json() {
  local qlb_in=$2 qlb_out='' qlb_left=$3 qlb_part qlb_n qlb_size qlb_low qlb_high qlb_i qlb_b
  builtin printf -v "$1" ''
  ((${#2} <= 4096)) || return 0
  while [[ -n $qlb_in ]]; do
    qlb_part=${qlb_in%%[!] !#-[^-~]*}
    qlb_out+=$qlb_part
    qlb_in=${qlb_in:${#qlb_part}}
    qlb_left=$((qlb_left - ${#qlb_part}))
    [[ -n $qlb_in ]] || break
    builtin printf -v qlb_n '%d' "'${qlb_in:0:1}"
    qlb_n=$((qlb_n & 255)) qlb_size=1 qlb_low=128 qlb_high=191
    case $qlb_n in
      34 | 92) qlb_part=\\${qlb_in:0:1} ;;
      ? | ?? | 1[01]? | 12[0-7]) builtin printf -v qlb_part '\\u%04x' "$qlb_n" ;;
      *)
        # Shortest form, no surrogates, nothing above U+10FFFF: the second byte says it.
        case $qlb_n in
          19[4-9] | 20? | 21? | 22[0-3]) qlb_size=2 ;;
          224) qlb_size=3 qlb_low=160 ;;
          237) qlb_size=3 qlb_high=159 ;;
          22? | 23?) qlb_size=3 ;;
          240) qlb_size=4 qlb_low=144 ;;
          244) qlb_size=4 qlb_high=143 ;;
          24[1-3]) qlb_size=4 ;;
          *) qlb_size=0 ;;
        esac
        for ((qlb_i = 1; qlb_i < qlb_size; qlb_i++)); do
          builtin printf -v qlb_b '%d' "'${qlb_in:qlb_i:1}"
          qlb_b=$((qlb_b & 255))
          ((qlb_b >= qlb_low && qlb_b <= qlb_high)) || qlb_size=0
          qlb_low=128 qlb_high=191
        done
        qlb_part=${qlb_in:0:qlb_size}
        if ((qlb_size == 0)); then qlb_part='\ufffd' qlb_size=1; fi
        ((qlb_size < 4)) || qlb_left=$((qlb_left - 1))
        ;;
    esac
    qlb_out+=$qlb_part
    qlb_in=${qlb_in:qlb_size}
    qlb_left=$((qlb_left - 1))
  done
  ((qlb_left < 0)) || builtin printf -v "$1" '%s' "$qlb_out"
}

# Puts the umask into the caller's qlb_mask where /proc does not tell it.
qlb_find_mask() {
  local qlb_first='' qlb_second qlb_third || return 1
  qlb_capture 'builtin umask'
  qlb_mask=${qlb_first%$'\n'}
  [[ -n $qlb_mask && $qlb_mask != *[!0-7]* ]]
}

# Whether the spool has room, judged by one sixteenth of its names; closes it (PROTOCOL, spool.full) when not.
qlb_has_room() {
  local qlb_bound=8192 qlb_failglob='' qlb_nullglob='' qlb_edge='' qlb_dir qlb_origins || return 0
  local QLB_URL QLB_TOKEN=${QLB_TOKEN-}
  qlb_read_settings
  [[ -z $qlb_edge ]] || qlb_bound=1024
  builtin shopt -q failglob && qlb_failglob=on && builtin shopt -u failglob
  builtin shopt -q nullglob && qlb_nullglob=on
  builtin shopt -s nullglob
  builtin set -- "$QLB_DIR"/spool/*0-[12].json
  [[ -z $qlb_failglob ]] || builtin shopt -s failglob
  [[ -n $qlb_nullglob ]] || builtin shopt -u nullglob
  (($# * 16 > qlb_bound)) || return 0
  qlb_write "$QLB_DIR/spool.full" ''
  return 1
}

# Posts line $1 to QL_SIDECAR_URL within a second; true for 2xx. All goes through stdin: arguments are public.
qlb_post() {
  local qlb_token=$QLB_TOKEN qlb_url=$QLB_URL qlb_body=${1//\\/\\\\} qlb_answer qlb_config
  if [[ -z $qlb_token && -f $QLB_DIR/serve.token && -r $QLB_DIR/serve.token ]]; then
    builtin read -r qlb_token <"$QLB_DIR/serve.token"
  fi
  qlb_url=${qlb_url//\\/\\\\}
  while [[ $qlb_url == */ ]]; do qlb_url=${qlb_url%/}; done
  qlb_config="url = \"${qlb_url//\"/\\\"}/v1/callbacks\""$'\n'
  qlb_config+='header = "Content-Type: application/json"'$'\n'
  [[ ! $qlb_token =~ ^[[:alnum:]._~+/=-]+$ ]] || qlb_config+="header = \"Authorization: Bearer $qlb_token\""$'\n'
  qlb_config+="data-binary = \"${qlb_body//\"/\\\"}\""$'\n'
  qlb_config+=$'max-time = 1\nsilent\ngloboff\nnoproxy = "*"\noutput = "/dev/null"\nwrite-out = "%{http_code}"'
  qlb_answer=$(curl -q -K - <<<"$qlb_config")
  [[ $qlb_answer == 2?? ]]
}

# Leaves the notice $1 with the text $2 for `doctor`, once.
qlb_notice() {
  [[ ! -d $QLB_DIR/notices || -e $QLB_DIR/notices/bridge-$1 ]] || qlb_write "$QLB_DIR/notices/bridge-$1" "$2"
}

# A command of exec.sh starts: $1 its origin, $2 its cron ID or empty, $3 its name or empty. Status 3: a bad name.
qlb_command() {
  local qlb_what || return 0
  QLB_ORIGIN=$1
  qlb_settings
  if [[ -n $2 ]]; then
    qlb_what="\"cron_id\":$2"
  else
    qlb_json qlb_what "${3:-script}" 128
    [[ -n $qlb_what ]] || return 3
    qlb_what="\"name\":\"$qlb_what\""
  fi
  qlb_open "$qlb_what" '' '' && qlb_deliver 1 '"event":"started"'
}
