#!/bin/sh
# gpu.sh PROGRAM OUT [options of `flashdecode cases`]: PyTorch's backends of scaled_dot_product_attention on this machine's GPU,
# judged, a type at a time. Needs python3 with torch; PROGRAM may be built without CUDA, here or elsewhere. Run it at the top
# of the repository. Default: the cases of --smoke; --size small asks for all of the size (several GB, many minutes).
#
#   OUT/torch-BACKEND-TYPE.csv          judged as fp32 arithmetic: what is not, fails, and is named
#   OUT/torch-BACKEND-TYPE.tensor.csv   16 bit: judged as tensor cores whose weights are rounded to that type, where PROGRAM
#                                       has these hypotheses (check --accumulate)
#   OUT/*.record.csv                    what data/measured keeps
#
# What is there already is not done again. Environment: BACKENDS, TYPES, PYTHON, DEVICE=cpu, and FD_COMMIT
# where git cannot say it. Exit code: 0 whatever the verdicts are, 2 usage, 77 no torch or no GPU.
set -u
[ $# -ge 2 ] || { sed -n '2,14s/^# \{0,1\}//p' "$0"; exit 2; }
program=$1 out=$2
shift 2
[ $# -gt 0 ] || set -- --smoke
here=$(dirname "$0")
BACKENDS=${BACKENDS:-math flash efficient cudnn} TYPES=${TYPES:-fp32 fp16 bf16} PYTHON=${PYTHON:-python3} DEVICE=${DEVICE:-cuda}
"$PYTHON" -c "import torch, sys; sys.exit('$DEVICE' == 'cuda' and not torch.cuda.is_available())" 2>/dev/null ||
    { echo "gpu.sh: $PYTHON has no torch, or torch no GPU"; exit 77; }
mkdir -p "$out" || exit 2
export PYTHONDONTWRITEBYTECODE=1 PYTHONWARNINGS=ignore FD_LIBM_CACHE="${FD_LIBM_CACHE:-$out/libm_error.csv}"
export FD_COMMIT="${FD_COMMIT:-$(git rev-parse --short HEAD 2>/dev/null)}"
[ "$DEVICE" != cuda ] || nvidia-smi --query-gpu=name,driver_version --format=csv,noheader | head -n 1 >"$out/gpu.txt"
hypotheses=$("$program" check --help | grep -c -e '--accumulate')

# judge FILE FOLDER TITLE [hypotheses]
judge() {
    csv=$1.csv folder=$2 title=$3
    shift 3
    "$program" check "$folder" --name "$title" --csv "$csv" "$@" >"${csv%.csv}.verdicts.txt"
    echo "$title $*: $(tail -n 1 "${csv%.csv}.verdicts.txt")"
    [ "$DEVICE" != cuda ] || sed -i "1i # gpu: $(cat "$out/gpu.txt")" "$csv"
    "$PYTHON" "$here/record.py" "$csv" "$folder.txt" >"${csv%.csv}.record.csv"
}

for type in $TYPES; do
    cases=$out/cases-$type
    [ -f "$cases/index.csv" ] || "$program" cases "$cases" --dtype "$type" "$@" || exit 2
    for backend in $BACKENDS; do
        name=torch-$backend-$type
        [ ! -f "$out/$name.record.csv" ] || continue
        rm -rf "$out/$name" && mkdir "$out/$name" && ln "$cases"/* "$out/$name/" || exit 2
        "$PYTHON" "$here/torch_sdpa.py" "$out/$name" --backend "$backend" --device "$DEVICE" >"$out/$name.txt" 2>&1
        code=$?
        head -n 4 "$out/$name.txt"
        [ $code -eq 0 ] || continue
        if [ "$type" != fp32 ] && [ "$hypotheses" -gt 0 ]; then
            judge "$out/$name.tensor" "$out/$name" "PyTorch SDPA $backend, as tensor cores" --accumulate tensor-core --weights "$type"
        fi
        judge "$out/$name" "$out/$name" "PyTorch SDPA $backend"
        rm -rf "$out/$name"
    done
done
