# Writes every one-token mutant of a C file: awk -f mutate.awk -v tag=05 -v out=DIR reference/05_split_kv.c
# DIR/ID/<file> is the mutant. A line of standard output each: id, file:line, class, change, tab-separated.
# An id is TAG.FUNCTION.OPERATOR.ORDINAL, counted within the function: a change of one function renames no mutant of another.
# It relies on clang-format: a binary operator stands between spaces, a pointer star does not.

# Text without comments and literals of this kind is all that is read; struct types and the descriptor are left alone.
function strip(text,    a, b) {
    while ((a = index(text, "/*")) > 0) {
        b = index(substr(text, a), "*/")
        if (b == 0) { commented = 1; return substr(text, 1, a - 1) }
        text = substr(text, 1, a - 1) substr(text, a + b + 1)
    }
    sub(/[ \t]+$/, "", text)
    return text
}

function trim(text) { gsub(/^ +| +$/, "", text); return text }

function emit(k, text, operator,    id, n) {
    if ((k, text) in seen || text == code[k]) return
    seen[k, text] = 1
    id = tag "." func_of[k] "." operator "." (++ordinal[func_of[k], operator])
    made++
    ids[made] = id; at[made] = k; change[made] = text
}

# Every occurrence of a literal text.
function each(k, from, to, operator,    start, pos, text) {
    text = code[k]
    for (start = 1; (pos = index(substr(text, start), from)) > 0; start = start + pos - 1 + length(from))
        emit(k, substr(text, 1, start + pos - 2) to substr(text, start + pos - 1 + length(from)), operator)
}

# Every occurrence as a whole word.
function word(k, from, to, operator,    start, pos, text, a, z) {
    text = code[k]
    for (start = 1; (pos = index(substr(text, start), from)) > 0; start = start + pos - 1 + length(from)) {
        a = substr(text, start + pos - 2, start + pos > 2)
        z = substr(text, start + pos - 1 + length(from), 1)
        if (a !~ /[A-Za-z0-9_]/ && z !~ /[A-Za-z0-9_]/)
            emit(k, substr(text, 1, start + pos - 2) to substr(text, start + pos - 1 + length(from)), operator)
    }
}

# Numbers: 0 -> 1, 1 -> 0 and 2, n -> n + 1; 0.0f -> 1.0f, any other x.xf -> 0.0f.
function numbers(k,    text, start, a, z, token, head, tail) {
    text = code[k]
    for (start = 1; match(substr(text, start), /[0-9][0-9A-Za-z_.]*/); start += RSTART - 1 + RLENGTH) {
        head = substr(text, 1, start + RSTART - 2)
        token = substr(text, start + RSTART - 1, RLENGTH)
        tail = substr(text, start + RSTART - 1 + RLENGTH)
        if (head ~ /[A-Za-z_0-9]$/) continue
        if (token ~ /^[0-9]+$/) {
            emit(k, head (token + 1) tail, "number")
            if (token > 0) emit(k, head (token - 1) tail, "number")
        } else if (token ~ /^[0-9.]+f$/) emit(k, head (token == "0.0f" ? "1.0f" : "0.0f") tail, "number")
    }
}

# a[x] -> a[x + 1], a[x - 1]. Sizes in declarations are no subscripts.
function subscripts(k,    text, i, j, depth, c, inner) {
    text = code[k]
    for (i = 1; i <= length(text); i++) {
        if (substr(text, i, 1) != "[") continue
        depth = 0
        for (j = i; j <= length(text); j++) {
            c = substr(text, j, 1)
            depth += (c == "[") - (c == "]")
            if (depth == 0) break
        }
        inner = substr(text, i + 1, j - i - 1)
        if (inner ~ /^FD_HEAD_DIM_MAX$/) continue
        emit(k, substr(text, 1, j - 1) " + 1" substr(text, j), "subscript")
        emit(k, substr(text, 1, j - 1) " - 1" substr(text, j), "subscript")
    }
}

