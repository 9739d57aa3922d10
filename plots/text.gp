# text.gp: a figure of lines.gp for a terminal; each rung is drawn as its number.
TITLE = ''
BOLD = ''
SMALL = ''
DROP = 0
GREY = '#767676'
set terminal dumb noenhanced mono size 79,20
set datafile missing "?"
set logscale x 2
set logscale y 10
unset key
rung_colour(r) = 1
rung_point(r) = 1
load base.'.set'
unset label
unset arrow
set border 3
set tics nomirror
set lmargin 9
set rmargin 3
set xlabel 'kv_len'
plot for [i=1:words(list)] data index i-1 using 1:2:(word(list, i)) with labels
