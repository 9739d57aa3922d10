# splits.gp: scaled error against num_splits. Columns: num_splits, median, 90 %, worst, bound.
set logscale x 2
set logscale y 10
do for [f in formats] {
    eval terminal(f)
    set output out.'.'.f
    load base.'.set'
    plot data using 1:5 with filledcurves y1=y_low fc rgb PALE, data using 1:5 with lines lc rgb '#444444' lw 1.5 dt 2, \
         data using 1:3 with lines lc rgb '#999999' lw 1 dt 3, \
         data using 1:2 with lines lc rung_colour(rung) lw 2.5, \
         data using 1:4 with linespoints lc rung_colour(rung) lw 1.5 pt rung_point(rung) ps 0.9
}
