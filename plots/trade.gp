# trade.gp: error against time, a point a rung. Columns: time, error, number. Rungs of one error keep apart by their points.
set logscale x 10
set logscale y 10
do for [f in formats] {
    eval terminal(f)
    set output out.'.'.f
    load base.'.set'
    plot for [i=1:words(list)] data every ::i-1::i-1 using 1:2 with points ps 1.4 lc rung_colour(word(list, i)) \
             pt rung_point(word(list, i)), \
         for [i=1:words(list)] data every ::i-1::i-1 using 1:2:3 with labels offset 0, (i % 2 ? 0.9 : -0.9) font SMALL
}
