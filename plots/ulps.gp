# ulps.gp: error in ulps against kv_len. Columns: kv_len, median, 90 %, 99 %, worst.
set logscale x 2
set logscale y 10
do for [f in formats] {
    eval terminal(f)
    set output out.'.'.f
    load base.'.set'
    plot data using 1:2:4 with filledcurves fc rgb '#e9eef3', \
         data using 1:3 with lines lc rgb '#999999' lw 1 dt 3, \
         data using 1:4 with lines lc rgb '#999999' lw 1, \
         data using 1:2 with lines lc rung_colour(rung) lw 2.5, \
         data using 1:5 with linespoints lc rung_colour(rung) lw 1.5 pt rung_point(rung) ps 0.9
}
