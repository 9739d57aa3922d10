#!/bin/sh
# run.sh PROGRAM OUT [options of `flashdecode cases`]: other people's attention on a CPU, judged: the guide's algorithm in NumPy
# and ONNX Runtime's GroupQueryAttention, on the cases of --smoke unless options say otherwise; and the reader of the golden
# vectors in Python. NumPy, onnx and onnxruntime come into a throw-away virtual environment, OUT/venv. What a library is known
# to get wrong is in data/measured, and is no failure; anything worse is. OUT/NAME.record.csv is what is kept there.
# Exit code: 0, 1, 2 usage, 77 if Python or the packages cannot be had.
set -u
[ $# -ge 2 ] || { sed -n '2,7s/^# //p' "$0"; exit 2; }
program=$1 out=$2
shift 2
[ $# -gt 0 ] || set -- --smoke
here=$(dirname "$0")
known=data/measured/52022d54
passed=0 failed=0 skipped=0
export PYTHONDONTWRITEBYTECODE=1

mkdir -p "$out" && out=$(cd "$out" && pwd) || exit 2
python=$out/venv/bin/python
if [ ! -x "$python" ] && ! python3 -m venv "$out/venv" >"$out/venv.txt" 2>&1; then
    echo "adapters: skipped: python3 -m venv does not work here: $(tail -n 1 "$out/venv.txt")"
    exit 77
fi
if ! "$python" -c 'import numpy, onnx, onnxruntime' 2>/dev/null &&
    ! "$python" -m pip install -q --disable-pip-version-check numpy onnx onnxruntime >"$out/venv.txt" 2>&1; then
    echo "adapters: skipped: numpy, onnx and onnxruntime cannot be had: $(tail -n 1 "$out/venv.txt")"
    exit 77
fi

# part WHAT COMMAND...: counts it.
part() {
    what=$1
    shift
    if "$@"; then passed=$((passed + 1)); else failed=$((failed + 1)); echo "FAIL $what"; fi
}

# answer NAME ADAPTER [its options]: the adapter's answers to a copy of the cases.
answer() {
    folder=$out/$1 adapter=$2
    shift 2
    rm -rf "$folder" && mkdir "$folder" && ln "$out"/cases/* "$folder/" || return 1
    "$python" "$here/$adapter" "$folder" "$@" >"$folder.txt" 2>&1 || { tail -n 5 "$folder.txt"; return 1; }
}

# judged CODE NAME TITLE: do the verdicts of its folder, beside what is known of it, end with that exit code?
judged() {
    folder=$out/$2
    "$program" check "$folder" --name "$3" --csv "$folder.csv" --junit "$folder.xml" \
        $([ -f "$known/adapter-$2.csv" ] && echo "--baseline $known/adapter-$2.csv --growth 1e9") >"$folder.verdicts.txt"
    code=$?
    grep -E '^(FAIL|   (known|passes now|against))' "$folder.verdicts.txt" | cut -c1-150
    echo "$3: $(tail -n 1 "$folder.verdicts.txt")"
    "$python" "$here/record.py" "$folder.csv" "$folder.txt" >"$folder.record.csv" && [ $code -eq "$1" ]
}

same_bits() { # NAME OTHER: every answer
    for file in "$out/$1"/*.out.safetensors; do
        cmp "$file" "$out/$2/${file##*/}" || return 1
    done
}
not() { ! "$@"; }

rm -rf "$out/cases"
"$program" cases "$out/cases" "$@" >/dev/null || exit 2
part "the guide in NumPy answers" answer numpy-guide numpy_guide.py --checks "$out/numpy-guide.checks.csv"
part "the guide in NumPy, judged" judged 0 numpy-guide "the guide, in NumPy"
part "the guide without its 1e-8 answers" answer numpy-guide-0 numpy_guide.py --epsilon 0
part "1e-8 changes no bit" same_bits numpy-guide numpy-guide-0
part "the guide with 1e-6 answers" answer numpy-guide-1e-6 numpy_guide.py --epsilon 1e-6
part "1e-6 is caught" judged $([ -f $known/adapter-numpy-guide-1e-6.csv ] && echo 0 || echo 1) numpy-guide-1e-6 "the guide, 1e-6 for 1e-8"
part "ONNX Runtime answers" answer onnxruntime-gqa onnxruntime_gqa.py
part "ONNX Runtime, judged" judged 0 onnxruntime-gqa "ONNX Runtime GroupQueryAttention"
golden() { (cd data/golden && "$python" judge.py "$1" *.safetensors) >"$out/golden.txt" 2>&1; }
part "judge.py passes what is right" golden naive:attention
part "judge.py fails what is wrong" not golden naive:wrong
part "... and nothing else" grep -q '^118 passed, 4 failed' "$out/golden.txt"
part "judge.c as a library" cc -shared -fPIC -Dstatic= -Dmain=judge_main data/golden/judge.c data/golden/naive.c -lm -o "$out/judge.so"
part "judge.py and judge.c have one pass line" "$python" "$here/golden_agree.py" "$out/judge.so" data/golden
if python3 -c 'import torch' 2>/dev/null; then
    python_venv=$python python=python3
    part "PyTorch SDPA answers" answer torch-math torch_sdpa.py --backend math --device cpu
    python=$python_venv
    part "PyTorch SDPA, judged" judged 0 torch-math "PyTorch SDPA math, CPU"
else
    echo "PyTorch: skipped, not installed (tests/adapters/gpu.sh judges it on a machine that has it)"
    skipped=$((skipped + 1))
fi
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
