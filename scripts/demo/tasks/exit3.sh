# shellcheck shell=bash
# A .sh task is sourced by the panel, so this ends the panel's script too: the panel itself never reports a finish.
echo 'nothing to do'
exit 3
