# The counts of results.tsv, a line a file and class, then the survivors nobody has explained. Exit code 1 if there is one.
BEGIN {
    FS = "\t"
    n = split("stillborn same-code verify relations timeout crash sanitizer unit-tests full-table known survivor", ends, " ")
}
{
    split($1, part, ".")
    row = part[1] ($3 == "claims" ? " claims" : "")
    if (!(row in seen)) { seen[row] = 1; rows[++count] = row }
    made[row]++; made["all"]++
    tally[row, $5]++; tally["all", $5]++
    if ($5 == "survivor" || $5 == "lost") unexplained[++open] = $5 ": " $1 "  " $2 "  " $4
}
function line(row,    e) {
    printf "%-10s %5d", row, made[row]
    for (e = 1; e <= n; e++) printf " %*d", length(ends[e]) < 5 ? 5 : length(ends[e]), tally[row, ends[e]]
    print ""
}
END {
    printf "%-10s %5s", "", "made"
    for (e = 1; e <= n; e++) printf " %5s", ends[e]
    print ""
    rows[++count] = "all"
    for (r = 1; r <= count; r++) line(rows[r])
    for (u = 1; u <= open; u++) print unexplained[u]
    killed = made["all"] - tally["all", "stillborn"] - tally["all", "same-code"] - tally["all", "known"] - open
    printf "%d made, %d stillborn, %d equivalent (%d same object code, %d explained in survivors.md)\n", made["all"], \
        tally["all", "stillborn"], tally["all", "same-code"] + tally["all", "known"], tally["all", "same-code"], \
        tally["all", "known"]
    printf "%d killed, %d unexplained\n", killed, open
    exit open > 0
}
