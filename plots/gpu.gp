# gpu.gp: a figure of gpu_figures.awk, whose .set says what is plotted (clauses).
do for [f in formats] {
    eval terminal(f)
    set output out.'.'.f
    load base.'.set'
    eval 'plot ' . clauses
}
