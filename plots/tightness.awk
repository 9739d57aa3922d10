# tightness.awk: error over bound of every case against kv_len, o in fp32, as a figure: how near to the bound do inputs come.
# Behind csv.awk and figure_parts.awk, on one verify.csv; -v dir=. One point a case: the rung that comes nearest.

FNR == 1 { file = FILENAME; sub(/.*\//, "", file) }
/^# processor:/ { machine = substr($0, 14) }
/^# commit:/ { machine = machine ", commit " substr($0, 11) }
/^#/ { next }
!header {
    header = 1
    csv_header($0, "rung case family dtype_o kv_len ratio verdict vacuous")
    next
}
{ csv_split($0, cell) }
tolower(get("verdict")) == "pass" && get("dtype_o") == "fp32" && get("vacuous") == 0 && get("rung") > 1 {
    r = num(get("ratio"))
    c = get("case")
    if (r > 0 && known(r) && !(c in worst && worst[c] >= r)) {
        worst[c] = r
        k[c] = get("kv_len")
        family[c] = get("family")
    }
}

END {
    if (bad)
        exit bad
    begin("proofs-tightness")
    nearest = 0
    far = 0
    lo = 1e300
    hi = 0
    n = split("attained gaussian", kind, " ")
    for (i = 0; i <= n; i++) {
        for (c in worst) {
            which = family[c] == "attained" ? 1 : family[c] == "gaussian" ? 2 : 0
            if (which != i)
                continue
            if (worst[c] >= 1e-6)
                print k[c], see(worst[c]) > dat
            else
                below++
            nearest = worst[c] > nearest ? worst[c] : nearest
            if (k[c] < lo) lo = k[c]
            if (k[c] > hi) hi = k[c]
            if (which == 2 && k[c] > longest) {
                longest = k[c]
                far = 0
            }
            if (which == 2 && k[c] == longest && worst[c] > far)
                far = worst[c]
        }
        print "\n" > dat
    }
    if (nearest == 0 || far == 0)
        die(file ": no attained or no gaussian case passed: nothing to draw")
    see(1)
    heading("Some inputs come within " sprintf("%.2g", 100 * (1 - nearest)) " % of the bound; Gaussian ones stay " \
        times(1 / far) " below", "every case with o in fp32, the nearest of rungs 02 to 24; Gaussian: at " keys(longest) " keys" \
        (below ? "; " below " cases below 10^-6 not drawn" : ""), "error over proved bound; 1 is the bound")
    x_axis(lo, hi)
    y_axis(0)
    label("the bound", 1, "font BOLD tc rgb '#444444'")
    label("attained", nearest, "font BOLD tc rgb '#333333'")
    label("Gaussian", far, "font BOLD tc rgb '#333333'")
    place()
    print "Log-log scatter plot. The nearest case is at " sprintf("%.4f", nearest) " of its bound; Gaussian inputs at " \
        keys(longest) " keys reach " show(far) " of it." > alt
    finish()
}
