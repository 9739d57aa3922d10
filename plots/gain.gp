# gain.gp: speed over the first rung and over the parent against kv_len. Columns: kv_len, over the first, over the parent.
PARENT = "data using 1:3 with linespoints lc rgb '#999999' lw 1.5 pt rung_point(parent) ps 0.8, "
OWN = "data using 1:2 with linespoints lc rung_colour(rung) lw 2.5 pt rung_point(rung) ps 0.9"
set logscale x 2
set logscale y 10
do for [f in formats] {
    eval terminal(f)
    set output out.'.'.f
    load base.'.set'
    eval 'plot ' . (has_parent ? PARENT : '') . OWN
    unset arrow
}
