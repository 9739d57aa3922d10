# gpu_observe_figures.awk: where blocks ran, what a read needs, splits and waves, the combine. Behind gpu_figures.awk and
# gpu_observe.awk. A figure of several panels plots in its .set (panels.gp); block i of .dat is data index i - 1.

function observed_figures() {
    prepare_observed()
    machine = observed_stamp
    read_figure()
    blocks_figure(grouped)
    blocks_figure(ungrouped)
    splits_figure(grouped)
    splits_figure(ungrouped)
    combine_figure(grouped)
}

# ---- Panels --------------------------------------------------------------------------------------

# Begins a panel between these edges, in parts of the screen from the left and from the bottom.
function panel(left_, right_, low, high) {
    if (panels++)
        print "unset label\nunset arrow" > set
    tag = 10
    printf "set lmargin at screen %.4f\nset rmargin at screen %.4f\nset bmargin at screen %.4f\n" \
        "set tmargin at screen %.4f\nunset logscale\nset format '%%g'\nset xtics auto\nset ytics auto\n", \
        left_, right_, low, high > set
}

function panel_end() {
    gsub(/\n/, " ", clauses)
    print "plot " clauses > set
    clauses = ""
}

function panel_text(text, x, y, look) {
    printf "set label %d %s at %s,%s %s\n", ++tag, quote(text), x, y, look > set
}

function upright(x, text, look) {
    printf "set arrow %d from %.6g, graph 0 to %.6g, graph 1 nohead lc rgb '#999999' lw 1 dt 2\n", ++tag, x, x > set
    if (text != "")
        panel_text(text, sprintf("first %.6g", x), "graph 0.97", "left offset char 0.3,0 font SMALL tc rgb GREY " look)
}

function level(y, text, look) {
    printf "set arrow %d from graph 0, first %.6g to graph 1, first %.6g nohead lc rgb '#444444' lw 1.2 dt 2\n", \
        ++tag, y, y > set
    if (text != "")
        panel_text(text, "graph 0.985", sprintf("first %.6g", y), "right offset char 0,0.5 font SMALL tc rgb '#444444' " look)
}

# ---- What a read needs ---------------------------------------------------------------------------

function read_figure(   i, j, n, r, x, style, said, named, used) {
    open_figure("gpu-read-sms")
    panels = 0
    used = 32
    heading(used " of " sms " SMs read at " percent(read_share(used)) " of the full speed, half of them at " \
        percent(read_share(sms / 2)), \
        keys(ref) " keys, heads " grouped ", " elements ", cache cold; a block of 1024 threads has an SM to itself", \
        "time of the fastest read over time of this one, same run; rungs: time of that read over theirs")
    panel(0.085, 0.79, 0.155, 0.82)
    for (i = 1; i <= loads_n; i++) {
        n = read_n[loads_of[i]]
        split("", order)
        for (j = 1; j <= n; j++)
            order[j] = read_at[loads_of[i], j]
        sort(order, n)
        for (j = 1; j <= n; j++)
            print order[j], 100 * read_full / read_ns[loads_of[i], order[j]] > dat
        style = "lines lw 2 dt " word_of("3 4 2 1", i) " lc rgb '" word_of("#999999 #777777 #555555 #222222", i) "'"
        curve(style)
        x = 100 * read_full / read_ns[loads_of[i], order[n]]
        panel_text(loads_seen[loads_of[i]] / 1024 " KiB", "graph 1.02", sprintf("graph %.3f", 0.66 - 0.075 * (i - 1)), \
            "left font SMALL tc rgb '" word_of("#999999 #777777 #555555 #222222", i) "'")
        printf "set arrow %d from graph 1.13, graph %.3f to graph 1.19, graph %.3f nohead lw 2 dt %s lc rgb '%s'\n", ++tag, \
            0.66 - 0.075 * (i - 1), 0.66 - 0.075 * (i - 1), word_of("3 4 2 1", i), \
            word_of("#999999 #777777 #555555 #222222", i) > set
        said = said " With " loads_seen[loads_of[i]] / 1024 " KiB on their way in each block, " used " blocks reach " \
            percent(read_full / read_ns[loads_of[i], used]) ", " sms " blocks " \
            percent(read_full / read_ns[loads_of[i], sms]) ", " sms + 1 " blocks " \
            percent(read_full / read_ns[loads_of[i], sms + 1]) "."
    }
    panel_text("on their way", "graph 1.02", "graph 0.81", "left font SMALL tc rgb '#333333'")
    panel_text("in a block:", "graph 1.02", "graph 0.74", "left font SMALL tc rgb '#333333'")
    panel_text("rungs:", "graph 1.02", "graph 0.30", "left font SMALL tc rgb '#333333'")
    split("21 22 24 28", named, " ")
    for (i = 1; i in named; i++) {
        r = named[i]
        print first_sms(r, grouped, ref), 100 / over_read(1, grouped, r, ref) > dat
        clause("data index " block_end() " using 1:2 with points pt rung_point(" r ") ps 1.2 lc rung_colour(" r ")")
        panel_text(two(r) ": " percent(1 / over_read(1, grouped, r, ref)), "graph 1.05", \
            sprintf("graph %.3f", 0.23 - 0.07 * (i - 1)), \
            "left font SMALL point pt rung_point(" r ") ps 1 lc rung_colour(" r ") offset char 0.6,DROP")
        said = said " Rung " r ": " percent(1 / over_read(1, grouped, r, ref)) " on " first_sms(r, grouped, ref) " SMs."
    }
    upright(sms, "one wave", "")
    upright(2 * sms, "two", "")
    upright(3 * sms, "", "")
    panel_text("blocks, each alone on a multiprocessor", "graph 0.5", "screen 0.06", "center font SMALL tc rgb '#333333'")
    printf "set xrange [0:%d]\nset yrange [0:104]\nset format y '%%g %%%%'\n", 3 * sms + 1 > set
    printf "set xtics (0, 32, %d, %d, %d, %d)\n", sms / 2, sms, 2 * sms, 3 * sms > set
    panel_end()
    print "Line chart." said > alt
    finish()
}

