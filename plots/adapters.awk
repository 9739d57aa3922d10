# adapters.awk: other people's attention, judged: a table from the records of tests/adapters. Behind csv.awk
# and html.awk. Use: awk -v format=html|markdown
FNR == 1 { header = 0; library = place = own = refused = "" }
/^# library: / { library = substr($0, 12); next }
/^# own check: / { own = substr($0, 14); next }
/^# gpu: / { place = substr($0, 8); sub(/, .*/, "", place); next }
/^# processor: / { if (place == "") { place = substr($0, 14); sub(/ \(.*/, "", place) } ; next }
/^# refused: / {
    reason = substr($0, 12); count = reason + 0; sub(/^[0-9]+, /, "", reason)
    sub(/^[A-Za-z]+: (\[ONNXRuntimeError\] : [0-9]+ : )?/, "", reason); sub(/.*Status Message: /, "", reason)
    refused = refused (refused ? "; " : "") substr(reason, 1, 120) " (" count ")"
    next
}
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
    type = part[2] == "fff" || part[2] == "" ? "fp32" : part[2] == "hhh" ? "fp16" : part[2] == "bbb" ? "bf16" : "mixed"
    key = get("implementation") "|" type "|" place
    if (!(key in seen)) { seen[key] = ++n; name[n] = key; of[n] = FILENAME; types[FILENAME]++; note[n] = library (own ? "; its own check, " own : "") (refused ? ". Not asked or refused: " refused : "") }
    i = seen[key]
    if (get("verdict") == "skip") { undecided[i]++; next }
    if (get("verdict") == "fail") {
        failed[i]++
        if (!((i, family) in on)) { on[i, family] = 1; families[i] = families[i] (families[i] ? ", " : "") family }
    } else
        passed[i]++
    x = num(get("ratio"))
    if (x > worst[i]) worst[i] = x
}
function head() {
    if (format == "html")
        table("implementation|type|on|passed|failed|not decided|worst error / bound|fails on", "adapters")
    else {
        print "| implementation | type | on | passed | failed | not decided | worst error / bound | fails on |"
        print "|---|---|---|--:|--:|--:|--:|---|"
    }
}
function row(i,   part) {
    split(name[i], part, "|")
    if (format == "html") {
        tr(); td(part[1]); td(part[2]); td(part[3]); right(passed[i] + 0); right(failed[i] + 0); right(undecided[i] + 0)
        right(ratio(worst[i])); td(families[i]); tr_end()
    } else
        printf "| %s | %s | %s | %d | %d | %d | %s | %s |\n", part[1], part[2], part[3], passed[i], failed[i], undecided[i], ratio(worst[i]), families[i]
}
END {
    if (bad) exit bad
    head()
    for (i = 1; i <= n; i++) {
        if (passed[i] + failed[i] == 0) continue
        row(i)
        split(name[i], part, "|")
        said = part[1] (types[of[i]] == 1 ? ", " part[2] : "") ": " note[i] "."
        if (!(said in noted)) { noted[said] = 1; notes[++m] = said }
    }
    if (format == "html") {
        table_end()
        print "<details><summary>Versions, and what was not asked or refused</summary><ul>"
        for (i = 1; i <= m; i++) print "<li>" esc(notes[i]) "</li>"
        print "</ul></details>"
    } else {
        print ""
        for (i = 1; i <= m; i++) print "- " notes[i]
    }
}
