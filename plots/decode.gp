# decode.gp: time per token against position; block i of the data is the i-th of `list`. Columns: kv_len, time, read floor.
set logscale x 2
set logscale y 10
do for [f in formats] {
    eval terminal(f)
    set output out.'.'.f
    load base.'.set'
    plot for [i=1:words(list)] data index i-1 using 1:3 with lines lc rgb '#444444' lw 1 dt 2, \
         for [i=1:words(list)] data index i-1 using 1:2 with linespoints lw 2 ps 0.7 \
             lc rung_colour(word(list, i)) pt rung_point(word(list, i))
}
