#!/bin/sh
# safetensors_roundtrip.sh BUILD: files of tensors both ways between this program and the Python package safetensors, in a
# virtual environment under BUILD; then the example of tutorials/dumps.md. Exit code 77, and one line, if
# the packages cannot be had.
set -u
build=$1
venv=$build/python
dir=$build/roundtrip

if ! "$venv/bin/python" -c 'import numpy, safetensors' 2>/dev/null; then
    rm -rf "$venv"
    if ! { python3 -m venv "$venv" && "$venv/bin/pip" install -q numpy safetensors; } >"$build/python.txt" 2>&1; then
        echo "SKIPPED: no Python with venv, or no packages numpy and safetensors ($build/python.txt)"
        exit 77
    fi
fi
rm -rf "$dir" && mkdir -p "$dir" || exit 2
set -e
"$build/flashdecode" cases "$dir/package" --smoke
"$venv/bin/python" tests/adapters/safetensors_roundtrip.py "$dir/package"
"$build/flashdecode" check "$dir/package"

"$build/flashdecode" cases "$dir/example" --smoke --dtype fp32
"$venv/bin/python" tutorials/dumps/sdpa.py "$dir/example"
"$build/flashdecode" check "$dir/example"
