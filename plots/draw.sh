#!/bin/sh
# draw.sh WORK OUT: draws every WORK/FIGURE.set into OUT as SVG and, where gnuplot can, PNG.
set -eu
work=$1 out=$2
plots=$(cd "$(dirname "$0")" && pwd)

fail() {
    echo "plots: $*" >&2
    exit 2
}

command -v gnuplot > /dev/null || fail "gnuplot is not installed; make setup installs it (Debian: gnuplot-nox)"
formats=svg
if gnuplot -e 'set terminal pngcairo' > /dev/null 2>&1; then
    formats="svg png"
else
    echo "plots: this gnuplot has no pngcairo terminal, so there are no PNG copies; the SVG figures are complete" >&2
fi

mkdir -p "$out"
count=0
for set in "$work"/*.set; do
    [ -f "$set" ] || fail "no row of verify.csv has plot = 1 and no row of bench.csv has a time: nothing to draw"
    figure=$(basename "$set" .set)
    case $figure in
    gpu-read-* | gpu-blocks-* | gpu-splits-* | gpu-combine-*) script=panels ;;
    gpu-*) script=gpu ;;
    ladder-speedup | ladder-trade | ladder-decode) script=${figure#ladder-} ;;
    ladder-*) script=lines ;;
    *) script=${figure#*-} ;;
    esac
    gnuplot -e "base='$work/$figure'; out='$work/$figure'; formats='$formats'" "$plots/style.gp" "$plots/$script.gp" ||
        fail "gnuplot could not draw $figure"
    # Ids get the figure's name, so that many figures can live in one page; the description replaces gnuplot's own.
    alt=$(tr '\n' ' ' < "$work/$figure.alt" | sed -e 's/&/\&amp;/g; s/</\&lt;/g; s/>/\&gt;/g' -e 's/[\\&|]/\\&/g')
    sed -e "s/ id=\(['\"]\)/ id=\1fig-$figure-/g; s/href='#/href='#fig-$figure-/g; s/url(#/url(#fig-$figure-/g" \
        -e 's/font-family="\([^":]*\):Bold"/font-family="\1" font-weight="bold"/' \
        -e '/<g id="[^"]*"/s/ *><title>[^<]*<\/title>/>/' \
        -e "s|^<title>.*</title>|<title>$figure</title>|; s|^<desc>.*</desc>|<desc>$alt</desc>|" \
        "$work/$figure.svg" > "$out/$figure.svg" 2> "$work/why" || {
        rm -f "$out/$figure.svg"
        fail "cannot write $out/$figure.svg; is the disk full?"
    }
    [ ! -f "$work/$figure.png" ] || mv "$work/$figure.png" "$out/$figure.png"
    count=$((count + 1))
done
echo "plots: $count figures in $out ($formats)"
