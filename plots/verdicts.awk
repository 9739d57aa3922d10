# verdicts.awk: the counts of verify.csv, a line a rung. Behind csv.awk.

/^#/ || /^[ \t]*$/ { next }
!header {
    header = 1
    file = FILENAME
    csv_header($0, "rung name where verdict ratio lse_ratio case")
    printf "rung                     cases  pass  fail  skip   worst error over bound\n"
    next
}
{
    csv_split($0, cell)
    r = get("rung") + 0
    if (!(r in title)) {
        title[r] = sprintf("%s %-18.18s %s", two(r), get("name"), get("where"))
        order[++rungs] = r
    }
    v = get("verdict")
    count[r, v == "expected-failure" ? "pass" : v]++
    total[v == "expected-failure" ? "pass" : v]++
    x = num(get("ratio")) > num(get("lse_ratio")) ? num(get("ratio")) : num(get("lse_ratio"))
    if (v == "pass" || v == "fail")
        if (!(r in worst) || x > worst[r]) {
            worst[r] = x
            worst_case[r] = get("case")
        }
    if (v == "fail")
        failed[++failures] = sprintf("FAIL %s: flashdecode verify --rung %d --case '%s'", title[r], r, get("case"))
}
END {
    for (i = 1; i <= rungs; i++) {
        r = order[i]
        printf "%-25s %5d %5d %5d %5d   %s on %s\n", title[r], count[r, "pass"] + count[r, "fail"] + count[r, "skip"], \
            count[r, "pass"], count[r, "fail"], count[r, "skip"], (r in worst) ? ratio(worst[r]) : "-", worst_case[r]
    }
    for (i = 1; i <= failures; i++)
        print failed[i]
    printf "%d passed, %d failed, %d skipped\n", total["pass"], total["fail"], total["skip"]
}
