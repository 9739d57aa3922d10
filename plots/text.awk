# text.awk: the verdict and the ladder table in 80 columns.

END {
    prepare()
    v = verdict()
    printf "%s: %d passed, %d failed, %d skipped\n", v, passed + mutants_killed, failed(), skipped + mutants_skipped
    printf "%d failed as declared; %d of %d wrong kernels caught and named\n%s\n", expecteds, mutants_killed, mutants, \
        (why == "" ? "" : "incomplete: " why "\n")
    for (i = 1; i <= failures; i++)
        printf "FAIL %s: case %s, error over bound %s\n", two(row[failure[i], "rung"]), row[failure[i], "case"], \
            ratio(num(row[failure[i], "ratio"]))
    cells("", "worst", "median", "/bound", "time", "GB/s", "floor", "/" two(base ? base : 1), "/prev")
    cells("", keys(ladder_at), keys(ladder_at), "all", keys(ladder_kv), "", "", "", "")
    for (i = 1; i <= rungs; i++) {
        r = rung[i]
        e = (r, ladder_at) in e_max ? ladder_at : at[r]
        k = (r in config) && config[r] == config[base] && ladder_kv ? ladder_kv : when[r]
        t = time(r, k)
        cells(substr(two(r) " " name[r], 1, 20), (r in type) ? show(e_max[r, e]) : "-", \
            (r in type) ? show(e_p50[r, e]) : "-", \
            (r in worst) ? ratio(num(row[worst[r], "ratio"])) : "-", duration(t), \
            t > 0 ? show(bytes[config[r], r, k] / t) : "-", times(over_floor(r, k)), gain(r, base, k), \
            parent[r] ? gain(r, parent[r], k) : "-")
    }
    print "\nworst, median: scaled error in units of u = 2^-24 of sum p|v|, at that kv_len."
    print "/bound: worst error over proved bound, all cases. floor: time over a read of the"
    print "same bytes. /" two(base ? base : 1) ", /prev: speed over that rung, over the parent."
    if (other_types() != "")
        print substr(other_types(), 2)
}

function cells(a, b, c, d, e, f, g, h, i) {
    printf "%-20s %6s %6s %6s %8s %5s %6s %6s %6s\n", a, b, c, d, e, f, g, h, i
}
