# adapters.awk: other people's attention, judged: a table from the records of tests/adapters. Behind csv.awk.
FNR == 1 { header = 0; library = place = ""; own = "" }
/^# library: / { library = substr($0, 12); next }
/^# own check: / { own = substr($0, 14); next }
/^# gpu: / { place = substr($0, 8); sub(/, .*/, "", place); next }
/^# processor: / { if (place == "") { place = substr($0, 14); sub(/ \(.*/, "", place) } ; next }
/^# refused: / { refused = substr($0, 12); next }
/^#/ { next }
!header {
    csv_header($0, "implementation case verdict tier ratio err_max reason")
    header = 1
    next
}
{
    csv_split($0, cell)
    split(get("case"), part, "/")
    family = part[1]; sub(/:.*/, "", family)
    key = get("implementation") SUBSEP part[2] SUBSEP place
    type = part[2] == "fff" ? "fp32" : part[2] == "hhh" ? "fp16" : part[2] == "bbb" ? "bf16" : "mixed"
    key = get("implementation") "|" type "|" place
    if (!(key in seen)) { seen[key] = ++n; name[n] = key; lib[n] = library; checked[n] = own }
    i = seen[key]
    if (get("verdict") == "skip") { if (get("reason") ~ /no o/) unanswered[i]++; else undecided[i]++; next }
    if (get("verdict") == "fail") {
        failed[i]++
        if (!((i, family) in on)) { on[i, family] = 1; families[i] = families[i] (families[i] ? ", " : "") family }
    } else
        passed[i]++
    x = num(get("ratio"))
    if (x > worst[i]) worst[i] = x
}
END {
    if (bad) exit bad
    print "| implementation | type | on | passed | failed | not decided | not answered | worst error / bound | fails on |"
    print "|---|---|---|--:|--:|--:|--:|--:|---|"
    for (i = 1; i <= n; i++) {
        split(name[i], part, "|")
        if (passed[i] + failed[i] == 0) continue
        printf "| %s | %s | %s | %d | %d | %d | %d | %s | %s |\n", part[1], part[2], part[3], passed[i], failed[i], undecided[i], unanswered[i], ratio(worst[i]), families[i]
        note = lib[i] (checked[i] ? "; its own check, " checked[i] : "")
        if (!(note in noted)) { noted[note] = 1; notes[++m] = part[1] ": " note "." }
    }
    print ""
    for (i = 1; i <= m; i++) print "- " notes[i]
}
