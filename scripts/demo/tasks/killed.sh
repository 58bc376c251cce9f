# shellcheck shell=bash
sleep 1
kill -9 $$
