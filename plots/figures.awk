# figures.awk: writes FIGURE.dat, FIGURE.set (ranges, ticks, labels in gnuplot's words) and FIGURE.alt (text) into dir.
# Titles are sentences made from the numbers, so a figure never says what its data do not.

END {
    prepare()
    for (i = 1; i <= rungs; i++) {
        if (rung[i] in type) {
            error_figure(rung[i])
            ulps_figure(rung[i])
        }
        if (rung[i] in config) {
            time_figure(rung[i])
            gain_figure(rung[i])
        }
        if (rung[i] in split_n) {
            splits_figure(rung[i])
            splits_time_figure(rung[i])
        }
    }
    ladder_figure("ladder-error", 0)
    ladder_figure("ladder-floor", 1)
    speedup_figure()
    trade_figure()
    workspace_figure()
    decode_figure()
}

# The ancestors of r behind its parent that were measured alike, the nearest first, in old[1..]. Returns their number.
function ancestors(r, old,   n, a) {
    for (a = parent[parent[r]]; a; a = parent[a])
        if (alike(a, r))
            old[++n] = a
    return n + 0
}

function error_figure(r,   p, i, j, k, n, k0, title, b, t, old, elders) {
    begin(two(r) "-error")
    p = parent[r]
    p = alike(p, r) ? p : 0
    n = points[r]
    b = 0
    elders = ancestors(r, old)
    for (i = 1; i <= n; i++) {
        k = kv[r, i]
        odd(r, k, e_max[r, k])
        b += known(e_bound[r, k])
        t = ""
        for (j = 1; j <= elders; j++)
            t = t " " (((old[j], type[r], k) in err) ? see(err[old[j], type[r], k]) : "?")
        print k, see(e_max[r, k]), see(e_p50[r, k]), see(e_bound[r, k]), \
            (p && ((p, type[r], k) in err) ? see(err[p, type[r], k]) " " see(p50[p, type[r], k]) : "? ?") t > dat
    }
    k0 = shared(r, 0)
    title = two(r) " " name[r] ": worst error " show(e_max[r, k0]) " u at " keys(k0) " keys, " \
        (p ? compare(e_max[r, k0], err[p, type[r], k0], "below", "above") " its parent's" : \
        compare(e_max[r, k0], e_bound[r, k0], "below", "ABOVE") " the proved bound")
    heading(title, sweep_family " inputs, " types(type[r]) ", " sweep_shape, \
        "scaled error E, in units of u = 2^-24 of sum p|v|; lower is better")
    x_axis(kv[r, 1], at[r])
    y_axis(0)
    k = at[r]
    label("proved bound", e_bound[r, k], "font BOLD tc rgb '#444444'")
    label("worst of " two(r), e_max[r, k], "font BOLD " mark(r))
    label("median of " two(r), e_p50[r, k], "tc rgb '#333333'")
    if (p) {
        label("worst of " two(p), err[p, type[r], k], mark_parent(p))
        label("median of " two(p), p50[p, type[r], k], "tc rgb GREY")
    }
    i = int((n + 1) / 2)
    t = e_bound[r, kv[r, i]]
    if (known(t) && t / e_max[r, kv[r, i]] > 8)
        printf "set label 9 'pass: every error below the dashed line' at %d,%.6g center front " \
            "font SMALL tc rgb '#56704c'\n", kv[r, i], sqrt(t * e_max[r, kv[r, i]]) > set
    if (elders)
        label("worst of older rungs", err[old[elders], type[r], k], "font SMALL tc rgb '#8a8a8a'")
    place()
    printf "rung = %d\nparent = %d\nhas_parent = %d\nhas_bound = %d\nelders = %d\n", r, p ? p : 1, p != 0, b != 0, \
        elders > set
    i = kv[r, 1]
    print "Log-log line chart. At " keys(i) " keys the worst error is " show(e_max[r, i]) " u, the median " \
        show(e_p50[r, i]) " u and the proved bound " show(e_bound[r, i]) " u; at " keys(k) " keys " \
        show(e_max[r, k]) " u, " show(e_p50[r, k]) " u and " show(e_bound[r, k]) " u." \
        (p ? " The parent " two(p) " " name[p] " has " show(err[p, type[r], k]) " u and " show(p50[p, type[r], k]) " u at " keys(k) \
        " keys." : "") > alt
    finish()
}

