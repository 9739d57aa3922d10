# tightness.gp: error over bound against kv_len. Blocks: other families, attained, Gaussian.
set logscale x 2
set logscale y 10
do for [f in formats] {
    eval terminal(f)
    set output out.'.'.f
    load base.'.set'
    plot 1 with lines lc rgb '#444444' lw 1.5 dt 2, \
         data index 0 using 1:2 with points lc rgb '#bbbbbb' pt 7 ps 0.4, \
         data index 2 using 1:2 with points lc rung_colour(5) pt 5 ps 0.8, \
         data index 1 using 1:2 with points lc rung_colour(2) pt 9 ps 1.1
}
