# error.gp: scaled error against kv_len. Columns: kv_len, worst, median, bound, worst and median of the parent, worst of
# each older ancestor.
BAND = "data using 1:4 with filledcurves y1=y_low fc rgb PALE, data using 1:4 with lines lc rgb '#444444' lw 1.5 dt 2, "
OLDER = "for [i=1:elders] data using 1:(column(6 + i)) with lines lc rgb '#c4c4c4' lw 1.2, "
PARENT = "data using 1:6 with linespoints lc rgb '#999999' lw 1 dt 3 pt rung_point(parent) ps 0.4, " \
    . "data using 1:5 with linespoints lc rgb '#999999' lw 1.5 pt rung_point(parent) ps 0.8, "
OWN = "data using 1:3 with linespoints lc rung_colour(rung) lw 1 dt 3 pt rung_point(rung) ps 0.4, " \
    . "data using 1:2 with linespoints lc rung_colour(rung) lw 2.5 pt rung_point(rung) ps 0.9"
set logscale x 2
set logscale y 10
do for [f in formats] {
    eval terminal(f)
    set output out.'.'.f
    load base.'.set'
    eval 'plot ' . (has_bound ? BAND : '') . (elders ? OLDER : '') . (has_parent ? PARENT : '') . OWN
}
