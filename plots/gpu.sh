#!/bin/sh
# gpu.sh: what is said about the CUDA rungs from results recorded on a GPU, on any machine.
#   gpu.sh figures OUT_DIR            the figures gpu-*, SVG and PNG
#   gpu.sh section FIGURES_DIR        the report's section, HTML on standard output
#   gpu.sh check FILE.md              exit code 1 if `pages` would change something
#   gpu.sh pages FILE.md              the blocks <!-- gpu: begin --> of FILE.md (the ladder) and
#                                     <!-- gpu: begin, rung 22 --> of the pages of tutorials/ beside it
set -eu
mode=${1:-} target=${2:-}
plots=$(cd "$(dirname "$0")" && pwd)
measured=$plots/../data/measured
recorded=$measured/h200

fail() {
    echo "gpu: $*" >&2
    exit 2
}

[ -n "$target" ] || fail "use: gpu.sh figures|section|pages|check PATH"
for f in h200/bench h200/verify h200/relations h200/sanitize h200/huge h200/sms h200/parts h200/blocks peers/h200; do
    [ -f "$measured/$f.csv" ] || fail "data/measured/$f.csv is missing; git checkout data restores it"
done
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# The rungs of the recorded run; the program that reads this may have others.
mkdir "$work/in" "$work/sets"
awk -F, '
    /^#/ { next }
    !header { header = 1; for (i = 1; i <= NF; i++) at[$i] = i; print "rung,name,parent,idea"; next }
    !seen[$at["rung"]]++ { print $at["rung"] "," $at["name"] "," $at["parent"] "," }
' "$recorded/bench.csv" > "$work/in/ladder.csv"

ask() { # PROGRAM... : on the recorded files
    awk "$@" "$work/in/ladder.csv" "$recorded/verify.csv" "$recorded/bench.csv" "$recorded/relations.csv" \
        "$recorded/sanitize.csv" "$recorded/huge.csv" "$recorded/sms.csv" "$recorded/parts.csv" "$recorded/blocks.csv" \
        "$measured/peers/h200.csv"
}
common="-f $plots/csv.awk -f $plots/results.awk -f $plots/gpu.awk -f $plots/gpu_observe.awk -f $plots/gpu_combine.awk
    -f $plots/gpu_peers.awk"

case $mode in
figures)
    # shellcheck disable=SC2086
    ask -v dir="$work/sets" $common -f "$plots/figure_parts.awk" -f "$plots/gpu_figures.awk" \
        -f "$plots/gpu_peers_figure.awk" -f "$plots/gpu_observe_figures.awk"
    sh "$plots/draw.sh" "$work/sets" "$target"
    ;;
section)
    # shellcheck disable=SC2086
    ask -v results="$target" $common -f "$plots/html.awk" -f "$plots/gpu_guide.awk" -f "$plots/gpu_section.awk"
    ;;
pages | check)
    changed=""
    for page in "$target" "$(dirname "$target")"/tutorials/*.md; do
        grep -q '^<!-- gpu: begin' "$page" || continue
        number=$(sed -n 's/^<!-- gpu: begin, rung \([0-9]*\) -->$/\1/p' "$page")
        # shellcheck disable=SC2086
        ask -v page="$number" $common -f "$plots/gpu_guide.awk" -f "$plots/gpu_pages.awk" > "$work/block"
        sed -e '/^<!-- gpu: begin/,/^<!-- gpu: end/{/^<!-- gpu/!d}' -e "/^<!-- gpu: begin/r $work/block" \
            "$page" > "$work/page"
        cmp -s "$work/page" "$page" && continue
        changed="$changed $page"
        [ "$mode" = check ] || cp "$work/page" "$page"
    done
    if [ "$mode" = check ] && [ -n "$changed" ]; then
        echo "gpu: out of date:$changed; sh plots/gpu.sh pages $target"
        exit 1
    fi
    ;;
*) fail "unknown: $mode" ;;
esac
