# The counts of results.tsv, a line a file and class, then the survivors nobody has explained. Exit code 1 if there is one,
# or if fewer than 95 % of the mutants that are neither stillborn nor equivalent were killed.
BEGIN {
    FS = "\t"
    n = split("stillborn same-code verify relations timeout crash sanitizer unit-tests full-table equivalent gap survivor",
              ends, " ")
}
{
    split($1, part, ".")
    row = part[1] ($3 == "claims" ? " claims" : "")
    if (!(row in seen)) { seen[row] = 1; rows[++count] = row }
    made[row]++; made["all"]++
    tally[row, $5]++; tally["all", $5]++
    if ($5 == "survivor" || $5 == "lost") unexplained[++open] = $5 ": " $1 "  " $2 "  " $4
}
function width(e) { return length(ends[e]) < 5 ? 5 : length(ends[e]) }
function all(what) { return tally["all", what] + 0 }
function line(row,    e) {
    printf "%-10s %5d", row, made[row]
    for (e = 1; e <= n; e++) printf " %*d", width(e), tally[row, ends[e]]
    print ""
}
END {
    printf "%-10s %5s", "", "made"
    for (e = 1; e <= n; e++) printf " %*s", width(e), ends[e]
    print ""
    rows[++count] = "all"
    for (r = 1; r <= count; r++) line(rows[r])
    for (u = 1; u <= open; u++) print unexplained[u]
    equivalent = all("same-code") + all("equivalent")
    judged = made["all"] - all("stillborn") - equivalent
    killed = judged - all("gap") - open
    share = (judged > 0) ? 100 * killed / judged : 0
    printf "%d made, %d stillborn, %d equivalent (%d with the same object code, %d argued in survivors.md)\n", \
        made["all"], all("stillborn"), equivalent, all("same-code"), all("equivalent")
    printf "%d killed of %d, %.1f %%: verify %d, relations %d, timeout %d, crash %d, sanitizer %d, unit tests %d\n", \
        killed, judged, share, all("verify") + all("full-table"), all("relations"), \
        all("timeout"), all("crash"), all("sanitizer"), all("unit-tests")
    printf "%d survivors known as gaps, %d unexplained\n", all("gap"), open
    exit (open > 0 || share < 95)
}
