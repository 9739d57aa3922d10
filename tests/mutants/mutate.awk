# Applies one mutant file to its parent: awk -f mutate.awk -v symbol=fd_mutant_x x.mutant parent.c > x.c
# With -v target=x.c -v depends=FILE it writes into FILE, for make, that x.c depends on the parent, which may be gone one day.
# Each "---" block must occur exactly once in the parent; it is replaced by the "+++" block that follows it.
# Head lines: parent: name: idea:, and tier: where only one tier can see the bug (a remark; nothing depends on it).

function die(message) {
    print mutant ": " message > "/dev/stderr"
    failed = 1
    exit 1
}

function quoted(text) {
    gsub(/\\/, "\\\\", text)
    gsub(/"/, "\\\"", text)
    return text
}

# Block h as a C string: file and line of the parent, then the lines that differ, "- " and "+ ".
function change(h, line,    o, n, a, b, first, last, i, text) {
    a = split(old[h], o, "\n") - 1
    b = split(new[h], n, "\n") - 1
    for (first = 1; first <= a && first <= b && o[first] == n[first]; first++) continue
    for (last = 0; last < a - first + 1 && last < b - first + 1 && o[a - last] == n[b - last]; last++) continue
    text = parent ":" (line + first - 1) "\\n"
    for (i = first; i <= a - last; i++) text = text "- " quoted(o[i]) "\\n"
    for (i = first; i <= b - last; i++) text = text "+ " quoted(n[i]) "\\n"
    return text
}

FNR == 1 { file++ }
file == 1 {
    mutant = FILENAME
    if ($0 == "---") { hunks++; side = "old" }
    else if ($0 == "+++") side = "new"
    else if (side == "old") old[hunks] = old[hunks] $0 "\n"
    else if (side == "new") new[hunks] = new[hunks] $0 "\n"
    else if ($1 == "name:") { sub(/^name: */, ""); name = $0 }
    else if ($1 == "idea:") { sub(/^idea: */, ""); idea = $0 }
    else if ($1 == "parent:") parent = $2
    else if ($1 !~ /^tier:$/) die("line " FNR " is none of parent: name: idea: tier: ---")
    next
}
{ source = source $0 "\n" }

END {
    if (failed) exit 1
    if (depends != "") printf "%s: %s\n%s:\n", target, FILENAME, FILENAME > depends
    pristine = source
    if (name == "" || idea == "" || hunks == 0) die("needs name:, idea: and at least one --- +++ pair")
    for (h = 1; h <= hunks; h++) {
        at = index(source, old[h])
        if (at == 0) { # a rung that is being edited can still be built and judged; `mutants` fails until this is mended
            print mutant ": stale: block " h " is not in its parent any more" > "/dev/stderr"
            printf "/* Written by mutate.awk from %s: do not edit. */\n#include \"fd.h\"\n", mutant
            printf "extern const fd_rung %s;\nconst fd_rung %s = {.size = sizeof(fd_rung), .name = \"%s\",\n", symbol, symbol, name
            printf "    .idea = \"stale: its parent has changed, update the mutant\"};\n"
            printf "extern const char %s_change[];\nconst char %s_change[] = \"stale\\n\";\n", symbol, symbol
            failed = 1
            exit 0
        }
        rest = substr(source, at + length(old[h]))
        if (index(rest, old[h]) > 0) die("block " h " occurs more than once in the parent: add a line of context")
        source = substr(source, 1, at - 1) new[h] rest
        changes = changes change(h, split(substr(pristine, 1, index(pristine, old[h]) - 1), lines, "\n"))
    }
    if (!match(source, /const fd_rung fd_rung_[a-z0-9_]+/)) die("the parent defines no rung")
    source = substr(source, 1, RSTART - 1) "const fd_rung " symbol substr(source, RSTART + RLENGTH)
    if (match(source, /\.parent = [0-9]+/) && match(source, /\.number = [0-9]+/)) {
        number = substr(source, RSTART + 10, RLENGTH - 10)
        sub(/\.parent = [0-9]+/, ".parent = " number, source)
        sub(/\.number = [0-9]+/, ".number = 0", source)
    }
    sub(/\.name = "[^"]*"/, ".name = \"" name "\"", source)
    sub(/\.idea = "[^"]*"/, ".idea = \"" idea "\"", source)
    printf "/* Written by mutate.awk from %s: do not edit. */\n%s", mutant, source
    printf "extern const char %s_change[];\nconst char %s_change[] = \"%s\";\n", symbol, symbol, changes
}