# ---- Where blocks ran ----------------------------------------------------------------------------

function blocks_figure(h,   i, r, named, n, said) {
    open_figure("gpu-blocks-" file_word(h))
    panels = 0
    split("20 21 22 28", named, " ")
    heading("21 has " first_sms(21, h, ref) " of " sms " SMs for " duration(took(1, h, 21, ref)) ", " two(last) " has " \
        (first_sms(last, h, ref) == sms ? "all" : first_sms(last, h, ref)) " for " duration(took(1, h, last, ref)), \
        "one step at " keys(ref) " keys, batch 1, heads " h ", " elements ", cache cold; each panel has its own time", \
        "a line: an SM has at least one block; yellow: blocks of the combine, which may wait; grey: 20's later kernels")
    for (i = 1; i <= 4; i++) {
        r = named[i]
        panel(i % 2 ? 0.075 : 0.565, i % 2 ? 0.475 : 0.965, i <= 2 ? 0.51 : 0.11, i <= 2 ? 0.735 : 0.335)
        said = said " " blocks_panel(r, h, i) "."
    }
    print "Four time charts, an SM a line." said > alt
    finish()
}

# One panel; returns its words.
function blocks_panel(r, h, i,   a, l, n, j, unit, least, look, sm, x, y) {
    a = r SUBSEP h SUBSEP ref
    unit = to[a, 0, ""] > 2e6 ? 1e6 : 1e3
    least = to[a, 0, ""] / 600 # shorter gaps cannot be seen
    for (l = 0; l < launches[a, 0]; l++) {
        sm = -1
        n = stretches[a, l]
        for (j = 1; j <= n; j++) {
            if (stretch_sm[a, l, j] == sm && stretch_from[a, l, j] <= y + least) {
                y = stretch_to[a, l, j] > y ? stretch_to[a, l, j] : y
                continue
            }
            if (sm >= 0)
                printf "%.5g %d %.5g 0\n", x / unit, sm, (y - x) / unit > dat
            sm = stretch_sm[a, l, j]
            x = stretch_from[a, l, j]
            y = stretch_to[a, l, j]
        }
        printf "%.5g %d %.5g 0\n", x / unit, sm, (y - x) / unit > dat
        look = l == 0 ? "rung_colour(" r ")" : r >= 22 ? "rgb '#f0a000'" : word_of("rgb_'#999999' rgb_'#444444'", l)
        sub(/_'/, " '", look)
        clause("data index " block_end() " using 1:2:3:4 with vectors nohead lw 1.3 lc " look)
    }
    printf "set xrange [0:%.5g]\nset yrange [%d:-1]\nset ytics (0, %d, %d, %d)\n", 1.0 * to[a, 0, ""] / unit, sms, \
        sms / 4, sms / 2, sms - 1 > set
    print "set xtics auto\nset grid noxtics noytics" > set
    panel_text(two(r) " " name[r] ": " (unit == 1e6 ? "ms" : "us") \
        (slowed_note(r, h, ref) == "" ? "" : " (" slowed_note(r, h, ref) ")"), "graph 0", "graph 1.21", "left font BOLD")
    panel_text(panel_words(r, h), "graph 0", "graph 1.07", "left font SMALL tc rgb '#333333'")
    if (i % 2)
        panel_text("SM", "graph -0.17", "graph 0.5", "left font SMALL tc rgb '#333333'")
    panel_end()
    return sms_words(r, h) (slowed_note(r, h, ref) == "" ? "" : ", " slowed_note(r, h, ref))
}

function panel_words(r, h) {
    return all_sms(r, h, ref) " SMs; " percent(busy_share(r, h, ref)) " of all SM time; " \
        percent(1 / over_read(1, h, r, ref)) " of the read"
}

# ---- Splits and waves ----------------------------------------------------------------------------

function splits_figure(h,   i, j, r, k, named, lengths_of, said) {
    open_figure("gpu-splits-" file_word(h))
    panels = 0
    split("22 24 28", named, " ")
    split("8192 65536", lengths_of, " ")
    r = 24
    second_wave(r SUBSEP h SUBSEP ref)
    heading("When a wave is full: " two(r) " takes " \
        times(whole[r, h, ref, next_one] / whole[r, h, ref, last_full]) " as long with " next_one " splits as with " \
        last_full, "batch 1, heads " h ", " elements ", cache cold", \
        "time of a call; thin: its split kernel alone; upright: one more wave from here; ring: the rung's own choice")
    for (j = 1; j <= 2; j++)
        for (i = 1; i <= 3; i++) {
            panel(0.085 + 0.32 * (i - 1), 0.32 + 0.32 * (i - 1), j == 1 ? 0.525 : 0.135, j == 1 ? 0.755 : 0.365)
            said = said splits_panel(named[i], h, lengths_of[j], i)
        }
    print "Six log-log line charts." said > alt
    finish()
}

function splits_panel(r, h, k, i,   a, n, j, lo, hi, t, s, tics, said, splits_min) {
    a = r SUBSEP h SUBSEP k
    n = requests(a)
    splits_min = 4 # fewer take so long that the rest of a panel would be flat
    lo = parts_floor[a]
    hi = 0
    for (j = 1; j <= n; j++) {
        if (request[j] < splits_min)
            continue
        print cut[a, request[j]], whole[a, request[j]] > dat
        hi = whole[a, request[j]] > hi ? whole[a, request[j]] : hi
    }
    curve("lines lw 2 lc rung_colour(" r ")")
    for (j = 1; j <= n; j++)
        if (request[j] >= splits_min && (a, request[j]) in stage1)
            print cut[a, request[j]], stage1[a, request[j]] > dat
    curve("lines lw 0.8 lc rung_colour(" r ")")
    print cut[a, 0], whole[a, 0] > dat
    curve("points pt 6 ps 1.3 lw 1.5 lc rgb '#000000'")
    for (j = 1; j < n; j++)
        if (request[j] >= splits_min && waves(a, request[j + 1]) > waves(a, request[j]) && waves(a, request[j]) <= 3)
            upright(sqrt(request[j] * request[j + 1]), "", "")
    for (t = 1e3; t <= hi * 1.3; t *= 10)
        for (s = 1; s <= (hi > 50 * lo ? 1 : 5); s += s == 1 ? 1 : 3)
            if (t * s >= lo * 0.75 && t * s <= hi * 1.3)
                tics = tics (tics == "" ? "" : ", ") "'" tick(t * s) "' " t * s
    printf "set logscale x 2\nset logscale y 10\nset xrange [%g:290]\nset xtics ('4' 4, '16' 16, '64' 64, '256' 256)\n", \
        splits_min * 0.93 > set
    printf "set yrange [%.5g:%.5g]\nset ytics (%s)\n", lo * 0.7, hi * 1.4, tics > set
    level(parts_floor[a], i == 1 ? "the read" : "", "")
    panel_text(short(r) ", " keys(k) " keys", "graph 0", "graph 1.09", "left font BOLD")
    if (i == 2)
        panel_text("num_splits", "graph 0.5", "graph -0.27", "center font SMALL tc rgb '#333333'")
    panel_end()
    said = " " two(r) ": " choice_words(r, h, k) "."
    if (second_wave(a) && whole[a, next_one] > 1.02 * whole[a, last_full])
        said = said " " wave_words(r, h, k) "."
    return said
}

# ---- The combine ---------------------------------------------------------------------------------

function combine_figure(h,   i, j, r, a, n, q, named, said, hi, look) {
    open_figure("gpu-combine-" file_word(h))
    panels = 0
    a = 22 SUBSEP h SUBSEP ref
    combine_range(26, h, "share")
    heading("A combine of 64 splits takes " duration(stage2[a, 64]) "; 26 spends up to " percent(high_of) \
        " of a call on one", \
        "batch 1, heads " h ", " elements "; dashed: what the guide says, 2 us and 1 %", \
        "left: the combine kernel alone at " keys(ref) " keys; right: what it adds to a call at the rung's own cut")
    panel(0.085, 0.435, 0.155, 0.76)
    split("22 24 28", named, " ")
    for (i = 1; i <= 3; i++) {
        r = named[i]
        a = r SUBSEP h SUBSEP ref
        n = requests(a)
        for (j = 1; j <= n; j++)
            if ((a, request[j]) in stage2) {
                print request[j], stage2[a, request[j]] / 1e3 > dat
                q = request[j]
            }
        look = "rung_colour(" r ") pt rung_point(" r ")"
        curve("linespoints lw 1.8 ps 0.5 lc " look)
        panel_text(two(r), "first 300", sprintf("first %.4g", stage2[a, q] / 1e3 * (r == 22 ? 1.12 : r == 24 ? 0.9 : 1)), \
            "left font SMALL")
        said = said " " two(r) ", alone: " combine_alone(r, h, 32) ", " combine_alone(r, h, 128) "."
    }
    level(guide_us, "", "")
    level(parts_launch / 1e3, "an empty kernel", "")
    printf "set logscale x 2\nset logscale y 10\nset xrange [0.9:290]\nset xtics ('1' 1, '4' 4, '16' 16, '64' 64, '256' 256)\n" > set
    print "set yrange [0.4:60]\nset ytics ('0.5 us' 0.5, '1 us' 1, '2 us' 2, '5 us' 5, '10 us' 10, '20 us' 20, '50 us' 50)" > set
    panel_text("num_splits", "graph 0.5", "screen 0.06", "center font SMALL tc rgb '#333333'")
    panel_end()

    panel(0.555, 0.895, 0.155, 0.76)
    split("22 24 26 27 28", named, " ")
    for (i = 1; i <= 5; i++) {
        r = named[i]
        n = parts_lengths(r, h)
        for (j = 1; j <= n; j++)
            if ((r, h, part_length[j], 0) in stage1 && added_share(r SUBSEP h SUBSEP part_length[j], 0) > 0) {
                print part_length[j], 100 * added_share(r SUBSEP h SUBSEP part_length[j], 0) > dat
                hi = 100 * added_share(r SUBSEP h SUBSEP part_length[j], 0)
            }
        curve("linespoints lw 1.8 ps 0.7 lc rung_colour(" r ") pt rung_point(" r ")")
        pend(two(r), hi, mark(r))
        said = said " Added to a call of " combine_words(r, h) "."
    }
    axis_lo = log(0.3) / log(10)
    axis_hi = log(60) / log(10)
    level(100 * guide_share, "", "")
    print "set logscale x 2\nset logscale y 10\nset xrange [900:150000]" > set
    print "set xtics ('1K' 1024, '4K' 4096, '16K' 16384, '64K' 65536)\nset yrange [0.3:60]" > set
    print "set ytics ('0.3 %%' 0.3, '1 %%' 1, '3 %%' 3, '10 %%' 10, '30 %%' 30)" > set
    panel_text("kv_len, keys in the cache", "graph 0.5", "screen 0.06", "center font SMALL tc rgb '#333333'")
    place_pending()
    panel_end()
    print "Two log-log line charts." said > alt
    finish()
}
