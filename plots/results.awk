# results.awk: reads ladder.csv, verify.csv, bench.csv, splits.csv, decode.csv and mutants.csv into arrays; prepare()
# sums them up.
# The other programs only ask these arrays, so that a figure, the page and the terminal cannot disagree.

BEGIN {
    wanted["ladder.csv"] = "rung name parent idea"
    wanted["verify.csv"] = "rung where case family dtype_q dtype_kv dtype_o kv_len plot err_max err_p50 bound ratio " \
        "verdict"
    wanted["bench.csv"] = "rung where dtype_kv kv_len ns_median ns_p25 ns_p75 bytes floor_ns"
    wanted["splits.csv"] = "rung heads_q head_dim kv_len num_splits split_size seeds err_p50 err_p90 err_max bound " \
        "ns_median ns_p25 ns_p75 floor_ns threads"
    wanted["decode.csv"] = "rung where heads_q heads_kv head_dim dtype_kv kv_len threads append ns_median floor_ns " \
        "bytes checked differ ratio"
    wanted["mutants.csv"] = "mutant name parent change killed_by margin verdict"
}
FNR == 1 {
    file = FILENAME
    sub(/.*\//, "", file)
    header = 0
    have[file] = 1
}
{ sub(/\r$/, "") }
/^#/ {
    line = $0
    sub(/^#[ \t]*/, "", line)
    if (line != "" && !((file, line) in seen)) {
        seen[file, line] = 1
        record[file, ++records[file]] = line
    }
    next
}
/^[ \t]*$/ { next }
!header {
    header = 1
    csv_header($0, wanted[file])
    next
}
{ csv_split($0, cell) }
file == "ladder.csv" {
    r = get("rung") + 0
    rung[++rungs] = r
    name[r] = get("name")
    parent[r] = get("parent") + 0
    idea[r] = get("idea")
}
file == "verify.csv" { verify_row() }
file == "bench.csv" { bench_row() }
file == "splits.csv" { splits_row() }
file == "decode.csv" { decode_row() }
file == "mutants.csv" {
    m = ++mutants
    for (c in col)
        mutant[m, c] = cell[col[c]]
    v = tolower(get("verdict"))
    mutant[m, "ok"] = v == "pass" || v == "killed" || v == "ok"
    mutants_killed += mutant[m, "ok"]
    if (v ~ /^skip/)
        mutants_skipped++
}

function verify_row(   r, v, k, t, x) {
    r = get("rung") + 0
    v = tolower(get("verdict"))
    if (v ~ /^skip/) {
        skipped++
        return
    }
    for (c in col)
        row[rows + 1, c] = cell[col[c]]
    rows++
    if (v ~ /^expected/) {
        expected[++expecteds] = rows
        gives_up[r]++
    }
    if (v ~ /^expected/ || v == "pass")
        passed++
    else
        failure[++failures] = rows
    vacuous += get("vacuous") > 0
    undecided += get("undecided")
    if (get("family") == "real")
        real[++reals] = rows
    if (get("case") ~ /^guide-16k/)
        guide[++guides] = rows
    if (v ~ /^expected/)
        return
    cases[r]++
    x = num(get("ratio"))
    if (!(r in worst) || x > num(row[worst[r], "ratio"]))
        worst[r] = rows
    k = get("family")
    if (!((k) in family_seen)) {
        family_seen[k] = 1
        family[++families] = k
    }
    if (get("dtype_o") ~ /32/ && (!((r, k) in hardest) || x > hardest[r, k]))
        hardest[r, k] = x
    if (get("plot") != 1)
        return
    t = get("where") " " get("dtype_q") " " get("dtype_kv") " " get("dtype_o")
    if (sweep_type == "")
        sweep_type = t
    if (!(r in own_type))
        own_type[r] = t
    if (t == sweep_type)
        own_type[r] = t
    k = get("kv_len") + 0
    if (!((r, t, k) in err)) {
        sweep_n[r, t]++
        sweep_kv[r, t, sweep_n[r, t]] = k
        bound[r, t, k] = 3e300
    }
    err_rows[r, t, k]++
    if (!((r, t, k) in err) || num(get("err_max")) > err[r, t, k])
        err[r, t, k] = num(get("err_max"))
    p50[r, t, k] += num(get("err_p50"))
    if (get("ulp_p90") != "")
        more_ulps(r SUBSEP t SUBSEP k)
    if (num(get("bound")) < bound[r, t, k])
        bound[r, t, k] = num(get("bound"))
    sweep_shape = shape()
    sweep_family = get("family")
}

# Quantiles of |o - o*| in units of the last place; of several cases at one length, the largest of each.
function more_ulps(at_,   n, i, q) {
    n = split("ulp_p50 ulp_p90 ulp_p99 ulp_max", q, " ")
    for (i = 1; i <= n; i++)
        if (!((at_, q[i]) in ulp) || num(get(q[i])) > ulp[at_, q[i]])
            ulp[at_, q[i]] = num(get(q[i]))
}

# One rung with one number of splits.
function splits_row(   r, i, n, q, k) {
    r = get("rung") + 0
    k = get("num_splits") + 0
    n = split("err_p50 err_p90 err_max bound ratio ns_median ns_p25 ns_p75 floor_ns split_size roundings threads", q, " ")
    if (!((r, k, "err_p50") in split_at))
        split_kv[r, ++split_n[r]] = k
    for (i = 1; i <= n; i++)
        split_at[r, k, q[i]] = num(get(q[i]))
    split_shape = "one head, head_dim " get("head_dim") ", " keys(get("kv_len")) " keys, " plural(get("seeds"), "random input")
    split_keys = get("kv_len") + 0
}

# Neighbouring steps of a decode loop.
function decode_row(   r, k) {
    r = get("rung") + 0
    k = get("kv_len") + 0
    if (!(r in decode_n))
        decode_rung[++decode_rungs] = r
    decode_kv[r, ++decode_n[r]] = k
    decode_ns[r, k] = num(get("ns_median"))
    decode_ns25[r, k] = num(get("ns_p25"))
    decode_ns75[r, k] = num(get("ns_p75"))
    decode_floor[r, k] = num(get("floor_ns"))
    decode_bytes[r, k] = num(get("bytes"))
    decode_threads[r] = get("threads") + 0
    decode_checked[r] += get("checked")
    decode_differ[r] += get("differ")
    if (num(get("ratio")) > decode_ratio[r] + 0)
        decode_ratio[r] = num(get("ratio"))
    decode_shape = "heads " get("heads_q") ":" get("heads_kv") ", head_dim " get("head_dim") ", " get("dtype_kv") ", " \
        plural(get("append"), "token") " a step"
}

function shape() {
    return "batch " get("batch") ", heads_q " get("heads_q") ", heads_kv " get("heads_kv") ", head_dim " get("head_dim")
}

# One configuration of bench.csv: what a rung and its parent must share to be compared. Of several rows at one length,
# the one with most threads counts, then the one with a cold cache.
function bench_row(   r, g, k, rank) {
    r = get("rung") + 0
    g = get("where") ", " get("dtype_kv") ", " shape() (get("q_len") > 1 ? ", q_len " get("q_len") : "")
    k = get("kv_len") + 0
    if (!(num(get("ns_median")) > 0) || !known(num(get("ns_median"))))
        return
    if (get("threads") == 1)
        ns_one[g, r, k] = num(get("ns_median"))
    if (!(g in group_rows))
        group[++groups] = g
    group_rows[g]++
    rank = 2 * get("threads") + (get("cache") == "cold")
    if ((g, r, k) in ns && rank <= ranked[g, r, k])
        return
    ranked[g, r, k] = rank
    if (!((g, r, k) in ns)) {
        bench_n[g, r]++
        bench_kv[g, r, bench_n[g, r]] = k
    }
    ns[g, r, k] = num(get("ns_median"))
    ns25[g, r, k] = num(get("ns_p25"))
    ns75[g, r, k] = num(get("ns_p75"))
    floor[g, r, k] = num(get("floor_ns"))
    bytes[g, r, k] = num(get("bytes"))
    work[g, r, k] = num(get("workspace_bytes"))
    threads[g, r, k] = get("threads") + 0
    cache[g, r, k] = get("cache")
}

# Fills, per rung: type[], kv[] and at[] (its sweep, the longest), config[] and when[] (its timing, the longest).
function prepare(   i, j, r, p, t, g, n, best, a) {
    if (bad)
        exit bad
    if (!rungs)
        die("ladder.csv has no rung; make report writes it anew")
    for (j in err_rows)
        p50[j] /= err_rows[j]
    for (i = 1; i <= rungs; i++) {
        r = rung[i]
        if (r in own_type) {
            p = parent[r] # a step is shown in types that its parent takes, too, where there are such
            t = type[r] = (p in type) && (r, type[p]) in sweep_n ? type[p] : own_type[r]
            n = points[r] = sweep_n[r, t]
            for (j = 1; j <= n; j++)
                a[j] = sweep_kv[r, t, j]
            sort(a, n)
            for (j = 1; j <= n; j++) {
                kv[r, j] = a[j]
                e_max[r, a[j]] = err[r, t, a[j]]
                e_p50[r, a[j]] = p50[r, t, a[j]]
                e_bound[r, a[j]] = bound[r, t, a[j]]
            }
            at[r] = a[n]
        }
        best = ""
        for (j = 1; j <= groups; j++)
            if ((group[j], r) in bench_n && (best == "" || group_rows[group[j]] > group_rows[best]))
                best = group[j]
        if (best != "") {
            config[r] = best
            n = timings[r] = bench_n[best, r]
            for (j = 1; j <= n; j++)
                a[j] = bench_kv[best, r, j]
            sort(a, n)
            for (j = 1; j <= n; j++)
                bkv[r, j] = a[j]
            when[r] = a[n]
        }
    }
    common()
    failures += 0
    passed += 0
    undecided += 0
    skipped += 0
    expecteds += 0
    mutants += 0
    mutants_killed += 0
    machine = find_record("processor|cpu|model")
}

# What all rungs share: ladder_at, the longest kv_len of their sweeps; base, the first timed rung, and ladder_kv, the
# longest kv_len timed for all rungs in the configuration of base.
function common(   i, j, r, k, all) {
    for (i = rungs; i > 0; i--) {
        if (rung[i] in config)
            base = rung[i]
        if (rung[i] in type)
            r = rung[i]
    }
    for (j = 1; j <= points[r]; j++) {
        k = kv[r, j]
        for (i = all = 1; i <= rungs; i++)
            if ((rung[i] in type) && !((rung[i], k) in e_max))
                all = 0
        if (all)
            ladder_at = k
    }
    for (j = 1; j <= timings[base]; j++) {
        k = bkv[base, j]
        for (i = all = 1; i <= rungs; i++)
            if ((rung[i] in config) && config[rung[i]] == config[base] && !((config[base], rung[i], k) in ns))
                all = 0
        if (all)
            ladder_kv = k
    }
}

function time(r, k) { return (r in config) && ((config[r], r, k) in ns) ? ns[config[r], r, k] : -1 }

# "cache hot up to 4K keys, then cold", or what it is throughout.
function heat(r,   j, k, hot, other) {
    for (j = 1; j <= timings[r]; j++) {
        k = bkv[r, j]
        if (cache[config[r], r, k] == "hot")
            hot = k
        else
            other = cache[config[r], r, k]
    }
    return hot && other != "" ? "cache hot up to " keys(hot) " keys, then " other : "cache " (hot ? "hot" : other)
}

function over_floor(r, k) {
    return time(r, k) > 0 && floor[config[r], r, k] > 0 ? time(r, k) / floor[config[r], r, k] : -1
}

# How many times faster rung r is than rung p at kv_len k; -1 where they were not timed alike.
function speedup(r, p, k) {
    if (!(r in config) || !(p in config) || config[r] != config[p] || time(r, k) <= 0 || time(p, k) <= 0)
        return -1
    return time(p, k) / time(r, k)
}

# Has rung p errors in the types that r's are shown in?
function alike(p, r) { return p && (r in type) && (p, type[r]) in sweep_n }

# " Errors in fp32; q bf16, ... in 25 26.": which types the errors are shown in; "" where all are alike.
function other_types(   i, r, t, s, of) {
    for (i = 1; i <= rungs; i++) {
        r = rung[i]
        if (!(r in type) || dtypes(type[r]) == dtypes(sweep_type))
            continue
        if (dtypes(type[r]) != t)
            s = s (s == "" ? "" : "; ") (t = dtypes(type[r])) " in"
        s = s " " two(r)
    }
    return s == "" ? "" : " Errors in " dtypes(sweep_type) "; " s "."
}

# The longest sweep (or timed) kv_len a rung shares with its parent; its own longest where there is no parent.
function shared(r, timed,   j, n, k, p, found) {
    p = parent[r]
    n = timed ? timings[r] : points[r]
    for (j = 1; j <= n; j++) {
        k = timed ? bkv[r, j] : kv[r, j]
        if (timed ? speedup(r, p, k) > 0 : (p, type[r], k) in err)
            found = k
    }
    return found ? found : timed ? when[r] : at[r]
}

# "3.1x below", "1.20x above" or "level with" (within 2 %): a over b, smaller is the first word.
function compare(a, b, smaller, larger) {
    if (!known(a) || !known(b) || b == 0 || a == 0)
        return "not comparable with"
    if (a < b / 1.02)
        return times(b / a) " " smaller
    return a > b * 1.02 ? times(a / b) " " larger : "level with"
}

# Could the difference of two times be noise? It could where their middle halves overlap.
function noise(r, p, k,   g) {
    g = config[r]
    return r != p && ns25[g, r, k] > 0 && ns25[g, p, k] > 0 && ns25[g, r, k] <= ns75[g, p, k] && \
        ns25[g, p, k] <= ns75[g, r, k]
}

# compare() of the times of two rungs; no change is claimed that could be noise.
function compare_times(r, p, k, faster, slower) {
    return noise(r, p, k) ? "level with" : compare(time(r, k), time(p, k), faster, slower)
}

# A speedup for a table.
function gain(r, p, k) {
    return speedup(r, p, k) > 0 && noise(r, p, k) ? "level" : times(speedup(r, p, k))
}

# The median time of the sections between two positions of a decode loop; -1: there is none.
function decode_between(r, lo, hi,   i, k, n, a) {
    for (i = 1; i <= decode_n[r]; i++) {
        k = decode_kv[r, i]
        if (k > lo && k <= hi && decode_ns[r, k] > 0)
            a[++n] = decode_ns[r, k]
    }
    sort(a, n)
    return n ? a[int((n + 1) / 2)] : -1
}

# How time per token grows when the cache doubles, at the end of the way: 1 is flat, 2 is linear.
function decode_twice(r,   far, late, early) {
    far = decode_kv[r, decode_n[r]]
    late = decode_between(r, 0.75 * far, far)
    early = decode_between(r, 0.375 * far, far / 2)
    return late > 0 && early > 0 ? late / early : -1
}

# The number of splits at which column `what` is least.
function least_at(r, what,   i, k, b) {
    for (i = 1; i <= split_n[r]; i++) {
        k = split_kv[r, i]
        if (!b || split_at[r, k, what] < split_at[r, b, what])
            b = k
    }
    return b
}

# The value of the first machine-record line whose key matches, in the files named by in_, or in the usual ones.
function find_record(pattern, in_,   f, i, k, n, files) {
    n = split(in_ != "" ? in_ : "bench.csv verify.csv splits.csv decode.csv", files, " ")
    for (f = 1; f <= n; f++)
        for (i = 1; i <= records[files[f]]; i++) {
            k = record[files[f], i]
            if (k ~ "^(" pattern ")[ \t]*:") {
                sub(/^[^:]*:[ \t]*/, "", k)
                return k
            }
        }
    return ""
}

# "cpu f32 f16 f32" in words.
function types(t,   w) {
    split(t, w, " ")
    return w[1] ", " (w[2] == w[3] && w[3] == w[4] ? w[2] : "q " w[2] ", kv " w[3] ", o " w[4])
}

# The same without where it ran.
function dtypes(t) {
    t = types(t)
    sub(/^[^,]*, /, "", t)
    return t
}

function failed() { return failures + mutants - mutants_killed - mutants_skipped }

# The word of the banner; why says what is missing. Nothing verified is not a pass.
function verdict(   i) {
    why = !passed ? "verify.csv has no passed case" : mutants ? "" : "mutants.csv has no mutant"
    for (i = 1; i <= rungs; i++)
        if (why == "" && !cases[rung[i]])
            why = "rung " two(rung[i]) " has no verified case"
    return failed() || undecided ? "FAILED" : why != "" ? "INCOMPLETE" : "PASSED"
}
