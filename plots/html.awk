# html.awk: paragraphs, tables and inlined figures. Wants results, the folder of the figures.

function esc(s) {
    gsub(/&/, "\\&amp;", s)
    gsub(/</, "\\&lt;", s)
    gsub(/>/, "\\&gt;", s)
    gsub(/"/, "\\&quot;", s)
    return s
}

function para(s) { print "<p>" s "</p>" }
function section(id, title) { print "<h2 id=" id ">" title "</h2>" }
function missing(what) { para("<strong>Missing:</strong> " what) }
function call(r) { return two(r) " " esc(name[r]) }

function table(columns, class,   c, i, k) {
    k = split(columns, c, "|")
    print "<div class=wide tabindex=0><table class=\"" class "\"><thead><tr>"
    for (i = 1; i <= k; i++)
        print "<th scope=col>" c[i] "</th>"
    print "</tr></thead><tbody>"
}
function tr() { printf "<tr>" }
function td(s) { printf "<td>%s</td>", esc(s) }
function right(s) { printf "<td class=n>%s</td>", esc(s) }
function tr_end() { print "</tr>" }
function table_end() { print "</tbody></table></div>" }

# An SVG from results, inlined; its own description becomes the text alternative. optional: nothing is said where there
# is none.
function figure(name_, optional,   path, line, text, alt) {
    path = results "/" name_ ".svg"
    while ((getline line < path) > 0) {
        if (line ~ /^<desc>/) {
            alt = line
            gsub(/<\/?desc>/, "", alt)
            gsub(/"/, "\\&quot;", alt)
        }
        if (line !~ /^<(\?xml|title>|desc>)/)
            text = text line "\n"
    }
    close(path)
    if (text == "" && optional)
        return
    if (text == "")
        return missing("figure " name_ ". There are no rows of " (name_ ~ /error/ ? "verify.csv" : "bench.csv") \
            " to draw it from, or <code>sh plots/plots.sh</code> has not run.")
    print "<figure tabindex=0>"
    print substr(text, 1, index(text, "<svg") + 3) " role=\"img\" aria-label=\"" alt "\""
    print substr(text, index(text, "<svg") + 4) "</figure>"
}
