# splits-time.gp: time of a call against num_splits. Columns: num_splits, median, quartiles, read floor.
set logscale x 2
set logscale y 10
do for [f in formats] {
    eval terminal(f)
    set output out.'.'.f
    load base.'.set'
    plot data using 1:5 with lines lc rgb '#444444' lw 1.5 dt 2, \
         data using 1:2:3:4 with yerrorbars lc rung_colour(rung) lw 1.5 pt 0, \
         data using 1:2 with linespoints lc rung_colour(rung) lw 2.5 pt rung_point(rung) ps 0.9
}
