# figure_parts.awk: what every figure's .set is made of: text, axes, labels at the ends of lines that do not collide.
# A figure is three files in dir: FIGURE.set for gnuplot, FIGURE.dat, FIGURE.alt, its words.

function begin(figure) {
    set = dir "/" figure ".set"
    dat = dir "/" figure ".dat"
    alt = dir "/" figure ".alt"
    labels = 0
    tag = 10
    y_low = 1e300
    y_high = -1
    printf "data = base.'.dat'\nunset label\n" > set
}

function finish() {
    close(set)
    close(dat)
    close(alt)
}

function quote(s) {
    gsub(/'/, "''", s)
    return "'" s "'"
}

function heading(title, subtitle, y_name) {
    printf "set label 1 %s at screen 0.015,0.955 left font TITLE\n", quote(title) > set
    printf "set label 2 %s at screen 0.015,0.9 left font SMALL tc rgb '#595959'\n", quote(subtitle) > set
    printf "set label 3 %s at screen 0.015,0.855 left font SMALL tc rgb '#333333'\n", quote(y_name) > set
    printf "set label 4 %s at screen 0.985,0.025 right font SMALL tc rgb GREY\n", quote(machine) > set
    print title ". " subtitle "." > alt
}

function x_axis(lo, hi,   k, step, s) {
    step = hi / lo > 32 ? 4 : 2
    for (k = 1; k <= hi * 1.001; k *= step)
        if (k >= lo / 1.001)
            s = s sprintf("%s'%s' %d", s == "" ? "" : ", ", keys(k), k)
    if (s == "")
        s = sprintf("'%s' %d", keys(hi), hi)
    printf "set xrange [%g:%g]\nset xtics (%s)\n", lo / (lo == hi ? 2 : 1.15), hi * (lo == hi ? 2 : 1.02), s > set
    printf "set label 5 'kv_len, keys in the cache' at graph 0.5, screen 0.06 center " > set
    print "font SMALL tc rgb '#333333'" > set
}

# A value for the data file, noted for y_axis(). What a logarithmic axis cannot show breaks the line.
function see(y) {
    if (y < 0)
        return "?"
    if (!known(y) || y == 0)
        return "NaN"
    if (y < y_low)
        y_low = y
    if (y > y_high)
        y_high = y
    return sprintf("%.6g", y)
}

# Half a decade of air around what see() saw; ticks at decades, or at 1 2 5 where there are few.
function y_axis(timed,   d, k, t, fine, s, lo, hi, step) {
    lo = log(y_low) / log(10) - 0.35
    hi = log(y_high) / log(10) + 0.35
    fine = hi - lo < 2.5
    step = hi - lo > 8 ? 2 : 1
    for (d = -12; d <= 12; d += step)
        for (k = 1; k <= 5; k += k < 2 ? 1 : 3) {
            t = k * exp(d * log(10))
            if ((k == 1 || fine) && log(t) / log(10) >= lo && log(t) / log(10) <= hi)
                s = s sprintf("%s'%s' %.6g", s == "" ? "" : ", ", \
                    timed ? tick(t) : t >= 0.9 ? sprintf("%.0f", t) : sprintf("%.*f", d < -8 ? 8 : -d, t), t)
        }
    printf "y_low = %.6g\nset yrange [%.6g:%.6g]\nset ytics (%s)\n", exp(lo * log(10)), exp(lo * log(10)), \
        exp(hi * log(10)), s > set
    axis_lo = lo
    axis_hi = hi
}

function tick(ns) {
    ns = duration(ns * 1.0000001)
    sub(/\.0 /, " ", ns)
    return ns
}

# A label at the right end of a line, placed by place() so that neighbours do not collide.
function label(text, y, look) {
    if (!known(y) || y <= 0)
        return
    label_text[++labels] = text
    label_y[labels] = (log(y) / log(10) - axis_lo) / (axis_hi - axis_lo)
    label_look[labels] = look
}

function place(   i, j, t, round, gap, moved) {
    for (i = 2; i <= labels; i++)
        for (j = i; j > 1 && label_y[j] < label_y[j - 1]; j--) {
            t = label_y[j]; label_y[j] = label_y[j - 1]; label_y[j - 1] = t
            t = label_text[j]; label_text[j] = label_text[j - 1]; label_text[j - 1] = t
            t = label_look[j]; label_look[j] = label_look[j - 1]; label_look[j - 1] = t
        }
    gap = labels > 19 ? 1.06 / labels : 0.054
    for (round = 0; round < 500; round++) {
        moved = 0
        for (i = 2; i <= labels; i++) {
            t = gap - (label_y[i] - label_y[i - 1])
            if (t > 0.0001) {
                label_y[i] += t / 2
                label_y[i - 1] -= t / 2
                moved = 1
            }
        }
        if (!moved)
            break
    }
    for (i = labels; i > 0; i--) {
        t = 1.05 - (labels - i) * gap
        if (label_y[i] > t)
            label_y[i] = t
    }
    for (i = 1; i <= labels; i++) {
        t = -0.05 + (i - 1) * gap
        if (label_y[i] < t)
            label_y[i] = t
    }
    for (i = 1; i <= labels; i++)
        printf "set label %d %s at graph 1.03, graph %.4f left %s\n", ++tag, quote(label_text[i]), label_y[i], \
            label_look[i] > set
}

function short(r) { return two(r) " " (length(name[r]) > 17 ? substr(name[r], 1, 15) ".." : name[r]) }
function mark(r) { return sprintf("point pt rung_point(%d) ps 0.8 lc rung_colour(%d) offset char 1,DROP", r, r) }
function mark_parent(p) {
    return sprintf("tc rgb GREY point pt rung_point(%d) ps 0.8 lc rgb '#999999' offset char 1,DROP", p)
}

# Says so where an error is not on the axis: exactly 0, or not a number, which must not pass unseen.
function odd(r, k, y) {
    if (y == 0 || !known(y))
        printf "set label %d '%s' at %d, graph %s center front font BOLD\n", ++tag, \
            two(r) ": " show(y), k, y == 0 ? "0.03" : "0.96" > set
}
