# figures.awk: writes FIGURE.dat, FIGURE.set (ranges, ticks, labels in gnuplot's words) and FIGURE.alt (text) into dir.
# Titles are sentences made from the numbers, so a figure never says what its data do not.

END {
    prepare()
    for (i = 1; i <= rungs; i++) {
        if (rung[i] in type)
            error_figure(rung[i])
        if (rung[i] in config)
            time_figure(rung[i])
    }
    ladder_figure("ladder-error", 0)
    ladder_figure("ladder-floor", 1)
    speedup_figure()
}

function error_figure(r,   p, i, k, n, k0, title, b, t) {
    begin(two(r) "-error")
    p = parent[r]
    p = p && (p in type) && type[p] == type[r] ? p : 0
    n = points[r]
    b = 0
    for (i = 1; i <= n; i++) {
        k = kv[r, i]
        odd(r, k, e_max[r, k])
        b += known(e_bound[r, k])
        print k, see(e_max[r, k]), see(e_p50[r, k]), see(e_bound[r, k]), \
            (p && ((p, k) in e_max) ? see(e_max[p, k]) " " see(e_p50[p, k]) : "? ?") > dat
    }
    k0 = shared(r, 0)
    title = two(r) " " name[r] ": worst error " show(e_max[r, k0]) " u at " keys(k0) " keys, " \
        (p ? compare(e_max[r, k0], e_max[p, k0], "below", "above") " its parent's" : \
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
        label("worst of " two(p), e_max[p, k], mark_parent(p))
        label("median of " two(p), e_p50[p, k], "tc rgb GREY")
    }
    place()
    i = int((n + 1) / 2)
    t = e_bound[r, kv[r, i]]
    if (known(t) && t / e_max[r, kv[r, i]] > 8)
        printf "set label 9 'pass: every error below the dashed line' at %d,%.6g center front " \
            "font SMALL tc rgb '#56704c'\n", kv[r, i], sqrt(t * e_max[r, kv[r, i]]) > set
    printf "rung = %d\nparent = %d\nhas_parent = %d\nhas_bound = %d\n", r, p ? p : 1, p != 0, b != 0 > set
    i = kv[r, 1]
    print "Log-log line chart. At " keys(i) " keys the worst error is " show(e_max[r, i]) " u, the median " \
        show(e_p50[r, i]) " u and the proved bound " show(e_bound[r, i]) " u; at " keys(k) " keys " \
        show(e_max[r, k]) " u, " show(e_p50[r, k]) " u and " show(e_bound[r, k]) " u." \
        (p ? " The parent " two(p) " " name[p] " has " show(e_max[p, k]) " u and " show(e_p50[p, k]) " u at " keys(k) \
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
            (p && ((g, p, k) in ns) ? see(ns[g, p, k]) " " see(ns25[g, p, k]) " " see(ns75[g, p, k]) : "? ? ?") > dat
    }
    k0 = shared(r, 1)
    title = two(r) " " name[r] ": " duration(time(r, k0)) " at " keys(k0) " keys, " \
        (p ? compare(time(r, k0), time(p, k0), "faster than", "slower than") " " two(p) : "") \
        (p && floor[g, r, k0] > 0 ? ", " : "") \
        (floor[g, r, k0] > 0 ? times(time(r, k0) / floor[g, r, k0]) " the read floor" : "")
    heading(title, g ", " plural(threads[g, r, k0], "thread") ", " heat(r), \
        "time of one call, median with quartiles; lower is better")
    x_axis(bkv[r, 1], when[r])
    y_axis(1)
    k = when[r]
    label(short(r), ns[g, r, k], "font BOLD " mark(r))
    label("read floor (same run)", floor[g, r, k], "font SMALL tc rgb '#444444'")
    if (p)
        label(short(p), time(p, k), mark_parent(p))
    place()
    printf "rung = %d\nparent = %d\nhas_parent = %d\nhas_floor = %d\n", r, p ? p : 1, p != 0, fl != 0 > set
    print "set rmargin at screen 0.77" > set
    i = bkv[r, 1]
    print "Log-log line chart. At " keys(i) " keys a call takes " duration(ns[g, r, i]) ", at " keys(k) \
        " keys " duration(ns[g, r, k]) ", where reading the same bytes takes " duration(floor[g, r, k]) "." \
        (p ? " The parent " two(p) " " name[p] " takes " duration(time(p, k)) "." : "") > alt
    finish()
}

