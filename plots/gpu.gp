# gpu.gp: a figure of gpu_figures.awk, whose .set says what is plotted (clauses).
# The shape of rung_point(r), hollow where that is filled, filled where it is hollow.
twin_point(r) = rung_point(r) % 2 ? rung_point(r) - 1 : rung_point(r) + 1
do for [f in formats] {
    eval terminal(f)
    set output out.'.'.f
    load base.'.set'
    eval 'plot ' . clauses
}
