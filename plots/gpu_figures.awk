# gpu_figures.awk: figures of results recorded on a GPU. Behind figure_parts.awk and gpu.awk.
# .set ends with `clauses`, what gpu.gp plots; block i of .dat is data index i - 1.

END {
    prepare_gpu()
    machine = stamp
    for (i = 1; i <= rungs; i++) {
        if (rung[i] in type) {
            machine = stamp_of("recorded", "verify.csv")
            error_figure(rung[i])
            machine = stamp
        }
        speedup_figure(rung[i])
        if (recorded_parent(rung[i]))
            step_figure(rung[i], recorded_parent(rung[i]))
    }
    time_figure(grouped)
    time_figure(ungrouped)
    share_figure(grouped)
    share_figure(ungrouped)
    peers_figure(grouped)
    peers_figure(ungrouped)
    observed_figures()
}

function clause(s) { clauses = clauses (clauses == "" ? "" : ", ") s }

function open_figure(f) {
    begin(f)
    clauses = ""
    blocks = 0
}

function close_figure() {
    gsub(/'/, "''", clauses)
    printf "set logscale x 2\nset logscale y 10\nclauses = '%s'\nset rmargin at screen 0.77\n", clauses > set
    finish()
}

function block_end() {
    printf "\n\n" > dat
    return blocks++
}

function curve(look) {
    clause("data index " block_end() " using 1:2 with " look)
}

function line_of(r, width) {
    return "linespoints lw " width " ps 0.8 lc rung_colour(" r ") pt rung_point(" r ")"
}

# A label of a line's end, kept until the axis is known.
function pend(text, y, look) {
    pend_text[++pending] = text
    pend_y[pending] = y
    pend_look[pending] = look
}

function place_pending(   i) {
    for (i = 1; i <= pending; i++)
        label(pend_text[i], pend_y[i], pend_look[i])
    pending = 0
    place()
}

function at_one(text) {
    label(text, 1, "font SMALL tc rgb '#444444'")
    print "set arrow 1 from graph 0, first 1 to graph 1, first 1 nohead lc rgb '#444444' lw 1" > set
}

# Scaled error against kv_len: the rung in colour, its ancestors in grey, the bound dashed.
function error_figure(r,   i, p, k, n, k0) {
    open_figure("gpu-" two(r) "-error")
    n = points[r]
    k0 = at[r]
    for (i = 1; i <= n; i++)
        print kv[r, i], see(e_bound[r, kv[r, i]]) > dat
    clause("data index 0 using 1:2:(y_low) with filledcurves fc rgb PALE")
    curve("lines lc rgb '#444444' lw 1.5 dt 2")
    for (p = error_parent(r); p; p = error_parent(p)) {
        for (i = 1; i <= n; i++)
            print kv[r, i], see(err[p, type[r], kv[r, i]]) > dat
        curve("linespoints lc rgb '#999999' lw 1.5 ps 0.7 pt rung_point(" p ")")
    }
    for (i = 1; i <= n; i++)
        print kv[r, i], see(e_p50[r, kv[r, i]]) > dat
    curve("linespoints lc rung_colour(" r ") lw 1 dt 3 ps 0.4 pt rung_point(" r ")")
    for (i = 1; i <= n; i++) {
        odd(r, kv[r, i], e_max[r, kv[r, i]])
        print kv[r, i], see(e_max[r, kv[r, i]]) > dat
    }
    curve(line_of(r, 2.5))
    p = error_parent(r)
    heading(two(r) " " name[r] " on a GPU: worst error " show(e_max[r, k0]) " u at " keys(k0) " keys, " \
        (p ? compare(e_max[r, k0], err[p, type[r], k0], "below", "above") " " two(p) "'s" : \
        compare(e_max[r, k0], e_bound[r, k0], "below", "ABOVE") " the bound"), \
        sweep_family " inputs, " types(type[r]) ", " sweep_shape, \
        "scaled error E, in units of u = 2^-24 of sum p|v|; lower is better")
    x_axis(kv[r, 1], k0)
    y_axis(0)
    label("proved bound", e_bound[r, k0], "font BOLD tc rgb '#444444'")
    label("worst of " two(r), e_max[r, k0], "font BOLD " mark(r))
    label("median of " two(r), e_p50[r, k0], "tc rgb '#333333'")
    for (; p; p = error_parent(p))
        label("worst of " two(p), err[p, type[r], k0], mark_parent(p))
    place()
    print "Log-log line chart. At " keys(k0) " keys the worst error is " show(e_max[r, k0]) " u, the median " \
        show(e_p50[r, k0]) " u, the proved bound " show(e_bound[r, k0]) " u; ancestors in grey." > alt
    close_figure()
}

# Speed over the first rung and over the parent at batch 1, with what a read of the same bytes would reach.
function speedup_figure(r,   p, j, m, n, h, shape_of, said) {
    open_figure("gpu-" two(r) "-speedup")
    p = recorded_parent(r)
    for (j = 1; j <= 2; j++) {
        h = j == 1 ? grouped : ungrouped
        shape_of = j == 1 ? "rung_point(" r ")" : "twin_point(" r ")"
        n = lengths(1, h, r)
        for (m = 1; m <= n; m++)
            print length_at[m], see(over_read(1, h, first, length_at[m])) > dat
        curve("lines lc rgb '#444444' lw 1.5 dt " (j == 1 ? 2 : 3))
        pend("the read, " h, over_read(1, h, first, length_at[n]), "font SMALL tc rgb '#444444'")
        if (p && p != first)
            speed_over(p, r, h, n, shape_of, "lw 1.5 ps 0.7 lc rgb '#999999'", "tc rgb GREY")
        if (p)
            speed_over(first, r, h, n, shape_of, "lw 2.5 ps 0.9 lc rung_colour(" r ")", "font BOLD")
        said = said " With heads " h " at " keys(ref) " keys, as multiples of the speed of " two(first) ": " \
            (p ? "this rung " times(faster(1, h, r, first, ref)) ", its parent " times(faster(1, h, p, first, ref)) \
            ", " : "") "the read " times(over_read(1, h, first, ref)) "."
    }
    see(1)
    heading(two(r) " " name[r] " at " keys(ref) " keys: " speedup_title(r, p) " (heads " grouped ")", \
        elements ", batch 1, heads_q:heads_kv " grouped " and " ungrouped ", cache cold", \
        "speed as a multiple of another rung's" (p ? "" : " (here: 1)") "; dashed: reading K and V, over " two(first))
    x_axis(length_at[1], length_at[n])
    y_axis(0)
    at_one(p ? "as fast" : two(r) " itself")
    place_pending()
    print "Log-log line chart." said > alt
    close_figure()
}

function speed_over(p, r, h, n, shape_of, look, text_look,   m) {
    for (m = 1; m <= n; m++)
        print length_at[m], see(faster(1, h, r, p, length_at[m])) > dat
    curve("linespoints pt " shape_of " " look)
    sub(/lw [0-9.]* /, "", look)
    pend("over " two(p) ", " h, faster(1, h, r, p, length_at[n]), \
        text_look " point pt " shape_of " " look " offset char 1,DROP")
}

function speedup_title(r, p) {
    if (!p)
        return "the read leaves room for " times(over_read(1, grouped, r, ref))
    return step_words(r, p) (p != first ? ", " step_words(r, first) : "")
}

function step_words(r, p) {
    return compare(took(1, grouped, r, ref), took(1, grouped, p, ref), "faster than", "slower than") " " two(p)
}

# Time against kv_len for all rungs at batch 1.
function time_figure(h,   i, r, m, n, k0) {
    open_figure("gpu-time-" file_word(h))
    n = lengths(1, h, first)
    k0 = length_at[n]
    for (m = 1; m <= n; m++)
        print length_at[m], see(reads(1, h, first, length_at[m])) > dat
    curve("lines lc rgb '#444444' lw 1.5 dt 2")
    for (i = 1; i <= rungs; i++) {
        r = rung[i]
        for (m = 1; m <= n; m++)
            print length_at[m], see(took(1, h, r, length_at[m])) > dat
        curve(line_of(r, 2))
    }
    heading("At " keys(ref) " keys " two(last) " " name[last] " takes " duration(took(1, h, last, ref)) ", " \
        times(over_read(1, h, last, ref)) " the read of the same bytes", \
        elements ", batch 1, heads " h ", cache cold", "time of one call, median; lower is better")
    x_axis(length_at[1], k0)
    y_axis(1)
    label("read (same run)", reads(1, h, first, k0), "font SMALL tc rgb '#444444'")
    for (i = 1; i <= rungs; i++)
        label(short(rung[i]), took(1, h, rung[i], k0), mark(rung[i]))
    place()
    print "Log-log line chart." > alt
    for (i = 1; i <= rungs; i++)
        print two(rung[i]) " " name[rung[i]] ": " duration(took(1, h, rung[i], ref)) "." > alt
    print "The read: " duration(reads(1, h, last, ref)) "." > alt
    close_figure()
}

# The share of the read's speed, a bar for each batch; a line of numbers a rung, for which bars leave room.
function share_figure(h,   i, j, k, b, x, y, tics, best, best_r, best_b, said, shares_of, longest_bar, all) {
    open_figure("gpu-share-" file_word(h))
    k = longest(h)
    for (i = 1; i <= rungs; i++) {
        tics = tics sprintf("%s%s %d", i > 1 ? ", " : "", quote(short(rung[i])), -i)
        said = said " " two(rung[i]) ":"
        shares_of = ""
        longest_bar = 0
        for (j = 1; j <= batches; j++) {
            b = batch_of[j]
            x = 1 / over_read(b, h, rung[i], k)
            y = -i + 0.36 - 0.72 * (j - 0.5) / batches
            print y, 100 * x, y - 0.3 / batches, y + 0.3 / batches > dat
            clause("data index " block_end() " using (0):1:(0):2:3:4 with boxxyerror fs solid " \
                sprintf("%.2f", 1 - 0.3 * (j - 1)) " noborder lc rung_colour(" rung[i] ")")
            shares_of = shares_of (j > 1 ? ", " : "") percent(x)
            longest_bar = x > longest_bar ? x : longest_bar
            said = said (j > 1 ? ", " : " ") percent(x) " at batch " b
            if (x > best) {
                best = x
                best_r = rung[i]
                best_b = b
            }
        }
        said = said "."
        printf "set label %d '%s' at %.4g,%d left offset char 0.5,0 font SMALL\n", ++tag, shares_of, \
            100 * longest_bar, -i > set
    }
    for (j = 1; j <= batches; j++)
        all = all (j == 1 ? "" : ", ") batch_of[j]
    heading("At " keys(k) " keys: at best " percent(best) " of the read's speed (" two(best_r) " " name[best_r] \
        ", batch " best_b ")", elements ", heads " h ", cache cold", \
        "time to read K and V over time of the call, same run; higher is better; bars from the top: batch " all)
    printf "set ytics (%s)\nset yrange [%.2f:-0.4]\nset xrange [0:128]\nset xtics 0,20,100\n", tics, -rungs - 0.6 > set
    print "set format x '%g %%'\nset grid noytics xtics\nset border 1\nset lmargin at screen 0.21" > set
    print "set arrow 1 from 100, graph 0 to 100, graph 1 nohead lc rgb '#444444' lw 1.5 dt 2" > set
    print "Bars." said > alt
    gsub(/'/, "''", clauses)
    printf "clauses = '%s'\nset rmargin at screen 0.97\n", clauses > set
    finish()
}

# Rung r over its parent p for all batches and heads: where it wins and where it does not.
function step_figure(r, p,   i, j, b, h, n, m, x, lo, hi, style) {
    open_figure("gpu-" two(r) "-step")
    for (j = 1; j <= heads; j++)
        for (i = 1; i <= batches; i++) {
            b = batch_of[i]
            h = heads_of[j]
            n = lengths(b, h, r)
            if (!n)
                continue
            for (m = 1; m <= n; m++) {
                x = faster(b, h, r, p, length_at[m])
                print length_at[m], see(x) > dat
                lo = !lo || length_at[m] < lo ? length_at[m] : lo
                hi = length_at[m] > hi ? length_at[m] : hi
            }
            style = "lc " word_of("6 7 4", j) " pt " word_of("7 5 9", i) " ps 0.7"
            curve("linespoints lw 1.7 dt " word_of("1 2 4", j) " " style)
            pend("heads " h ", batch " b, x, "font SMALL point " style " offset char 1,DROP")
        }
    heading(two(r) " " name[r] ": " contest_words(r, p), \
        elements ", all batches and heads that were timed, cache cold", \
        "speed of " two(r) " over " two(p) "; below 1 it is slower")
    x_axis(lo, hi)
    see(1)
    axis_lo = log(y_low) / log(10) - 0.15
    axis_hi = log(y_high) / log(10) + 0.05
    printf "set yrange [%.4g:%.4g]\n", exp(axis_lo * log(10)), exp(axis_hi * log(10)) > set
    print "set ytics ('0.3' 0.3, '0.4' 0.4, '0.5' 0.5, '0.7' 0.7, '1' 1, '1.5' 1.5, '2' 2, '3' 3, '4' 4, '5' 5," \
        " '7' 7, '10' 10, '15' 15, '20' 20, '30' 30, '50' 50)" > set
    at_one("as fast")
    place_pending()
    print "Log-log line chart, a line for each batch and heads." > alt
    close_figure()
}

function word_of(list, i,   w, n) {
    n = split(list, w, " ")
    return w[(i - 1) % n + 1]
}
