# panels.gp: a figure of several panels, whose .set plots them one after the other.
do for [f in formats] {
    eval f eq 'svg' ? svg_terminal('660,470') : png_terminal('900,600')
    set output out.'.'.f
    set multiplot
    load base.'.set'
    unset multiplot
}