# All rungs in one figure: the worst error (timed 0), or the time over the read floor of the same run (1).
function ladder_figure(figure, timed,   i, j, r, k, lo, hi, list, n, y, best, most, g, last) {
    if (timed ? !base : sweep_type == "")
        return
    begin(figure)
    lo = 1e300
    for (i = 1; i <= rungs; i++) {
        r = rung[i]
        if (timed ? !(r in config) || config[r] != config[base] : !(r in type) || type[r] != sweep_type)
            continue
        list = list (n++ ? " " : "") r
        for (j = 1; j <= (timed ? timings[r] : points[r]); j++) {
            k = timed ? bkv[r, j] : kv[r, j]
            y = see(timed ? over_floor(r, k) : e_max[r, k])
            print k, y > dat
            if (k < lo)
                lo = k
            if (k > hi)
                hi = k
            if (y != "?") {
                last[r] = y + 0
                last_kv[r] = k
            }
        }
        printf "\n\n" > dat
    }
    if (y_high < 0)
        return
    n = split(list, ids, " ")
    for (i = 1; i <= n; i++) {
        if (last_kv[ids[i]] != hi)
            continue
        if (!best || last[ids[i]] < last[best])
            best = ids[i]
        if (!most || last[ids[i]] > last[most])
            most = ids[i]
    }
    if (timed)
        heading("Nearest to the read floor at " keys(hi) " keys: " two(best) " " name[best] ", " times(last[best]), \
            config[base] ", " heat(base), \
            "time of one call over the time to read the same bytes in the same run; lower is better")
    else
        heading("Least error at " keys(hi) " keys: " two(best) " " name[best] ", " \
            compare(last[best], last[most], "below", "above") " " two(most) " " name[most], \
            sweep_family " inputs, " types(sweep_type) ", " sweep_shape, \
            "worst scaled error E, in units of u = 2^-24 of sum p|v|; lower is better")
    if (timed)
        see(1)
    x_axis(lo, hi)
    y_axis(0)
    printf "unset arrow\n" > set
    if (timed) {
        label("read floor", 1, "font SMALL tc rgb '#444444'")
        printf "set arrow 1 from graph 0, first 1 to graph 1, first 1 nohead lc rgb '#444444' lw 1.5 dt 2\n" > set
    }
    for (i = 1; i <= n; i++) {
        label(short(ids[i]), last[ids[i]], mark(ids[i]))
        print two(ids[i]) " " name[ids[i]] ": " (timed ? times(last[ids[i]]) : show(last[ids[i]]) " u") " at " \
            keys(last_kv[ids[i]]) " keys." > alt
    }
    place()
    printf "list = '%s'\nset rmargin at screen 0.77\n", list > set
    finish()
}

function speedup_figure(   i, r, n, s, t, thin, p, list, best, high, tics, k, note, spoken) {
    if (!ladder_kv)
        return
    begin("ladder-speedup")
    k = ladder_kv
    for (i = 1; i <= rungs; i++) {
        r = rung[i]
        s = speedup(r, base, k)
        if (s < 0)
            continue
        p = parent[r]
        t = p && p != base ? speedup(r, p, k) : -1
        list = list (n++ ? " " : "") r
        print r, s, (t > 0 ? t : "?") > dat
        tics = tics sprintf("%s%s %d", n > 1 ? ", " : "", quote(short(r)), -n)
        thin += t > 0
        if (s > high)
            high = s
        if (t > high)
            high = t
        if (!best || s > speedup(best, base, k))
            best = r
        note = r == base ? "1" : times(s)
        printf "set label %d '%s' at graph 0.72, first %d left font BOLD\n", ++tag, note, -n > set
        if (p)
            printf "set label %d '%s of %s' at graph 0.84, first %d left font SMALL tc rgb '#595959'\n", ++tag, \
                times(speedup(r, p, k)), two(p), -n > set
        spoken = spoken " " two(r) " " name[r] ": " times(s) (t > 0 ? ", " times(t) " of " two(p) : "") "."
    }
    heading("Fastest at " keys(k) " keys: " two(best) " " name[best] \
        (best == base ? "" : ", " times(speedup(best, base, k)) " the speed of " two(base) " " name[base]), \
        config[base] ", cache " cache[config[base], base, k], \
        "speed, as a multiple of another rung's; higher is better")
    print "Bars, with the speed over " two(base) " and over the parent." spoken > alt
    printf "has_parent = %d\nlist = '%s'\nset ytics (%s)\n", thin, list, tics > set
    printf "set label 7 'over %s' at graph 0.72, graph 1.0 left font SMALL tc rgb '#333333'\n", two(base) > set
    printf "set label 8 'over the parent' at graph 0.84, graph 1.0 left font SMALL tc rgb '#333333'\n" > set
    printf "set yrange [%.2f:-0.2]\nset xrange [0:%.6g]\n", -n - 0.6, high / 0.69 > set
    printf "set format x '%%gx'\nset xtics auto\n" > set
    finish()
}
