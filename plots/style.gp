# style.gp: what all figures share. A rung keeps its colour and its point shape in every figure.
# Wants: base, the path without extension of FIGURE.set (labels, ranges) and FIGURE.dat; out, the same for the results.
set encoding utf8
set colorsequence podo
set datafile missing "?"
set clip two
unset key
GREY = '#767676'
PALE = '#edf3ea'
rung_colour(r) = word('1 2 3 4 6 7 8', (int(r) - 1) % 7 + 1) + 0 # without podo's yellow
rung_point(r) = word('7 5 9 11 13 15 6 4 8 12', (int(r) - 1) % 10 + 1) + 0

set border 3 lc rgb GREY
set tics nomirror scale 0.5 textcolor rgb '#333333'
set mxtics 1
set mytics 1
set grid ytics lc rgb '#dddddd' lt 1 lw 0.7
set lmargin at screen 0.085
set rmargin at screen 0.815
set tmargin at screen 0.82
set bmargin at screen 0.155

svg_terminal(size) = "set terminal svg size " . size . " dynamic noenhanced font 'sans-serif,12' background '#ffffff'; " . \
    "TITLE = 'sans-serif:Bold,13.5'; BOLD = 'sans-serif:Bold,12'; SMALL = 'sans-serif,11'; DROP = -0.22"
png_terminal(size) = "set terminal pngcairo size " . size . " noenhanced font 'sans-serif,11.5' background '#ffffff'; " . \
    "TITLE = 'sans-serif:Bold,13'; BOLD = 'sans-serif:Bold,11.5'; SMALL = 'sans-serif,10'; DROP = 0"
terminal(f) = f eq 'svg' ? svg_terminal('660,410') : png_terminal('900,520')
