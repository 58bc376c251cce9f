# shellcheck shell=bash
sleep 5
