# time.gp: time of a call against kv_len. Columns: kv_len, median, quartiles, read floor, the parent's three, own median
# with one thread.
FLOOR = "data using 1:5 with lines lc rgb '#444444' lw 1.5 dt 2, "
PARENT = "data using 1:6:7:8 with yerrorbars lc rgb '#999999' lw 1 pt 0, " \
    . "data using 1:6 with linespoints lc rgb '#999999' lw 1.5 pt rung_point(parent) ps 0.8, "
ONE = "data using 1:9 with lines lc rung_colour(rung) lw 1 dt 3, "
OWN = "data using 1:2:3:4 with yerrorbars lc rung_colour(rung) lw 1.5 pt 0, " \
    . "data using 1:2 with linespoints lc rung_colour(rung) lw 2.5 pt rung_point(rung) ps 0.9"
set logscale x 2
set logscale y 10
do for [f in formats] {
    eval terminal(f)
    set output out.'.'.f
    load base.'.set'
    eval 'plot ' . (has_floor ? FLOOR : '') . (has_parent ? PARENT : '') . (has_one ? ONE : '') . OWN
}
