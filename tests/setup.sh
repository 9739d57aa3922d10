#!/bin/sh
# setup.sh PACKAGE...: installs what is missing with apt-get; elsewhere, or without root, prints what to install.
set -eu
missing=""
if command -v dpkg-query >/dev/null 2>&1; then
    for p in "$@"; do
        dpkg-query -W -f '${Status}\n' "$p" 2>/dev/null | grep -q 'ok installed' || missing="$missing $p"
    done
    [ -z "$missing" ] && exit 0
fi
if ! command -v apt-get >/dev/null 2>&1; then
    echo "setup: no apt-get here. Install, with headers, what Debian calls: $*" >&2
    echo "setup: then run 'make doctor', and the target that you want without setup." >&2
    exit 2
fi
sudo=""
if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null 2>&1 || { echo "setup: not root and no sudo. Ask for: apt-get install$missing" >&2; exit 2; }
    sudo=sudo
fi
echo "setup: installing$missing"
export DEBIAN_FRONTEND=noninteractive
$sudo apt-get update -qq || { echo "setup: apt-get update failed; check the network and the package sources" >&2; exit 2; }
log=$(mktemp)
# shellcheck disable=SC2086
if ! $sudo apt-get install -y -qq --no-install-recommends $missing >"$log" 2>&1; then
    tail -n 5 "$log" >&2
    rm -f "$log"
    echo "setup: apt-get install$missing failed; see above" >&2
    exit 2
fi
rm -f "$log"
