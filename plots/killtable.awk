# killtable.awk: the kill table as HTML or Markdown, from killtable.csv.
# Use: awk -v format=html|markdown -f plots/csv.awk -f plots/killtable.awk killtable.csv

BEGIN { own = "exact where the answer is known, the proved bound everywhere" }
FNR == 1 { file = "killtable.csv" }
{ sub(/\r$/, "") }
/^# rule: / { read_rule(substr($0, 9)) }
/^#/ || /^[ \t]*$/ { next }
!header {
    header = 1
    csv_header($0, "mutant rule inputs dtype caught margin")
    next
}
{
    csv_split($0, cell)
    read_row(get("mutant"), get("rule"), get("inputs"))
}

END {
    if (!bad && subjects) {
        rule[++rules] = "ours"
        sum_up()
        if (format == "html")
            html()
        else
            markdown()
    }
}

function read_rule(line,   f) {
    split(line, f, / \| /)
    rule[++rules] = f[1]
    head[f[1]] = f[2]
    says[f[1]] = f[3]
    source[f[1]] = f[4]
}

function read_row(m, r, inputs) {
    if (!(m in known_subject)) {
        known_subject[m] = 1
        subject[++subjects] = m
        right[m] = m ~ /^rung [0-9]/
        mutants += !right[m]
    }
    applied[m, r, inputs] = 1
    caught[m, r, inputs] += get("caught")
    if (num(get("margin")) > margin[m, r] + 0)
        margin[m, r] = num(get("margin"))
}

# Two letters, Gaussian and directed.
function letters(m, r) { return letter(m, r, "gaussian") letter(m, r, "directed") }
function letter(m, r, inputs) {
    if (!((m, r, inputs) in applied))
        return " "
    return caught[m, r, inputs] == 0 ? "-" : right[m] ? "!" : "c"
}

function sum_up(   i, k, m, r, g, d) {
    for (k = 1; k <= rules; k++) {
        r = rule[k]
        for (i = 1; i <= subjects; i++) {
            m = subject[i]
            g = caught[m, r, "gaussian"] + 0
            d = caught[m, r, "directed"] + 0
            if (right[m]) {
                alarms[r] += g + d
                if (margin[m, r] + 0 > closest[r] + 0)
                    closest[r] = margin[m, r]
            } else {
                by_gaussian[r] += g > 0
                by_directed[r] += d > 0
                by_either[r] += g + d > 0
            }
        }
    }
}

# The tiers of ours that see a mutant, and how far beyond the proved bound it is.
function tiers(m,   t, n, i, s) {
    n = split("exact proved statistical metamorphic", t, " ")
    for (i = 1; i <= n; i++)
        if (caught[m, t[i], "gaussian"] + caught[m, t[i], "directed"] > 0)
            s = s (s == "" ? "" : ", ") t[i]
    return s
}
function beyond(m,   x) {
    x = margin[m, "proved"] + 0
    if (!right[m] && caught[m, "proved", "gaussian"] + caught[m, "proved", "directed"] == 0)
        return "-"
    return known(x) && x >= 1e5 ? sprintf("%.0e", x) : show(x)
}

# ---- HTML ---------------------------------------------------------------------------------------

