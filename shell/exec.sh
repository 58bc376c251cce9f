#!/usr/bin/env bash
# Runs any command as one recorded execution: exec.sh --origin ORIGIN [--id CRON_ID | --name NAME] -- COMMAND...
# The command keeps its arguments, environment, input, outputs, signals and exit code. When nothing can be recorded it
# runs all the same; only a wrong option stops it, with status 2 and one line.

# Says what is wrong ($1 English, $2 Chinese) and leaves.
usage_error() {
  local text=$1
  [[ $language != zh* ]] || text=$2
  printf 'exec.sh: %s\n' "$text" >&2
  exit 2
}

# Reads the options into origin, id, name and command.
parse() {
  local option
  while (($#)); do
    option=$1
    case $option in
      --)
        shift
        command=("$@")
        break
        ;;
      --origin=* | --id=* | --name=*) set -- "${option%%=*}" "${option#*=}" "${@:2}" ;;
      --origin | --id | --name)
        (($# > 1)) || usage_error "Expected a value after \`$1\`" "\`$1\` 后面缺少值"
        case $option in
          --origin) origin=$2 ;;
          --id) id=$2 ;;
          --name) name=$2 ;;
        esac
        shift 2
        ;;
      *) usage_error "Expected --origin, --id, --name or -- before the command, got \`$1\`" \
        "命令之前只能是 --origin、--id、--name 或 --，得到 \`$1\`" ;;
    esac
  done
}

# Refuses what the ledger would refuse.
check() {
  local LC_ALL=C
  case $origin in
    boot | subscription | system | script | manual | scheduled_system | scheduled_node) ;;
    *) usage_error "Expected \`--origin\` to be boot, subscription, system, script, manual, scheduled_system or \
scheduled_node, got \`$origin\`" "\`--origin\` 只能是 boot、subscription、system、script、manual、scheduled_system 或 \
scheduled_node，得到 \`$origin\`" ;;
  esac
  ((${#command[@]})) || usage_error 'Expected -- and a command' '缺少 -- 和要执行的命令'
  [[ -z $id || -z $name ]] || usage_error "Expected \`--id\` or \`--name\`, not both" "\`--id\` 与 \`--name\` 只能用一个"
  [[ -z $id || $id =~ ^[1-9][0-9]{0,14}$ ]] ||
    usage_error "Expected \`--id\` to be a positive integer, got \`$id\`" "\`--id\` 必须是正整数，得到 \`$id\`"
  [[ ${#name} -le 512 && $name != *[[:cntrl:]]* && $name != *$'\xc2'[$'\x80'-$'\x9f']* ]] || bad_name
}

# Leaves because of the name.
bad_name() {
  usage_error "Expected \`--name\` to be 1 to 128 characters without control characters" \
    "\`--name\` 必须是 1 到 128 个字符，且不含控制字符"
}

# Passes signal $1 on. A terminal has sent INT and QUIT to the command already.
forward() {
  interrupted=on
  [[ $1 == USR? ]] || received=${received:-$1}
  if [[ -n $child ]]; then
    [[ $1 == @(INT|QUIT) && -n $terminal ]] || kill -s "$1" "$child" 2>/dev/null
  else
    early=$1
  fi
}

language=${QL_LANG:-${LC_ALL:-${LC_MESSAGES:-${LANG-}}}}
origin='' id='' name='' command=() received='' interrupted='' child='' early='' terminal=''
parse "$@"
check

here=${BASH_SOURCE[0]}
[[ ! -L $here ]] || here=$(readlink -f -- "$here")
[[ $here == */* ]] || here=./$here
unset -v QLB_LIBRARY QL_EXECUTION_ORIGIN
QLB_LIBRARY=1
if [[ -r ${here%/*}/share.sh ]]; then
  # shellcheck source=shell/share.sh
  . "${here%/*}/share.sh"
  qlb_run rest 2>/dev/null
  qlb_run command "$origin" "$id" "$name" 2>/dev/null
  [[ $? != 3 ]] || bad_name
fi

[[ ! -t 0 ]] || terminal=on
for signal in TERM INT HUP QUIT USR1 USR2; do
  # shellcheck disable=SC2064 # each trap is to carry its own signal, as it is now
  trap "forward $signal" "$signal"
done

# In the background, since bash acts on a signal only when a command in the foreground has ended. A background command
# of a script loses its input and ignores INT and QUIT, unless told otherwise.
if { : <&0; } 2>/dev/null; then
  (
    trap - INT QUIT
    exec -- "${command[@]}"
  ) <&0 &
else
  (
    trap - INT QUIT
    exec -- "${command[@]}"
  ) <&- &
fi
child=$!
# Readers of a pipe must see its end when the command closes it, and bash has nothing to say about the command's death.
exec </dev/null >/dev/null 2>&1
[[ -z $early ]] || forward "$early"

while :; do
  interrupted=''
  wait "$child"
  code=$?
  [[ -n $interrupted ]] || break
done

stopped=''
[[ -z $received ]] || stopped=true
! declare -F qlb_run || qlb_run finish "$code" "$stopped" "$received"

# Who was ended by a signal ends by that signal, so that a caller sees what it would have seen.
trap - TERM INT HUP QUIT USR1 USR2
ulimit -c 0
case $code:$received in
  143:TERM | 130:INT | 129:HUP | 131:QUIT) kill -s "$received" "$$" ;;
esac
exit "$code"
