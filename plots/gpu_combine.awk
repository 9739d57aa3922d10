# gpu_combine.awk: what the combine costs, alone and as a part of a call. Behind gpu_observe.awk, whose letters it uses.

# What a whole call takes beyond its split kernel alone; -1 without a combine kernel. Share: of the whole.
function added(a, q) { return (a, q) in stage1 ? whole[a, q] - stage1[a, q] : -1 }
function added_share(a, q) { return (a, q) in stage1 ? added(a, q) / whole[a, q] : -1 }

# The least and the largest of a measure over the lengths at which rung r combines at its own cut, with their lengths.
function combine_range(r, h, what,   a, i, x) {
    low_of = high_of = -1
    for (i = 1; i <= parts_lengths(r, h); i++) {
        a = r SUBSEP h SUBSEP part_length[i]
        if (!((a, 0) in stage1))
            continue
        x = what == "share" ? added_share(a, 0) : what == "added" ? added(a, 0) : stage2[a, 0]
        if (low_of < 0 || x < low_of) {
            low_of = x
            low_at = part_length[i]
        }
        if (x > high_of) {
            high_of = x
            high_at = part_length[i]
        }
    }
}

# The lengths at which r was timed in parts at its own cut, ascending: part_length[1..n]. Returns n.
function parts_lengths(r, h,   i, n, all) {
    split("", part_length)
    split("1024 2048 4096 8192 16384 32768 65536 131072", all, " ")
    for (i = 1; i <= 8; i++)
        if ((r, h, all[i], 0) in whole)
            part_length[++n] = all[i]
    return n
}

function combine_words(r, h) {
    combine_range(r, h, "share")
    return two(r) " " percent(low_of) " (" keys(low_at) " keys) to " percent(high_of) " (" keys(high_at) ")"
}

# 22's combine alone for the numbers of chunks that the guide calls typical.
function combine_alone(r, h, q,   a) {
    a = r SUBSEP h SUBSEP ref
    return duration(stage2[a, q]) " for " plural(q, "split")
}

# The parts with a combine that rungs r and p cut alike, at lengths k: what waiting costs.
function waiting_words(r, p, h, k,   a, b) {
    a = r SUBSEP h SUBSEP k
    b = p SUBSEP h SUBSEP k
    if (!((a, 0) in stage1) || !((b, 0) in stage1) || cut[a, 0] != cut[b, 0])
        return ""
    return "at " keys(k) " keys and " plural(cut[a, 0], "split") " the combine adds " duration(added(b, 0)) " to " two(p) \
        " (" percent(added_share(b, 0)) " of the call) and " duration(added(a, 0)) " to " two(r) " (" \
        percent(added_share(a, 0)) ")"
}

# How many of the lengths at which r combines keep below the guide's share; "6 of 8".
function below_share(r, h,   i, n, c, m) {
    n = parts_lengths(r, h)
    for (i = 1; i <= n; i++)
        if ((r, h, part_length[i], 0) in stage1) {
            m++
            c += added_share(r SUBSEP h SUBSEP part_length[i], 0) < guide_share
        }
    below_n = c + 0
    return c + 0 " of " m + 0
}

# The combines alone at the guide's typical numbers of chunks, of two kernels.
function alone_words(h) {
    return "22's combine alone takes " combine_alone(22, h, 32) ", " combine_alone(22, h, 64) ", " combine_alone(22, h, 128) \
        "; 28's " combine_alone(28, h, 32) ", " combine_alone(28, h, 64) ", " combine_alone(28, h, 128) \
        " (an empty kernel " duration(parts_launch) ")"
}

# The least that any combine took, alone: of all rungs, heads, lengths and cuts.
function least_combine(   k, w, best) {
    best = -1
    for (k in stage2)
        if (best < 0 || stage2[k] < best) {
            best = stage2[k]
            split(k, w, SUBSEP)
            least_cut = cut[k]
            least_rung = w[1]
        }
    return best
}
