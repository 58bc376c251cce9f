# shellcheck shell=bash
# The bridge: gives an execution of the panel a stable ID and writes one envelope when it starts and one when it
# ends (DESIGN 4.1 to 4.4, docs/PROTOCOL.md). It runs inside other people's scripts, so it prints nothing, leaves
# no option, trap or variable of theirs changed, never fails them, and forks only with QL_SIDECAR_URL.
#
# Two ways in, the same file. Hook: sourced at the end of the panel's config.sh. Mount: laid over the panel's own
# share.sh; then the original is sourced first. exec.sh uses it as a library (QLB_LIBRARY=1).

if [[ -n ${QL_DIR-} && -z ${QLB_LIBRARY-} && ${BASH_SOURCE[0]-} == "$QL_DIR/shell/share.sh" ]]; then
  # shellcheck source=/dev/null
  . "${QL_UPSTREAM_SHELL_DIR:-${QL_SIDECAR_DIR:-${QL_DATA_DIR:-$QL_DIR/data}/ql-sidecar}/upstream}/share.sh"
fi

# Who starts nothing pays nothing: bash parses a sourced file command by command, so the rest is not even parsed.
if [[ -z ${QL_EXECUTION_ORIGIN+x}${QL_TASK_REVISION+x}${QL_RUN_ID+x}${QL_CALLBACK_TOKEN+x}${QLB_LIBRARY-} ]] &&
  [[ -z ${QL_ATTEMPT_ID+x}${QL_CALLBACK_SEQUENCE+x}${QL_CALLBACK_TOKEN_FILE+x} && ${QLB_PID-} != "$$" ]]; then
  QLB_FILE=${dir_data:-${QL_DATA_DIR:-${QL_DIR-}/data}}/config/ql-sidecar.env
  if [[ -z ${SERVICE_TYPE-} || -z ${ID-} || -z ${QL3_SHADOW_ORIGINS-} && ! -f $QLB_FILE ]]; then
    \builtin unset -v QLB_FILE
    \builtin return 0
  fi
fi

# An alias of the caller would be expanded inside the functions below.
QLB_ALIASES=''
if \builtin shopt -q expand_aliases; then
  QLB_ALIASES=on
  \builtin shopt -u expand_aliases
fi

# Under `set -a` all of this would be exported to the task.
QLB_ALLEXPORT=''
if [[ $- == *a* ]]; then
  \builtin set +a
  QLB_ALLEXPORT=on
fi

# State of another process that came with the environment is not ours, and what is assigned below must not be exported.
if [[ ${QLB_PID-} != "$$" ]]; then
  \builtin unset -v QLB_PID QLB_STATE QLB_ORIGIN QLB_REVISION QLB_BASHPID QLB_MAIN QLB_EXIT_WAS QLB_KEPT QLB_DIR \
    QLB_URL QLB_TOKEN QLB_EDGE QLB_HEAD QLB_LOG QLB_STARTED_AT QLB_STEM QLB_ORIGINS
fi
QLB_PID=$$

# A task that calls `task` again must not look like a second execution, and secrets are not for user code (4.1).
if [[ -z ${QLB_STATE-} ]]; then
  QLB_ORIGIN=${QL_EXECUTION_ORIGIN-}
  QLB_REVISION=${QL_TASK_REVISION-}
fi
\builtin unset -v QL_EXECUTION_ORIGIN QL_TASK_REVISION QL_RUN_ID QL_ATTEMPT_ID QL_CALLBACK_SEQUENCE QL_CALLBACK_TOKEN \
  QL_CALLBACK_TOKEN_FILE

# Runs qlb_<verb> with options, IFS and locale of our own; the caller's come back on return. Status: the verb's.
qlb_guarded() {
  # shellcheck disable=SC2319 # the caller's $? is meant
  local - qlb_status=$?
  local IFS=$' \t\n' LC_ALL=C qlb_nocase=''
  builtin set +aefuvxnCET +o pipefail
  if builtin shopt -q nocasematch; then
    qlb_nocase=on
    builtin shopt -u nocasematch
  fi
  "qlb_$1" "$qlb_status" "${@:2}"
  qlb_status=$?
  [[ -z $qlb_nocase ]] || builtin shopt -s nocasematch
  builtin return "$qlb_status"
}

