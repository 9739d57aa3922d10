#!/bin/sh
# play.sh DIR: a fresh copy of this checkout, to break things in. Called in a copy, it copies the checkout that the copy is of.
# Files keep their times, so that make builds only what is edited there, and git looks at them once, or its first checkout
# would write all of them anew. Exit code: 0, 2 DIR is something else.
set -eu
dir=$1
cd "$(cat build/play_origin 2>/dev/null || pwd)"
if [ -e "$dir" ] && [ ! -f "$dir/build/play_origin" ]; then
    echo "make play: $dir is there already and is no such copy; remove it, or name another: PLAY=dir" >&2
    exit 2
fi
rm -rf "$dir"
cp -rp . "$dir"
origin=$(pwd)
cd "$dir"
git status >/dev/null 2>&1 || :
mkdir -p build
echo "$origin" >build/play_origin
echo "A copy is in $dir: cd $dir"
