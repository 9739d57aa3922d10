# plugin.awk: plug-ins on a GPU: a table from data/measured/h200/plugin.csv. Behind csv.awk.
/^# gpu: / { gpu = substr($0, 8); sub(/, .*/, "", gpu); next }
/^# date: / { date = substr($0, 9, 10); next }
/^#/ { next }
!header {
    csv_header($0, "plugin fault options code as_expected passed failed skipped says")
    header = 1
    print "| plug-in | what is the matter with it | asked with | exit code | passed, failed, skipped | it says |"
    print "|---|---|---|--:|--:|---|"
    next
}
{
    csv_split($0, cell)
    fault = get("fault"); sub(/\. .*/, ".", fault); sub(/^a plug-in/, "A plug-in", fault)
    options = get("options")
    sub(/--case [^ ]*/, "--case NAME", options)
    says = get("says")
    gsub(/\|/, "\\|", fault); gsub(/\|/, "\\|", says)
    as = get("code") (get("as_expected") == "yes" ? "" : ", not as expected")
    options = options == "" ? "" : "`" options "`"
    printf "| %s | %s | %s | %s | ", get("plugin"), fault, options, as
    printf "%d, %d, %d | %s |\n", get("passed"), get("failed"), get("skipped"), says
    runs++; good += get("as_expected") == "yes"
}
END {
    if (bad) exit bad
    print ""
    print "Recorded on " gpu ", " date ": " good " of " runs " runs as expected."
}