function statement(k,    text, t, pos, bound, rest) {
    text = code[k]
    t = trim(text)
    if (t ~ /^for \(/ && match(text, /; [^;]*;/)) { # the condition's right side, one less
        pos = RSTART + RLENGTH - 2
        emit(k, substr(text, 1, pos) " - 1" substr(text, pos + 1), "bound")
    }
    if (t ~ /^if \(.*\) \{$/) {
        rest = substr(t, 5, length(t) - 7)
        emit(k, "if (!(" rest ")) {", "negate")
        emit(k, "if (1 || (" rest ")) {", "always")
    }
    if (t ~ /;$/ && t !~ /^(const|float|int32_t|int64_t|size_t|partials|for|\(void\)|return [^F])/ && t !~ /^return FD_OK/)
        emit(k, ";", "delete")
    if (t ~ /return FD_OK;/) emit(k, "return FD_INVALID;", "status")
}

function pairs(k, operator, list,    n, i, part) {
    n = split(list, part, "|")
    for (i = 1; i < n; i += 2) each(k, part[i], part[i + 1], operator)
}

function words(k, operator, list,    n, i, part) {
    n = split(list, part, "|")
    for (i = 1; i < n; i += 2) word(k, part[i], part[i + 1], operator)
}

function mutate(k,    t) {
    pairs(k, "arithmetic", " + | - | - | + | * | / | * | + | / | * | += | -= | += | = | -= | += | *= | /= | *= | = | /= | *= | /= | = ")
    pairs(k, "compare", " < | <= | < | >= | <= | < | <= | > | > | >= | > | <= | >= | > | >= | < | == | != | != | == ")
    each(k, " && ", " || ", "logic")
    each(k, "||", "&&", "logic")
    each(k, "++", "--", "step")
    each(k, "-INFINITY", "INFINITY", "infinity")
    each(k, "-INFINITY", "0.0f", "infinity")
    pairs(k, "call", "expf(|(|expf(|logf(|logf(|(|logf(|expf(|fmaxf(|fminf(")
    numbers(k)
    subscripts(k)
    pairs(k, "field", "w->m|w->l|w->l|w->m|w->o|w->m|w->s|w->o|w.m|w.l|w.l|w.m|w.s|w.m|&p->q|&p->k|&p->k|&p->v|&p->v|&p->k|&p->o|&p->q|&p->lse|&p->o")
    pairs(k, "arguments", "(p, b, h|(p, h, b|split, b, h|split, h, b|q, row|row, row|m - s|s - m|s[j] - m|m - s[j]")
    t = trim(code[k])
    words(k, "name", "head_dim_v|head_dim|head_dim|head_dim_v|heads_q|heads_kv|heads_q|batch|batch|heads_q|split_begin + j|j|step|1")
    if (t !~ /^const int64_t kv_len/) word(k, "kv_len", "p->kv_capacity", "name")
    if (t !~ /^const int32_t h_kv/) word(k, "h_kv", "h", "name")
    if (t !~ /^(float|const float|static)/) words(k, "name", "m|l|l|m")
    if (t ~ /->/) words(k, "name", "num_splits|split_size|split_size|num_splits|num_splits_request|split_size_request|split_size_request|num_splits_request")
    statement(k)
}

{
    raw = $0
    if (commented) {
        end = index(raw, "*/")
        if (end > 0) commented = 0
        next_is_code = 0
        lines[++count] = raw; func_of[count] = ""; next
    }
    text = strip(raw)
    if (commented) { # opened here and closed later: copied
        lines[++count] = raw; func_of[count] = ""; next
    }
    if (text ~ /^typedef struct/) skipping = 1
    if (text ~ /^const fd_rung/) stopped = 1
    if (skipping || stopped || text == "" || (text ~ /^(#|extern)/ && text !~ /^#define SPLIT_SIZE/)) {
        lines[++count] = raw; func_of[count] = ""
        if (text ~ /^}/) skipping = 0
        next
    }
    if (text ~ /^(static|fd_status|int64_t) .*\(/) {
        name = text
        sub(/\(.*/, "", name)
        sub(/.*[ *]/, "", name)
        inside = name
    }
    if (open_statement != "") {
        sub(/^ +/, " ", text)
        sub(/^ /, (open_statement ~ /\($/ ? "" : " "), text)
        open_statement = open_statement text
        lines[++count] = ""; func_of[count] = ""
    } else {
        lines[++count] = text; first = count; open_statement = text
    }
    if (text ~ /[;{}]$/ || text ~ /^#/) {
        code[first] = open_statement; lines[first] = open_statement
        func_of[first] = inside == "" ? "file" : inside
        open_statement = ""
    }
}

END {
    for (k = 1; k <= count; k++)
        if (func_of[k] != "" && code[k] !~ /^(static|fd_status|int64_t|}|    } else {)/) mutate(k)
    file = FILENAME
    sub(/.*\//, "", file)
    for (n = 1; n <= made; n++) {
        dir = out "/" ids[n]
        system("mkdir -p " dir)
        path = dir "/" file
        for (k = 1; k <= count; k++) print (k == at[n] ? change[n] : lines[k]) > path
        close(path)
        printf "%s\t%s:%d\t%s\t`%s` -> `%s`\n", ids[n], FILENAME, at[n], func_of[at[n]] == "arith" ? "claims" : "code", \
            trim(code[at[n]]), trim(change[n])
    }
}