function time_figure(r,   p, i, k, n, k0, g, title, fl) {
    begin(two(r) "-time")
    p = parent[r]
    g = config[r]
    p = p && (p in config) && config[p] == g ? p : 0
    n = timings[r]
    fl = 0
    for (i = 1; i <= n; i++) {
        k = bkv[r, i]
        fl += floor[g, r, k] > 0
        print k, see(ns[g, r, k]), see(ns25[g, r, k]), see(ns75[g, r, k]), see(floor[g, r, k]), \
            (p && ((g, p, k) in ns) ? see(ns[g, p, k]) " " see(ns25[g, p, k]) " " see(ns75[g, p, k]) : "? ? ?"), \
            (threads[g, r, k] > 1 && ((g, r, k) in ns_one) ? see(ns_one[g, r, k]) : "?") > dat
    }
    k0 = shared(r, 1)
    title = two(r) " " name[r] ": " duration(time(r, k0)) " at " keys(k0) " keys, " \
        (p ? compare_times(r, p, k0, "faster than", "slower than") " " two(p) : "") \
        (p && floor[g, r, k0] > 0 ? ", " : "") \
        (floor[g, r, k0] > 0 ? times(time(r, k0) / floor[g, r, k0]) " the read floor" : "")
    heading(title, g ", " plural(threads[g, r, k0], "thread") ", " heat(r), \
        "time of one call, median with quartiles; lower is better")
    x_axis(bkv[r, 1], when[r])
    y_axis(1)
    k = when[r]
    label(short(r), ns[g, r, k], "font BOLD " mark(r))
    if (threads[g, r, k] > 1 && ((g, r, k) in ns_one))
        label(two(r) ", one thread", ns_one[g, r, k], "font SMALL tc rgb '#444444'")
    label("read floor (same run)", floor[g, r, k], "font SMALL tc rgb '#444444'")
    if (p)
        label(short(p), time(p, k), mark_parent(p))
    place()
    printf "rung = %d\nparent = %d\nhas_parent = %d\nhas_floor = %d\nhas_one = %d\n", r, p ? p : 1, p != 0, fl != 0, \
        (threads[g, r, k] > 1 && ((g, r, k) in ns_one)) > set
    print "set rmargin at screen 0.77" > set
    i = bkv[r, 1]
    print "Log-log line chart. At " keys(i) " keys a call takes " duration(ns[g, r, i]) ", at " keys(k) \
        " keys " duration(ns[g, r, k]) ", where reading the same bytes takes " duration(floor[g, r, k]) "." \
        (p ? " The parent " two(p) " " name[p] " takes " duration(time(p, k)) "." : "") > alt
    finish()
}

# How many units in the last place: quantiles over the elements of a call.
function ulps_figure(r,   i, k, n, key, q) {
    n = points[r]
    split("ulp_p50 ulp_p90 ulp_p99 ulp_max", q, " ")
    if (!((r, type[r], kv[r, 1], q[1]) in ulp))
        return
    begin(two(r) "-ulps")
    for (i = 1; i <= n; i++) {
        key = r SUBSEP type[r] SUBSEP kv[r, i]
        print kv[r, i], see(ulp[key, q[1]]), see(ulp[key, q[2]]), see(ulp[key, q[3]]), see(ulp[key, q[4]]) > dat
    }
    k = at[r]
    key = r SUBSEP type[r] SUBSEP k
    heading(two(r) " " name[r] ": half of the elements within " show(ulp[key, q[1]]) " ulp at " keys(k) " keys, 99 % within " \
        show(ulp[key, q[3]]), sweep_family " inputs, " types(type[r]) ", " sweep_shape, \
        "error of o in units in its last place (ulp); elements near 0 have small ulps; lower is better")
    x_axis(kv[r, 1], k)
    y_axis(0)
    label("worst", ulp[key, q[4]], mark(r))
    label("99 %", ulp[key, q[3]], "tc rgb '#333333'")
    label("90 %", ulp[key, q[2]], "tc rgb '#333333'")
    label("median", ulp[key, q[1]], "font BOLD tc rgb '#333333'")
    place()
    printf "rung = %d\n", r > set
    print "Log-log line chart. At " keys(k) " keys: median " show(ulp[key, q[1]]) " ulp, 90 % within " \
        show(ulp[key, q[2]]) ", 99 % within " show(ulp[key, q[3]]) ", worst " show(ulp[key, q[4]]) "." > alt
    finish()
}

# Speed over the first rung and over the parent.
function gain_figure(r,   i, k, n, p, has_parent) {
    if (r == base || !base || config[base] != config[r])
        return
    begin(two(r) "-gain")
    p = parent[r]
    has_parent = p && p != base && speedup(r, p, shared(r, 1)) > 0
    n = timings[r]
    for (i = 1; i <= n; i++) {
        k = bkv[r, i]
        print k, see(speedup(r, base, k)), (has_parent ? see(speedup(r, p, k)) : "?") > dat
    }
    see(1)
    k = when[r]
    heading(two(r) " " name[r] ": at " keys(k) " keys " gain_words(r, base, k) (has_parent ? ", " gain_words(r, p, k) : ""), \
        config[r] ", " plural(threads[config[r], r, k], "thread") ", " heat(r), \
        "speed, as a multiple of another rung's; higher is better")
    x_axis(bkv[r, 1], k)
    y_axis(0)
    label("over " two(base), speedup(r, base, k), "font BOLD " mark(r))
    if (has_parent)
        label("over " two(p), speedup(r, p, k), mark_parent(p))
    label("level", 1, "font SMALL tc rgb '#444444'")
    place()
    printf "rung = %d\nparent = %d\nhas_parent = %d\nset rmargin at screen 0.85\n", r, p ? p : 1, has_parent > set
    print "set arrow 1 from graph 0, first 1 to graph 1, first 1 nohead lc rgb '#444444' lw 1.5 dt 2" > set
    print "Log-log line chart. At " keys(bkv[r, 1]) " keys " gain_words(r, base, bkv[r, 1]) "; at " keys(k) " keys " \
        gain_words(r, base, k) (has_parent ? ", " gain_words(r, p, k) : "") "." > alt
    finish()
}

function gain_words(r, p, k) {
    return speedup(r, p, k) > 0 ? compare_times(r, p, k, "faster than", "slower than") " " two(p) : "not timed beside " two(p)
}