# Decides whether this process is an execution, and hooks in: called once at the end of this file.
qlb_hook() {
  case ${QLB_STATE-} in
    armed) qlb_wrap_task ;;
    ?*) ;;
    *)
      QLB_STATE=off
      qlb_settings
      [[ -n $QLB_ORIGIN ]] || qlb_prove
      [[ $QLB_ORIGIN == @(manual|scheduled_system|scheduled_node|boot|subscription|system|script) ]] || return 0
      QLB_STATE=armed
      case ${0##*/} in
        # The panel's own maintenance commands run in a script that calls no task function (QINGLONG-2X).
        ql | update.sh) qlb_open_ql ;;
        *) qlb_wrap_task ;;
      esac
      ;;
  esac
}

# Reads what both halves read: the environment, else ql-sidecar.env (DESIGN 13). Sets QLB_DIR, QLB_URL, QLB_TOKEN,
# QLB_EDGE, and qlb_origins of the caller.
qlb_settings() {
  local qlb_data=${dir_data:-${QL_DATA_DIR:-${QL_DIR:+$QL_DIR/data}}} qlb_line qlb_value qlb_lines=()
  local qlb_profile=${QL3_PROFILE-} qlb_dir=${QL_SIDECAR_DIR-}
  qlb_data=${qlb_data:-/ql/data}
  QLB_URL=${QL_SIDECAR_URL-} QLB_TOKEN=${QL_SIDECAR_TOKEN-} QLB_ORIGINS=${QL3_SHADOW_ORIGINS-}
  # -f: a pipe in that place would hold the task up.
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
      QL3_SHADOW_ORIGINS) QLB_ORIGINS=${QL3_SHADOW_ORIGINS-$qlb_value} ;;
      QL_SIDECAR_DIR) qlb_dir=${QL_SIDECAR_DIR-$qlb_value} ;;
      QL_SIDECAR_URL) QLB_URL=${QL_SIDECAR_URL-$qlb_value} ;;
      QL_SIDECAR_TOKEN) QLB_TOKEN=${QL_SIDECAR_TOKEN-$qlb_value} ;;
    esac
  done
  QLB_DIR=${qlb_dir:-${qlb_data%/}/ql-sidecar}
  # Tasks change the directory between start and finish.
  [[ $QLB_DIR == /* ]] || QLB_DIR=$PWD/$QLB_DIR
  QLB_EDGE=
  [[ $qlb_profile != edge ]] || QLB_EDGE=on
  builtin unset -v QL_SIDECAR_TOKEN
}

# Puts $2 without the blanks around it into the variable named $1.
qlb_trim() {
  local qlb_text=${2#"${2%%[!$' \t\r']*}"}
  builtin printf -v "$1" '%s' "${qlb_text%"${qlb_text##*[!$' \t\r']}"}"
}

# Without a marker, takes the origin from the variables that only that entry of the panel sets, all of them (4.1).
qlb_prove() {
  local qlb_origin='' qlb_entry qlb_entries=()
  case ${SERVICE_TYPE-}:${real_time-}:${no_tee-} in
    grpc:false:true) [[ -n ${real_log_path-} ]] || qlb_origin=scheduled_node ;;
    http:true:true) [[ ${no_delay-} != true || -z ${real_log_path-} ]] || qlb_origin=manual ;;
  esac
  [[ -n $qlb_origin && ",${QLB_ORIGINS//[$' \t']/}," == *,"$qlb_origin",* ]] || return 0
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

# Wraps the panel's start and end functions; changes nothing when either is not what we know.
qlb_wrap_task() {
  local qlb_first qlb_second
  qlb_capture 'declare -f handle_task_start' 'declare -f handle_task_end'
  [[ $qlb_first != *qlb_guarded* ]] || return 0
  qlb_known handle_task_start "$qlb_first" update_cron || return 0
  qlb_known handle_task_end "$qlb_second" update_cron || return 0
  if ! builtin eval "qlb_upstream_task_start${qlb_first#handle_task_start}
qlb_upstream_task_end${qlb_second#handle_task_end}"; then
    qlb_notice unknown-shape handle_task_start
    return 0
  fi
  # shellcheck disable=SC2317,SC2329
  handle_task_start() {
    qlb_guarded start 2>/dev/null || builtin :
    qlb_upstream_task_start "$@"
  }
  # shellcheck disable=SC2317,SC2329
  handle_task_end() {
    qlb_guarded end "$@" 2>/dev/null || builtin :
    qlb_upstream_task_end "$@"
  }
}

# Whether $2 is the text of function $1 in the shape we rely on: it mentions $3. Says so to doctor if not.
qlb_known() {
  if [[ -z $2 ]]; then
    qlb_notice missing-function "$1"
  elif [[ $2 == "$1 () "*$'\n{ '*"$3"*$'\n}'* ]]; then
    return 0
  else
    qlb_notice unknown-shape "$1"
  fi
  return 1
}

# Runs two commands (our own text) and puts what they print into the caller's qlb_first and qlb_second, without a
# fork: an unlinked here-document file is written through /proc and read back. Never a pipe, which could block: bash
# 5.1 on makes one for short documents, 5.2 not under compatibility 50, 5.1 not above 64 KiB.
qlb_capture() {
  local qlb_pad='' qlb_version=$((BASH_VERSINFO[0] * 100 + BASH_VERSINFO[1])) qlb_done=
  qlb_first='' qlb_second=''
  if ((qlb_version >= 502)) && [[ -z ${BASH_COMPAT-} ]]; then
    local BASH_COMPAT=50
  elif ((qlb_version >= 501)); then
    builtin printf -v qlb_pad '%66000s' ''
  fi
  # In memory where that is to be had: it spares a flash disk.
  if [[ -w /dev/shm ]]; then local TMPDIR=/dev/shm; fi
  {
    if [[ -f /proc/self/fd/0 ]] && builtin eval "$1; builtin printf '\\0'; $2" >|/proc/self/fd/0; then
      builtin read -r -d '' qlb_first && qlb_done=on
      builtin read -r -d '' qlb_second
    fi
  } <<QLB
$qlb_pad
QLB
  [[ -z $qlb_done ]] || return 0
  [[ -e /proc/self/fd ]] || qlb_notice no-proc 'captured with a fork'
  qlb_first=$(builtin eval "$1") qlb_second=$(builtin eval "$2")
}

# The panel's task starts: the ID is made, `main` and the end of the process are watched, the envelope is written.
qlb_start() {
  local qlb_first qlb_second
  [[ ${QLB_STATE-} == armed ]] || return 0
  qlb_is_id "${ID-}" || return 0
  qlb_open "\"cron_id\":$ID" "${begin_timestamp-}" "${log_path-}" || return 0
  qlb_capture 'builtin trap -p EXIT' 'declare -f main'
  qlb_watch_exit "$qlb_first"
  qlb_watch_main "$qlb_second"
  qlb_deliver 1 ''
}

# A `ql …` line: no function to wrap, so the process itself is the execution.
qlb_open_ql() {
  local qlb_first qlb_second
  qlb_is_id "${ID-}" || return 0
  qlb_open "\"cron_id\":$ID" '' '' || return 0
  qlb_capture 'builtin trap -p EXIT' :
  qlb_watch_exit "$qlb_first"
  qlb_deliver 1 ''
}

# Whether $1 is an ID that the ledger takes: 1 to 2^53-1.
qlb_is_id() {
  qlb_is_count "$1" 16 && (($1 > 0 && $1 <= 9007199254740991))
}

# Whether $1 is a decimal number without leading zeros, of at most $2 digits. No regular expression in this file runs
# in a task's normal course: compiling one costs more than the rest of a check.
qlb_is_count() {
  [[ -n $1 && $1 != *[!0-9]* && ${#1} -le $2 && ($1 != 0* || $1 == 0) ]]
}

# Whether $1 is a lower-case UUID.
qlb_is_uuid() {
  [[ $1 == ????????-????-????-????-???????????? && $1 != *[!0-9a-f-]* && ${1//-/} == ???????????????????????????????? ]]
}

# Makes the execution: $1 what it is (JSON), $2 its start second, $3 its log path. Fails when there can be no ID.
qlb_open() {
  local qlb_uuid='' qlb_kind qlb_now_s qlb_now_ms qlb_ticks qlb_text qlb_host
  qlb_uuid
  if [[ -z $qlb_uuid ]]; then
    qlb_notice no-uuid 'no source of a random UUID'
    return 1
  fi
  qlb_now
  QLB_STARTED_AT=$2
  qlb_is_count "$2" 12 && (($2 > 0)) || QLB_STARTED_AT=$qlb_now_s
  case $QLB_ORIGIN in
    scheduled_system) qlb_kind=system ;;
    scheduled_node) qlb_kind=node ;;
    system) qlb_kind=internal ;;
    *) qlb_kind=$QLB_ORIGIN ;;
  esac
  QLB_BASHPID=$BASHPID QLB_MAIN='' QLB_KEPT='' QLB_LOG=''
  QLB_STEM=$QLB_STARTED_AT-$qlb_uuid
  QLB_HEAD="{\"v\":1,\"execution_id\":\"legacy-$qlb_kind:$QLB_STARTED_AT:$qlb_uuid\",\"origin\":\"$QLB_ORIGIN\",$1"
  [[ $QLB_REVISION != sha256:* || ${#QLB_REVISION} != 71 || ${QLB_REVISION:7} == *[!0-9a-f]* ]] ||
    QLB_HEAD+=",\"task_revision\":\"$QLB_REVISION\""
  QLB_HEAD+=",\"pid\":$$"
  if qlb_ticks "$$"; then QLB_HEAD+=",\"pid_start_ticks\":$qlb_ticks"; fi
  qlb_text=''
  builtin read -r qlb_text </proc/sys/kernel/random/boot_id
  ! qlb_is_uuid "$qlb_text" || QLB_HEAD+=",\"boot_id\":\"$qlb_text\""
  qlb_host=''
  builtin read -r qlb_host </proc/sys/kernel/hostname
  qlb_json qlb_host "${qlb_host:-${HOSTNAME-}}" 253
  [[ -z $qlb_host ]] || QLB_HEAD+=",\"host\":\"$qlb_host\""
  if qlb_ticks 1; then QLB_HEAD+=",\"init_start_ticks\":$qlb_ticks"; fi
  qlb_json qlb_text "$3" 1024
  [[ -z $qlb_text ]] || QLB_LOG=",\"log_path\":\"$qlb_text\""
  QLB_STATE=open
}

# Puts a strict lower-case UUIDv4 into the caller's qlb_uuid, or nothing (ADR-0446 decision 2: kernel, uuidgen, node).
qlb_uuid() {
  builtin read -r qlb_uuid </proc/sys/kernel/random/uuid
  qlb_is_v4 && return
  qlb_uuid=$(uuidgen)
  qlb_uuid=${qlb_uuid,,}
  qlb_is_v4 && return
  qlb_uuid=$(node -e 'console.log(require("crypto").randomUUID())')
  qlb_is_v4 || qlb_uuid=''
}

# Whether qlb_uuid is of version 4 and of the right variant.
qlb_is_v4() {
  [[ $qlb_uuid == ??????????????4????[89ab]* ]] && qlb_is_uuid "$qlb_uuid"
}

# Puts the time into the caller's qlb_now_s and qlb_now_ms. The decimal point of EPOCHREALTIME follows the locale.
qlb_now() {
  local qlb_now=${EPOCHREALTIME-}
  qlb_now_s=${qlb_now%%[!0-9]*} qlb_now_ms=${qlb_now##*[!0-9]}
  if ((BASH_VERSINFO[0] >= 5)) && [[ ${#qlb_now_s} -ge 9 && ${#qlb_now_ms} == 6 ]]; then
    qlb_now_ms=$qlb_now_s${qlb_now_ms:0:3}
  else
    builtin printf -v qlb_now_s '%(%s)T' -1
    qlb_now_ms=${qlb_now_s}000
  fi
}

# Puts the start ticks of process $1 into the caller's qlb_ticks. The name in field 2 can hold blanks and parentheses.
qlb_ticks() {
  local qlb_stat=''
  [[ -r /proc/$1/stat ]] && builtin read -r -d '' qlb_stat <"/proc/$1/stat"
  builtin set -f
  # shellcheck disable=SC2086
  builtin set -- ${qlb_stat##*) }
  builtin set +f
  qlb_ticks=${20-}
  qlb_is_count "$qlb_ticks" 15
}

# Puts $2 as the inside of a JSON string into the variable named $1: any bytes in, valid UTF-8 out, and nothing when it
# is empty or longer than $3 UTF-16 units. What is plain goes through whole; the rest byte by byte (the locale is C).
qlb_json() {
  local qlb_in=$2 qlb_out='' qlb_left=$3 qlb_run qlb_n qlb_size qlb_low qlb_high qlb_i qlb_b
  builtin printf -v "$1" ''
  ((${#2} <= 4096)) || return 0
  while [[ -n $qlb_in ]]; do
    qlb_run=${qlb_in%%[!] !#-[^-~]*}
    qlb_out+=$qlb_run
    qlb_in=${qlb_in:${#qlb_run}}
    qlb_left=$((qlb_left - ${#qlb_run}))
    [[ -n $qlb_in ]] || break
    builtin printf -v qlb_n '%d' "'${qlb_in:0:1}"
    qlb_n=$((qlb_n & 255)) qlb_size=1 qlb_low=128 qlb_high=191
    case $qlb_n in
      34 | 92) qlb_run=\\${qlb_in:0:1} ;;
      ? | ?? | 1[01]? | 12[0-7]) builtin printf -v qlb_run '\\u%04x' "$qlb_n" ;;
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
        qlb_run=${qlb_in:0:qlb_size}
        if ((qlb_size == 0)); then qlb_run='\ufffd' qlb_size=1; fi
        ((qlb_size < 4)) || qlb_left=$((qlb_left - 1))
        ;;
    esac
    qlb_out+=$qlb_run
    qlb_in=${qlb_in:qlb_size}
    qlb_left=$((qlb_left - 1))
  done
  ((qlb_left < 0)) || builtin printf -v "$1" '%s' "$qlb_out"
}

# Sets the one EXIT trap, in front of what is there ($1 as `trap -p` prints it). A sourced task that exits never comes
# to the panel's own end. In a subshell `trap -p` shows the parent's trap, which does not run there.
qlb_watch_exit() {
  local qlb_was=''
  [[ $BASHPID != "$$" || $1 != 'trap -- '*' EXIT'* ]] || qlb_was=${1#trap -- }
  builtin eval "QLB_EXIT_WAS=${qlb_was% EXIT*}"

  # Both branches, so that the old trap finds its own $? and is under `set -e` as before.
  # shellcheck disable=SC2016
  builtin trap 'if qlb_guarded exit "$BASH_COMMAND" 2>/dev/null; then builtin eval "${QLB_EXIT_WAS-}"
else builtin eval "${QLB_EXIT_WAS-}"; fi' EXIT
}

# Wraps `main`, which runs the task ($1 its text), to learn its status: panels before 2.21 never do.
qlb_watch_main() {
  qlb_known main "$1" run_normal || return 0
  builtin eval "qlb_upstream_main${1#main}" || return 0
  # No `||`: it would switch `set -e` of a sourced task off.
  # shellcheck disable=SC2317,SC2329
  main() {
    QLB_MAIN=running
    qlb_upstream_main "$@"
    QLB_MAIN=$?
    builtin return "$QLB_MAIN"
  }
}

# The panel's end function is called ($1 status before it, then its arguments): normally, or from its signal traps,
# which since 2.21 say the signal. Twice is possible: the first one counts.
qlb_end() {
  local qlb_code=${_task_exit_code-} qlb_stopped='' qlb_signal=''
  if [[ ${MANUAL-} == true || ${QLB_MAIN-} == running || " ${FUNCNAME[*]} " == *' single_hanle '* ]]; then
    qlb_stopped=true
    [[ ${2-} != SIG?* || ${2:3} == *[!A-Z0-9+]* || ${#2} -gt 15 ]] || qlb_signal=${2:3}
  fi
  if qlb_is_count "${QLB_MAIN-}" 3; then
    qlb_code=$QLB_MAIN
  elif [[ -n $qlb_stopped ]] && ! qlb_is_count "$qlb_code" 3; then
    # The panel exits with 1 then, whatever the program did.
    qlb_code=$(($1 ? $1 : 1))
  fi
  qlb_finish "$qlb_code" "$qlb_stopped" "$qlb_signal"
}

# The process ends ($1 its status, $2 the command it was at) without the panel's own end. Returns $1.
qlb_exit() {
  local qlb_code=$1 qlb_stopped=''
  [[ ${QLB_STATE-} == open && $BASHPID == "$QLB_BASHPID" ]] || return "$1"
  if qlb_is_count "${QLB_MAIN-}" 3; then
    qlb_code=$QLB_MAIN
  elif [[ ! $2 =~ ^([a-z]+\ )?exit($|[^a-zA-Z0-9_]) && ! $2 =~ ^(eval|main|[.])\  ]]; then
    # What leaves by `exit` or `set -e` has been unwound to the panel's line that sourced the task. This was not: a
    # signal without a trap ends the shell, and bash says neither that nor which.
    qlb_code='' qlb_stopped=true
  fi
  qlb_finish "$qlb_code" "$qlb_stopped" ''
  return "$1"
}

# Writes the finish envelope, once: $1 exit code or empty, $2 `true` when stopped, $3 the signal or empty.
qlb_finish() {
  local qlb_now_s qlb_now_ms qlb_took qlb_tail=''
  [[ ${QLB_STATE-} == open ]] || return 0
  QLB_STATE=closed
  qlb_now
  ! qlb_is_count "$1" 3 || qlb_tail+=",\"exit_code\":$(($1 & 255))"
  # The panel shows 1 for a shorter run. A clock that went back says nothing.
  qlb_took=$((qlb_now_s - QLB_STARTED_AT))
  ((qlb_took < 0)) || qlb_tail+=",\"duration_s\":$((qlb_took ? qlb_took : 1))"
  qlb_tail+=",\"stopped\":${2:-false}"
  [[ -z $3 ]] || qlb_tail+=",\"signal\":\"$3\""
  qlb_deliver 2 "$qlb_tail"
}

# Delivers envelope $1 (1 start, 2 finish) with the fields $2: posted when there is a URL, else or after that spooled.
qlb_deliver() {
  local qlb_line qlb_now_s qlb_now_ms qlb_event=started
  [[ $1 == 1 ]] || qlb_event=finished
  qlb_now
  builtin printf -v qlb_line '%s,"seq":%d,"event":"%s","started_at":%s,"occurred_at_ms":%s%s' \
    "$QLB_HEAD" "$1" "$qlb_event" "$QLB_STARTED_AT" "$qlb_now_ms" "$2"
  ((${#qlb_line} + ${#QLB_LOG} > 4094)) || qlb_line+=$QLB_LOG
  qlb_line+='}'
  if [[ $QLB_URL == http?(s)://* ]] && qlb_post "$qlb_line"; then
    [[ $1 != 1 ]] || QLB_KEPT=on
    return 0
  fi
  qlb_has_room "$1" && qlb_write "$QLB_DIR/spool/$QLB_STEM-$1.json" "$qlb_line" || return 0
  [[ $1 != 1 ]] || QLB_KEPT=on
  qlb_ring
}

# Whether envelope $1 may be spooled (PROTOCOL, spool.full). One start in 16 counts the files of its own sixteenth.
qlb_has_room() {
  local qlb_bound=8192 qlb_failglob='' qlb_nullglob=''
  [[ $1 != 2 || -z $QLB_KEPT ]] || return 0
  [[ ! -e $QLB_DIR/spool.full ]] || return 1
  [[ $1 == 1 && $QLB_STEM == *0 ]] || return 0
  [[ -z $QLB_EDGE ]] || qlb_bound=1024
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

# Creates file $1 (mode 0600, noclobber) with line $2; fails without a word.
qlb_write() {
  local qlb_mask='' qlb_key qlb_value qlb_first qlb_second qlb_status
  while builtin read -r qlb_key qlb_value; do
    if [[ $qlb_key == Umask: ]]; then
      qlb_mask=$qlb_value
      break
    fi
  done </proc/self/status
  if [[ -z $qlb_mask ]]; then
    qlb_capture umask :
    qlb_mask=${qlb_first%$'\n'}
  fi
  [[ -n $qlb_mask && $qlb_mask != *[!0-7]* ]] || return 1
  builtin set -C
  builtin umask 077
  builtin printf '%s\n' "$2" >"$1"
  qlb_status=$?
  builtin umask "$qlb_mask"
  builtin set +C
  return "$qlb_status"
}

# Rings the bell of a receiver that has announced itself; a datagram waits for nobody.
qlb_ring() {
  local qlb_port=''
  [[ -f $QLB_DIR/receiver && -r $QLB_DIR/receiver ]] || return 0
  builtin read -r qlb_port <"$QLB_DIR/receiver"
  qlb_is_count "$qlb_port" 5 && ((qlb_port > 0 && qlb_port <= 65535)) || return 0
  builtin printf '\n' >"/dev/udp/127.0.0.1/$qlb_port"
  return 0
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

if [[ -z ${QLB_LIBRARY-} ]]; then
  qlb_guarded hook 2>/dev/null || builtin :
fi
if [[ -n $QLB_ALIASES ]]; then
  builtin shopt -s expand_aliases
fi
if [[ -n $QLB_ALLEXPORT ]]; then
  \builtin set -a
fi
