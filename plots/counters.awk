# counters.awk: what `flashdecode emulate --csv` counted of the rungs of a page, a column a kernel, as a Markdown table.
# -v rungs="22,23" -v command="what prints the same in words". Behind csv.awk.

/^# compiler: / { compiler = substr($0, 13) }
/^#/ { next }
!header {
    header = 1
    file = FILENAME
    csv_header($0, "rung case kernel launches blocks threads barriers shuffles global_loads global_load_sectors " \
        "global_load_bytes global_load_distinct global_stores global_store_sectors global_store_bytes shared_loads " \
        "shared_load_wavefronts shared_load_ideal shared_stores shared_store_wavefronts shared_store_ideal uncounted")
    next
}
{
    csv_split($0, cell)
    if (index("," rungs ",", "," get("rung") ",") == 0)
        next
    if (get("rung") != last)
        close_rung()
    last = get("rung")
    shape = get("case")
    n++
    kernels++
    title[n] = get("kernel")
    sub(/^fd_k_/, "", title[n])
    if (title[n] !~ /^[0-9]/)
        title[n] = last " " title[n]
    gsub(/_/, " ", title[n])
    for (c in col) {
        value[n, c] = get(c)
        sum[c] += get(c)
    }
}
END {
    if (bad)
        exit bad
    close_rung()
    row("blocks of the grid", "blocks")
    row("threads", "threads")
    row("global load requests", "global_loads")
    over("- sectors a request", "global_load_sectors", "global_loads")
    kib("- KiB asked for", "global_load_bytes", 1)
    kib("- KiB in the sectors asked for", "global_load_sectors", 32)
    over("- each byte, times", "global_load_bytes", "global_load_distinct")
    row("global store requests", "global_stores")
    kib("- KiB written", "global_store_bytes", 1)
    row("shared load requests", "shared_loads")
    over("- wavefronts over ideal", "shared_load_wavefronts", "shared_load_ideal")
    row("shared store requests", "shared_stores")
    over("- wavefronts over ideal", "shared_store_wavefronts", "shared_store_ideal")
    row("block barriers", "barriers")
    row("shuffles and votes, a warp", "shuffles")
    printf "\n%s. Counted with %s. In words:\n`%s`\n", shape, compiler, command
}

# A rung of several kernels gets a column of sums.
function close_rung(   c) {
    if (kernels > 1) {
        n++
        title[n] = "**" last ", all**"
        for (c in col)
            value[n, c] = sum[c]
    }
    kernels = 0
    split("", sum)
}

function line(label,   i) {
    if (!headed++) {
        printf "| |"
        for (i = 1; i <= n; i++)
            printf " %s |", title[i]
        printf "\n|---|"
        for (i = 1; i <= n; i++)
            printf "--:|"
        printf "\n"
    }
    printf "| %s |", label
    for (i = 1; i <= n; i++)
        printf " %s |", shown[i]
    printf "\n"
}

function row(label, what,   i) {
    for (i = 1; i <= n; i++)
        shown[i] = value[i, what] + 0
    line(label)
}

function over(label, a, b,   i) {
    for (i = 1; i <= n; i++)
        shown[i] = value[i, b] > 0 ? sprintf("%.1f", value[i, a] / value[i, b]) : "-"
    line(label)
}

function kib(label, what, unit,   i) {
    for (i = 1; i <= n; i++)
        shown[i] = sprintf("%.1f", value[i, what] * unit / 1024)
    line(label)
}