function esc(s) {
    gsub(/&/, "\\&amp;", s)
    gsub(/</, "\\&lt;", s)
    gsub(/>/, "\\&gt;", s)
    gsub(/"/, "\\&quot;", s)
    return s
}

function shade(s) { return s ~ /!/ ? "alarm" : s ~ /c/ ? (s ~ /-/ ? "half" : "") : s ~ /-/ ? "none" : "" }

function html(   i, k, m, r, s) {
    print "<p>What other projects accept, applied to the same outputs. Each rule is at its best: the exact answer where it " \
        "compares with fp32 or fp64, that answer rounded once where it compares with a result of the output's type, a " \
        "fresh run of ordinary attention where that is the yardstick; fp32, fp16 and bf16; and NaN in all unused memory, " \
        "which few suites have. What a rule says of mutants on a case where it rejects a right rung is not counted for it.</p>"
    print "<p><em>Gaussian</em>: N(0, 1), dense, equal round lengths, the common core of the suites that the rules come from " \
        "(some draw ragged lengths as well). <em>Directed</em>: cases of this project, lent to every rule.</p>"
    print "<div class=wide><table><thead><tr><th scope=col>rule<th scope=col>what it says, and where<th scope=col>caught, " \
        "Gaussian<th scope=col>caught, directed<th scope=col>caught, of " mutants "<th scope=col>false alarms" \
        "<th scope=col>right rungs' margin</tr></thead><tbody>"
    for (k = 1; k <= rules; k++) {
        r = rule[k]
        printf "<tr><td>%s</td><td>%s<br><small>%s</small></td>", esc(r == "ours" ? "ours, all tiers" : r), \
            r == "ours" ? own : esc(says[r]), r == "ours" ? "proofs/README.md" : esc(source[r])
        printf "<td class=n>%d</td><td class=n>%d</td><td class=n><strong>%d</strong></td><td class=n>%d</td>" \
            "<td class=n>%s</td></tr>\n", by_gaussian[r], by_directed[r], by_either[r], alarms[r], show(closest[r] + 0)
    }
    print "</tbody></table></div>"
    print "<p>Two letters a cell, for Gaussian and for directed inputs: <b>c</b> caught, <b>-</b> missed, <b>!</b> false " \
        "alarm; blank where the rule is not meant for the types. A margin is the largest error over what is allowed; beside a mutant, "\
        "over the proved bound.</p>"
    print "<div class=wide><table class=kills><thead><tr><th scope=col>mutant"
    for (k = 1; k <= rules; k++) {
        s = head[rule[k]]
        sub(/ /, "<br>", s)
        print "<th scope=col title=\"" esc(rule[k]) "\">" (rule[k] == "ours" ? "ours" : s)
    }
    print "<th scope=col>seen by<th scope=col>margin</tr></thead><tbody>"
    for (i = 1; i <= subjects; i++) {
        m = subject[i]
        printf "<tr><td>%s</td>", esc(m)
        for (k = 1; k <= rules; k++) {
            s = letters(m, rule[k])
            printf "<td%s>%s</td>", right[m] && s !~ /!/ || shade(s) == "" ? "" : " class=" shade(s), s
        }
        printf "<td>%s</td><td>%s</td></tr>\n", right[m] ? "" : tiers(m), beyond(m)
    }
    print "</tbody></table></div>"
}

# ---- Markdown -----------------------------------------------------------------------------------

function cellular(s) {
    gsub(/\|/, "\\|", s)
    return s
}

function markdown(   i, k, m, r, s) {
    print "| rule | it says | caught, Gaussian | caught, directed | caught, of " mutants " | false alarms |"
    print "|---|---|--:|--:|--:|--:|"
    for (k = 1; k <= rules; k++) {
        r = rule[k]
        printf "| %s | %s | %d | %d | %s | %d |\n", r == "ours" ? "**this project**" : cellular(r), \
            r == "ours" ? own : cellular(says[r]), \
            by_gaussian[r], by_directed[r], r == "ours" ? "**" by_either[r] "**" : by_either[r] "", alarms[r]
    }
    print "\n<details><summary>Every wrong rung, every rule</summary>\n"
    print "Two letters a cell, for Gaussian and for directed inputs: c caught, - missed, ! false alarm; blank where the rule"
    print "is not meant for the types. Margin: error over the proved bound.\n"
    s = "| wrong rung |"
    m = "|---|"
    for (k = 1; k <= rules; k++) {
        s = s " " (rule[k] == "ours" ? "ours" : head[rule[k]]) " |"
        m = m ":-:|"
    }
    print s " margin |"
    print m "--:|"
    for (i = 1; i <= subjects; i++) {
        m = subject[i]
        printf "| %s |", cellular(m)
        for (k = 1; k <= rules; k++)
            printf letters(m, rule[k]) ~ /^ *$/ ? "  |" : " `%s` |", letters(m, rule[k])
        print " " beyond(m) " |"
    }
    print "\nSources, read at the commit named:\n"
    for (k = 1; k < rules; k++)
        print "- " rule[k] ": " source[rule[k]]
    print "\n</details>"
}
