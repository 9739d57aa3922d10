# csv.awk: quoted CSV with a header row, and a few words about numbers. Plain POSIX awk, mawk included.
# Use: awk -f plots/csv.awk -f plots/results.awk -f plots/X.awk FILES

# Splits one line into f[1..n], quotes removed ("" inside quotes is one quote). Returns n.
function csv_split(line, f,   n, c, cell) {
    if (index(line, "\"") == 0)
        return split(line, f, ",")
    for (n = 0; ; ) {
        cell = ""
        if (substr(line, 1, 1) == "\"") {
            for (line = substr(line, 2); (c = index(line, "\"")) > 0; line = substr(line, c + 2)) {
                cell = cell substr(line, 1, c - 1)
                if (substr(line, c + 1, 1) != "\"")
                    break
                cell = cell "\""
            }
            line = c > 0 ? substr(line, c + 1) : ""
        }
        c = index(line, ",")
        f[++n] = cell (c > 0 ? substr(line, 1, c - 1) : line)
        if (c == 0)
            return n
        line = substr(line, c + 1)
    }
}

# The header row: col[name] = position. Stops the program when a wanted column is not there.
function csv_header(line, wanted,   n, i, f, w) {
    split("", col)
    n = csv_split(line, f)
    for (i = 1; i <= n; i++)
        col[f[i]] = i
    n = split(wanted, w, " ")
    for (i = 1; i <= n; i++)
        if (!(w[i] in col))
            die(file ": column " w[i] " is missing; make report writes the file anew")
}

function get(name) { return name in col ? cell[col[name]] : "" }

function die(why) {
    print "plots: " why | "cat 1>&2"
    close("cat 1>&2")
    bad = 2
    exit 2
}

# Numbers. inf and nan become values above all others, so that a maximum can never hide them; empty is -1.
function num(s) {
    s = tolower(s)
    if (s == "")
        return -1
    if (s ~ /nan/)
        return 2e300
    return s ~ /inf/ ? 1e300 : s + 0
}

function known(x) { return x >= 0 && x < 1e300 }

# Two or three significant digits, without an exponent where that reads well.
function show(x) {
    if (x < 0)
        return "-"
    if (!known(x))
        return x < 2e300 ? "inf" : "nan"
    if (x == 0)
        return "0"
    if (x >= 1e7 || x < 0.001)
        return sprintf("%.1e", x)
    return sprintf(x >= 99.5 ? "%.0f" : x >= 0.995 ? "%.1f" : x >= 0.0995 ? "%.2f" : x >= 0.00995 ? "%.3f" : "%.4f", x)
}

# A ratio: 1.04x, 3.1x, 120x.
function times(x) {
    if (!known(x))
        return show(x)
    if (x >= 999.5)
        x = int(x / 100 + 0.5) * 100
    return sprintf(x < 0.0995 ? "%.2gx" : x < 1.995 ? "%.2fx" : x < 9.95 ? "%.1fx" : "%.0fx", x)
}

# Error over bound: never rounded across 1.
function ratio(x) { return x > 0.9 && x < 1.1 ? sprintf("%.4f", x) : show(x) }

# 16384 is 16K: powers of two as the axes write them.
function keys(n) {
    if (n >= 1048576 && n % 1048576 == 0)
        return n / 1048576 "M"
    return n >= 1024 && n % 1024 == 0 ? n / 1024 "K" : n ""
}

function duration(ns) {
    if (!known(ns))
        return show(ns)
    if (ns < 999.5)
        return show(ns) " ns"
    return ns < 999.5e3 ? show(ns / 1e3) " us" : ns < 999.5e6 ? show(ns / 1e6) " ms" : show(ns / 1e9) " s"
}

function size(bytes) {
    if (!known(bytes))
        return show(bytes)
    return bytes < 1024 ? bytes " B" : bytes < 1048576 ? show(bytes / 1024) " KiB" : show(bytes / 1048576) " MiB"
}

# In a table's head, where one length serves all rungs.
function at_keys(k) { return k ? " at " keys(k) " keys" : "" }

function two(n) { return sprintf("%02d", n) }

function plural(n, word) { return n " " word (n == 1 ? "" : "s") }

# Sorts a[1..n] by number.
function sort(a, n,   i, j, t) {
    for (i = 2; i <= n; i++) {
        t = a[i]
        for (j = i - 1; j > 0 && a[j] > t; j--)
            a[j + 1] = a[j]
        a[j + 1] = t
    }
}
