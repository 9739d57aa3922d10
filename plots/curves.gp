# curves.gp: margin over a tier's line against the size of the fault, from `flashdecode curves --csv FILE`.
# Use: gnuplot -e "csv='curves.csv'; out='curves.svg'" plots/curves.gp
# A line for each tier and dtype on Gaussian inputs; above 1 the fault is detected. Margins of 0 and infinity are not drawn.
set datafile separator ','
set terminal svg size 1100,560 dynamic noenhanced font 'sans-serif,11' background '#ffffff'
set output out
set logscale y 10
set format y '10^%T'
set yrange [0.01:1e7]
set grid ytics lc rgb '#dddddd'
set border 3
set tics nomirror
set key off
faults = '"sm_scale" "weights" "exp argument" "key dropped" "partial_o bits" "sum of p v" "sum of l"'
sizes = '"off by 2^-k" "off by 2^-k" "k bits" "1 of 2^k" "k bits" "k bits" "k bits"'
dtypes = 'fp32 fp16 bf16'
colours = '#1f5a99 #c05a00 #3c8031'
margin(fault, dtype, tier) = strcol(1) eq fault && strcol(2) eq dtype && strcol(3) eq tier && strcol(4) eq 'gaussian' ? $7 : NaN
set multiplot layout 2,4
do for [f = 1:words(faults)] {
    set title word(faults, f)
    set xlabel 'k (' . word(sizes, f) . ')'
    plot 1 with lines lc rgb '#444444' lw 1.5, \
        for [d = 1:3] csv skip 1 using 5:(margin(word(faults, f), word(dtypes, d), 'proved')) \
            with points pt 7 ps 0.6 lc rgb word(colours, d), \
        for [d = 1:3] csv skip 1 using 5:(margin(word(faults, f), word(dtypes, d), 'statistical')) \
            with points pt 6 ps 0.6 lc rgb word(colours, d)
}
unset title; unset xlabel; unset border; unset tics; unset grid
set label 1 'filled: error over the proved bound' at graph 0, 0.8
set label 2 'open: standard deviations over 6' at graph 0, 0.7
do for [d = 1:3] {
    set label 2 + d word(dtypes, d) at graph 0, 0.6 - 0.1 * d textcolor rgb word(colours, d)
}
plot NaN
unset multiplot
