# gpu.awk: results recorded on a GPU (bench, verify, relations, sanitize and huge.csv), asked through results.awk.
# Behind csv.awk and results.awk; gpu.sh makes the ladder.csv that those want.

# The context length of the guide's claims, and the heads of its models with and without groups.
BEGIN {
    ref = 65536
    grouped = "32:8"
    ungrouped = "32:32"
}
# ns of an empty kernel.
file == "bench.csv" { launch = num(get("launch_ns")) }
file == "verify.csv" { verdicts[get("rung") + 0, kind(tolower(get("verdict")))]++ }
file == "relations.csv" {
    related[get("rung") + 0] = get("passed") + 0
    unrelated[get("rung") + 0] = get("failed") + 0
}
file == "sanitize.csv" && get("code") != 77 { # 77: the rung does not take that case, and nothing ran
    sanitized[get("rung") + 0]++
    unclean[get("rung") + 0] += get("code") != 0 || get("errors") != 0
}

file == "huge.csv" && get("verdict") != "skip" {
    beyond[get("rung") + 0]++
    astray[get("rung") + 0] += get("verdict") != "pass"
}

function kind(v) { return v ~ /^skip/ ? "skipped" : v == "pass" || v ~ /^expected/ ? "passed" : "failed" }

# Fills group_of[batch, heads], batch_of[1..batches], heads_of[1..heads], first (the rung that all are compared with),
# last, and the words of the record.
function prepare_gpu(   i, w, b, h) {
    prepare()
    for (i = 1; i <= groups; i++) {
        match(group[i], /batch [0-9]+/)
        b = substr(group[i], RSTART + 6, RLENGTH - 6) + 0
        match(group[i], /heads_q [0-9]+/)
        h = substr(group[i], RSTART + 8, RLENGTH - 8)
        match(group[i], /heads_kv [0-9]+/)
        h = h ":" substr(group[i], RSTART + 9, RLENGTH - 9)
        group_of[b, h] = group[i]
        if (!((b) in batch_seen))
            batch_of[++batches] = b
        if (!((h) in heads_seen))
            heads_of[++heads] = h
        batch_seen[b] = heads_seen[h] = 1
    }
    sort(batch_of, batches)
    first = rung[1]
    last = rung[rungs]
    split(find_record("processor"), w, ",")
    card = w[1]
    split(find_record("gpu, driver[^:]*"), w, ", ")
    driver = w[2]
    stamp = stamp_of("recorded", "bench.csv")
    match(group[1], /^[^,]*, [^,]*/)
    elements = substr(group[1], RSTART + 5, RLENGTH - 5)
    match(group[1], /head_dim.*/)
    elements = elements ", " substr(group[1], RSTART)
}

# The time of a call, and the read of the same K and V in the same run; -1 where nothing was timed.
function took(b, h, r, k) {
    return (b, h) in group_of && (group_of[b, h], r, k) in ns ? ns[group_of[b, h], r, k] : -1
}
function reads(b, h, r, k) { return took(b, h, r, k) > 0 ? floor[group_of[b, h], r, k] : -1 }
function over_read(b, h, r, k) { return took(b, h, r, k) > 0 ? took(b, h, r, k) / reads(b, h, r, k) : -1 }
function faster(b, h, r, p, k) {
    return took(b, h, r, k) > 0 && took(b, h, p, k) > 0 ? took(b, h, p, k) / took(b, h, r, k) : -1
}

# "recorded on CARD, DATE, commit C", of one results file.
function stamp_of(done, file) {
    return done " on " card ", " substr(find_record("date", file), 1, 10) ", commit " find_record("commit", file)
}

function recorded_parent(r) { return ((parent[r]) in name) && parent[r] >= first ? parent[r] : 0 }

# The nearest ancestor with errors in r's types, 0 without.
function error_parent(r,   p) {
    for (p = recorded_parent(r); p && !alike(p, r); )
        p = recorded_parent(p)
    return p
}

# length_at[1..n]: the lengths timed for rung r, ascending. Returns n.
function lengths(b, h, r,   i, n, g) {
    g = group_of[b, h]
    n = bench_n[g, r]
    split("", length_at)
    for (i = 1; i <= n; i++)
        length_at[i] = bench_kv[g, r, i]
    sort(length_at, n)
    return n
}

# The longest length timed for these heads at every batch.
function longest(h,   i, j, n, all, found) {
    n = lengths(batch_of[1], h, first)
    for (i = 1; i <= n; i++) {
        all = 1
        for (j = 1; j <= batches; j++)
            if (took(batch_of[j], h, last, length_at[i]) < 0 || took(batch_of[j], h, first, length_at[i]) < 0)
                all = 0
        if (all)
            found = length_at[i]
    }
    return found
}

# Of all timings of rung r and its parent: counted, more than 2 % faster, more than 2 % slower.
function contest(r, p,   i, j, m, n, x) {
    counted = won = lost = 0
    for (i = 1; i <= batches; i++)
        for (j = 1; j <= heads; j++) {
            n = lengths(batch_of[i], heads_of[j], r)
            for (m = 1; m <= n; m++) {
                x = faster(batch_of[i], heads_of[j], r, p, length_at[m])
                counted += x > 0
                won += x > 1.02
                lost += x > 0 && x < 1 / 1.02
            }
        }
}

function contest_words(r, p) {
    contest(r, p)
    return "faster than " two(p) " by more than 2 % in " won " of " counted " timings, slower in " lost
}

# 32:8 in the name of a file.
function file_word(h) {
    sub(/:/, "x", h)
    return h
}

function sentence_case(s) { return toupper(substr(s, 1, 1)) substr(s, 2) }
function percent(x) { return sprintf(x < 0.0995 ? "%.1f %%" : "%.0f %%", 100 * x) }

# What the judge, the relations and the sanitizers say of a rung, in words.
function checked(r) {
    return "verify: " verdicts[r, "passed"] + 0 " passed, " verdicts[r, "failed"] + 0 " failed, " \
        verdicts[r, "skipped"] + 0 " skipped; relations: " related[r] + 0 " passed, " unrelated[r] + 0 \
        " failed; sanitizers: " sanitized[r] - unclean[r] " of " sanitized[r] + 0 " runs without an error; past 2^31 elements: " \
        beyond[r] - astray[r] " of " beyond[r] + 0 " problems right"
}
