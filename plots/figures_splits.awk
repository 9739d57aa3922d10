# figures_splits.awk: error and time of one rung against num_splits. Behind figure_parts.awk; figures.awk calls it.

function split_axis(r) {
    x_axis(split_kv[r, 1], split_kv[r, split_n[r]])
    printf "set label 5 'num_splits' at graph 0.5, screen 0.06 center font SMALL tc rgb '#333333'\n" > set
}

function splits_figure(r,   i, k, n, b, bb) {
    begin(two(r) "-splits")
    n = split_n[r]
    for (i = 1; i <= n; i++) {
        k = split_kv[r, i]
        print k, see(split_at[r, k, "err_p50"]), see(split_at[r, k, "err_p90"]), see(split_at[r, k, "err_max"]), \
            see(split_at[r, k, "bound"]) > dat
    }
    b = least_at(r, "err_p50")
    bb = least_at(r, "bound")
    k = split_kv[r, 1]
    heading(two(r) " " name[r] ": the median error is least with " plural(b, "split") ", " \
        compare(split_at[r, b, "err_p50"], split_at[r, k, "err_p50"], "below", "above") " that with " k, \
        split_shape, "scaled error E, in units of u = 2^-24 of sum p|v|; lower is better")
    split_axis(r)
    y_axis(0)
    k = split_kv[r, n]
    label("proved bound", split_at[r, k, "bound"], "font BOLD tc rgb '#444444'")
    label("worst", split_at[r, k, "err_max"], mark(r))
    label("90 %", split_at[r, k, "err_p90"], "tc rgb '#333333'")
    label("median", split_at[r, k, "err_p50"], "font BOLD tc rgb '#333333'")
    place()
    printf "rung = %d\n", r > set
    print "Log-log line chart. " plural(split_kv[r, 1], "split") ": median " show(split_at[r, split_kv[r, 1], "err_p50"]) \
        " u, worst " show(split_at[r, split_kv[r, 1], "err_max"]) " u, bound " \
        show(split_at[r, split_kv[r, 1], "bound"]) " u. " b " splits: " show(split_at[r, b, "err_p50"]) " u, " \
        show(split_at[r, b, "err_max"]) " u and " show(split_at[r, b, "bound"]) " u. The bound is least at " bb "." > alt
    finish()
}

function splits_time_figure(r,   i, k, n, b) {
    n = split_n[r]
    if (!(split_at[r, split_kv[r, 1], "ns_median"] > 0))
        return
    begin(two(r) "-splits-time")
    for (i = 1; i <= n; i++) {
        k = split_kv[r, i]
        print k, see(split_at[r, k, "ns_median"]), see(split_at[r, k, "ns_p25"]), see(split_at[r, k, "ns_p75"]), \
            see(split_at[r, k, "floor_ns"]) > dat
    }
    b = least_at(r, "ns_median")
    k = split_kv[r, 1]
    heading(two(r) " " name[r] ": fastest with " plural(b, "split") ", " \
        (split_at[r, b, "ns_p75"] >= split_at[r, k, "ns_p25"] ? "level with" : \
        compare(split_at[r, b, "ns_median"], split_at[r, k, "ns_median"], "faster than", "slower than")) " " k, \
        split_shape ", " plural(split_at[r, k, "threads"], "thread"), "time of one call, median with quartiles; lower is better")
    split_axis(r)
    y_axis(1)
    k = split_kv[r, n]
    label(short(r), split_at[r, k, "ns_median"], "font BOLD " mark(r))
    label("read floor (same run)", split_at[r, k, "floor_ns"], "font SMALL tc rgb '#444444'")
    place()
    printf "rung = %d\nset rmargin at screen 0.77\n", r > set
    print "Log-log line chart. With " plural(split_kv[r, 1], "split") " a call takes " \
        duration(split_at[r, split_kv[r, 1], "ns_median"]) ", with " plural(b, "split") " " \
        duration(split_at[r, b, "ns_median"]) ", with " plural(k, "split") " " \
        duration(split_at[r, k, "ns_median"]) "." > alt
    finish()
}
