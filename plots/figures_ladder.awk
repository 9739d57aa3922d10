# figures_ladder.awk: figures of all rungs together. Behind figure_parts.awk; figures.awk calls it.

# All rungs in one figure: the worst error (timed 0), or the time over the read floor of the same run (1).
function ladder_figure(figure, timed,   i, j, r, k, lo, hi, list, n, y, best, most, g, last) {
    if (timed ? !base : sweep_type == "")
        return
    begin(figure)
    lo = 1e300
    for (i = 1; i <= rungs; i++) {
        r = rung[i]
        if (timed ? !(r in config) || config[r] != config[base] : !((r, sweep_type) in sweep_n))
            continue
        list = list (n++ ? " " : "") r
        for (j = 1; j <= (timed ? timings[r] : sweep_n[r, sweep_type]); j++) {
            k = timed ? bkv[r, j] : sweep_kv[r, sweep_type, j]
            y = see(timed ? over_floor(r, k) : err[r, sweep_type, k])
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
        note = r == base ? "1" : gain(r, base, k)
        printf "set label %d '%s' at graph 0.72, first %d left font BOLD\n", ++tag, note, -n > set
        if (p)
            printf "set label %d '%s, %s' at graph 0.84, first %d left font SMALL tc rgb '#595959'\n", ++tag, \
                gain(r, p, k), two(p), -n > set
        spoken = spoken " " two(r) " " name[r] ": " note (t > 0 ? ", " gain(r, p, k) " over " two(p) : "") "."
    }
    heading("Fastest at " keys(k) " keys: " two(best) " " name[best] \
        (best == base ? "" : noise(best, base, k) ? ", level with " two(base) " " name[base] : \
        ", " times(speedup(best, base, k)) " the speed of " two(base) " " name[base]), \
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

# Error against time: what a rung costs, and what it buys. One point a rung.
function trade_figure(   i, r, n, list, lo, hi, x, y, best, worst_) {
    if (!ladder_kv || !ladder_at)
        return
    begin("ladder-trade")
    lo = 1e300
    for (i = 1; i <= rungs; i++) {
        r = rung[i]
        x = time(r, ladder_kv)
        if (x <= 0 || !((r, ladder_at) in e_p50) || !known(e_p50[r, ladder_at]) || e_p50[r, ladder_at] <= 0)
            continue
        y = e_p50[r, ladder_at]
        list = list (n++ ? " " : "") r
        print x, see(y), two(r) > dat
        lo = x < lo ? x : lo
        hi = x > hi ? x : hi
        if (!best || y < e_p50[best, ladder_at])
            best = r
        if (!worst_ || y > e_p50[worst_, ladder_at])
            worst_ = r
        print two(r) " " name[r] ": " duration(x) ", " show(y) " u." > alt
    }
    if (!n)
        return
    heading("Most accurate: " two(best) " " name[best] ", " compare(e_p50[best, ladder_at], e_p50[worst_, ladder_at], \
        "below", "above") " " two(worst_) " " name[worst_] "; what it costs is to the right", \
        "error: " sweep_family ", " keys(ladder_at) " keys; time: " config[base] ", " keys(ladder_kv) " keys", \
        "median scaled error E, in units of u = 2^-24 of sum p|v|; lower, and further left, is better")
    y_axis(0)
    time_axis(lo, hi)
    printf "list = '%s'\n", list > set
    finish()
}

# Ticks of 1, 2, 5 along x, for times.
function time_axis(lo, hi,   d, k, t, s) {
    lo /= 1.5
    hi *= 1.5
    for (d = 0; d <= 12; d++)
        for (k = 1; k <= 5; k += k < 2 ? 1 : 3) {
            t = k * exp(d * log(10))
            if (t >= lo && t <= hi)
                s = s sprintf("%s'%s' %.6g", s == "" ? "" : ", ", tick(t), t)
        }
    printf "set xrange [%g:%g]\nset xtics (%s)\n", lo, hi, s > set
    printf "set label 5 'time of one call' at graph 0.5, screen 0.06 center font SMALL tc rgb '#333333'\n" > set
}

# Bytes of scratch against kv_len. A rung without any has no line.
function workspace_figure(   i, j, r, k, n, list, lo, hi, ids, none, g) {
    if (!base)
        return
    begin("ladder-workspace")
    lo = 1e300
    for (i = 1; i <= rungs; i++) {
        r = rung[i]
        g = config[r]
        if (!(r in config) || g != config[base])
            continue
        if (!(work[g, r, when[r]] > 0)) {
            none = none (none == "" ? "" : ", ") two(r)
            continue
        }
        list = list (n++ ? " " : "") r
        for (j = 1; j <= timings[r]; j++) {
            k = bkv[r, j]
            print k, see(work[g, r, k] / 1024) > dat
            lo = k < lo ? k : lo
            hi = k > hi ? k : hi
        }
        printf "\n\n" > dat
    }
    if (!n)
        return
    split(list, ids, " ")
    heading("Workspace at " keys(hi) " keys: from " size(work[config[base], lightest(ids, n), hi]) " to " \
        size(work[config[base], heaviest(ids, n), hi]) (none == "" ? "" : "; none at all: " none), \
        config[base], "scratch memory of one call, KiB; lower is better")
    x_axis(lo, hi)
    y_axis(0)
    for (i = 1; i <= n; i++) {
        label(short(ids[i]), work[config[base], ids[i], hi] / 1024, mark(ids[i]))
        print two(ids[i]) " " name[ids[i]] ": " size(work[config[base], ids[i], hi]) " at " keys(hi) " keys." > alt
    }
    place()
    printf "unset arrow\nlist = '%s'\nset rmargin at screen 0.77\n", list > set
    finish()
}

function lightest(ids, n,   i, b) {
    for (i = 1; i <= n; i++)
        if (!b || work[config[base], ids[i], when[ids[i]]] < work[config[base], b, when[b]])
            b = ids[i]
    return b
}

function heaviest(ids, n,   i, b) {
    for (i = 1; i <= n; i++)
        if (!b || work[config[base], ids[i], when[ids[i]]] > work[config[base], b, when[b]])
            b = ids[i]
    return b
}

# Time per token against position, with the time to read the same bytes.
function decode_figure(   i, j, r, k, n, list, lo, hi, ids, least, most, t) {
    if (!decode_rungs)
        return
    begin("ladder-decode")
    lo = 1e300
    for (i = 1; i <= decode_rungs; i++) {
        r = decode_rung[i]
        if (!(decode_ns[r, decode_kv[r, decode_n[r]]] > 0))
            continue
        list = list (n++ ? " " : "") r
        for (j = 1; j <= decode_n[r]; j++) {
            k = decode_kv[r, j]
            print k, see(decode_ns[r, k]), see(decode_floor[r, k]) > dat
            lo = k < lo ? k : lo
            hi = k > hi ? k : hi
        }
        printf "\n\n" > dat
        t = decode_twice(r)
        if (least == "" || t < least)
            least = t
        if (most == "" || t > most)
            most = t
    }
    if (!n)
        return
    split(list, ids, " ")
    heading("Twice the cache takes " times(least) " to " times(most) " the time: " \
        (least > 1.2 ? "nothing is flat here" : most < 1.2 ? "flat" : "flat for some"), \
        decode_shape ", a plan for the whole way", "time per token, median of neighbouring steps; dashed: a read of the same K and V")
    x_axis(lo, hi)
    y_axis(1)
    for (i = 1; i <= n; i++) {
        r = ids[i]
        label(short(r), decode_ns[r, hi], mark(r))
        print two(r) " " name[r] ": " duration(decode_ns[r, decode_kv[r, 1]]) " at " decode_kv[r, 1] " keys, " \
            duration(decode_ns[r, hi]) " at " hi "; " times(decode_twice(r)) " for twice the keys." > alt
    }
    label("read floor", decode_floor[ids[1], hi], "font SMALL tc rgb '#444444'")
    place()
    printf "unset arrow\nlist = '%s'\nset rmargin at screen 0.77\n", list > set
    finish()
}
