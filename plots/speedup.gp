# speedup.gp: a bar per rung for its speed over the first one, a thin one for its speed over its parent.
# Columns: rung, speed over the first, over the parent. Linear, from 0, with 1.0 marked.
FIRST = "for [i=1:words(list)] data every ::i-1::i-1 using (0):(-i):(0):2:(-i-0.06):(-i+0.3) with boxxyerror " \
    . "fs solid 1 noborder lc rung_colour(word(list, i))"
PARENT = ", data using (0):(-$0-1):(0):3:(-$0-1.3):(-$0-1.12) with boxxyerror fs solid 1 noborder lc rgb '#aaaaaa'"
set grid noytics xtics
set border 1
set lmargin at screen 0.21
set rmargin at screen 0.97
do for [f in formats] {
    eval terminal(f)
    set output out.'.'.f
    load base.'.set'
    set arrow 1 from 1, graph 0 to 1, graph 1 nohead lc rgb '#444444' lw 1.5 dt 2 back
    eval 'plot ' . FIRST . (has_parent ? PARENT : '')
}
