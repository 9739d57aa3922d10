# gpu_peers.awk: the last rung beside other projects' kernels, data/measured/peers/h200.csv. Behind gpu.awk. They were
# timed in other runs, so what is compared is time over the read of the same bytes in the same run.

BEGIN {
    wanted["h200.csv"] = "peer name dtype_kv batch heads_q heads_kv head_dim kv_len cache ns_median floor_ns"
    rivals = split("fa2-splitkv sdpa-cudnn", rival, " ") # with columns of their own
}
file == "h200.csv" && get("cache") == "cold" { peer_row() }

function peer_row(   x, at_) {
    x = get("peer")
    at_ = x SUBSEP get("batch") + 0 SUBSEP get("heads_q") ":" get("heads_kv") SUBSEP get("kv_len") + 0
    if (!(x in peer_name))
        peer[++peers] = x
    peer_name[x] = get("name")
    peer_elements = get("dtype_kv") ", head_dim " get("head_dim")
    peer_ns[at_] = num(get("ns_median"))
    peer_read[at_] = num(get("floor_ns"))
}

# -1 where it was not timed, or not the last rung, or with other elements.
function peer_over_read(x, b, h, k) {
    if (!((x, b, h, k) in peer_ns) || peer_elements != elements || over_read(b, h, last, k) <= 0)
        return -1
    return peer_ns[x, b, h, k] / peer_read[x, b, h, k]
}

# What the last rung's time over the read is to that of peer x: above 1 the rung is ahead.
function lead(x, b, h, k,   p) {
    p = peer_over_read(x, b, h, k)
    return p > 0 ? p / over_read(b, h, last, k) : -1
}
function lead_words(x) {
    return x <= 0 ? "-" : x > 1.02 ? times(x) " ahead" : x < 1 / 1.02 ? times(1 / x) " behind" : "level"
}
function lead_of(x, b, h, k,   s) {
    s = lead_words(lead(x, b, h, k))
    return s (s ~ /ahead/ ? " of " : s == "level" ? " with " : " ") brief(x)
}
# The project's name alone.
function brief(x,   s) {
    s = peer_name[x]
    sub(/,.*/, "", s)
    return s
}

# The fastest of all peers but the rivals (all: of every one); "" where none was timed.
function best_peer(b, h, k, all,   i, j, x, best) {
    for (i = 1; i <= peers; i++) {
        x = peer[i]
        for (j = 1; j <= rivals && !all; j++)
            if (x == rival[j])
                x = ""
        if (x == "" || peer_over_read(x, b, h, k) <= 0)
            continue
        if (best == "" || peer_ns[x, b, h, k] < peer_ns[best, b, h, k])
            best = x
    }
    return best
}

# Over all shapes that both timed: met, ahead, even, behind, and the shape where the rung is furthest behind. x "": the
# fastest peer of each shape.
function tally(x,   i, j, m, n, b, h, y, z, who) {
    met_at = ahead = even = behind = 0
    worst_lead = 1e300
    for (j = 1; j <= heads; j++)
        for (i = 1; i <= batches; i++) {
            b = batch_of[i]
            h = heads_of[j]
            n = lengths(b, h, last)
            for (m = 1; m <= n; m++) {
                who = x == "" ? best_peer(b, h, length_at[m], 1) : x
                y = who == "" ? -1 : lead(who, b, h, length_at[m])
                if (y <= 0)
                    continue
                met_at++
                ahead += y > 1.02
                behind += y < 1 / 1.02
                even += y <= 1.02 && y >= 1 / 1.02
                z = peer_read[who, b, h, length_at[m]] / reads(b, h, last, length_at[m])
                read_low = !read_low || z < read_low ? z : read_low
                read_high = z > read_high ? z : read_high
                if (y < worst_lead) {
                    worst_lead = y
                    worst_shape = "batch " b ", heads " h ", " keys(length_at[m]) " keys"
                }
            }
        }
}

function tally_words(x) {
    tally(x)
    return (x == "" ? "the fastest peer of each shape" : peer_name[x]) ": ahead in " ahead " of " met_at \
        ", level in " even ", behind in " behind (behind ? " (" times(1 / worst_lead) " at most, " worst_shape ")" : "")
}

function shapes_met() {
    tally("")
    return met_at
}

# Who, in all shapes; a sentence for each list that is read aloud as one.
function peer_sentence(   i, s) {
    for (i = 1; i <= rivals; i++)
        if (rival[i] in peer_name)
            s = s tally_words(rival[i]) ". "
    return sentence_case(two(last)) " against " s "Against " tally_words("") "."
}

function peer_caveat() {
    return "Recorded apart, so compared by time over read, level within 2 %; the read of the same bytes took " \
        times(read_low) " to " times(read_high) " as long there as here. The peers were checked against float64, " \
        "not by this judge, and FlashInfer keeps partial sums in bf16."
}

# Fills cell_of[1..cells_of], a row of the table without its shape. Returns 0 where no rival was timed.
function peer_cells(b, h, k,   i, x, any, best) {
    split("", cell_of)
    cells_of = 0
    cell_of[++cells_of] = peer_time(took(b, h, last, k), over_read(b, h, last, k))
    for (i = 1; i <= rivals; i++) {
        x = rival[i]
        any += peer_over_read(x, b, h, k) > 0
        cell_of[++cells_of] = peer_time((x, b, h, k) in peer_ns ? peer_ns[x, b, h, k] : -1, peer_over_read(x, b, h, k))
        cell_of[++cells_of] = lead_words(lead(x, b, h, k))
    }
    best = best_peer(b, h, k, 0)
    cell_of[++cells_of] = best == "" ? "-" : peer_name[best] ", " times(peer_over_read(best, b, h, k))
    cell_of[++cells_of] = best == "" ? "-" : lead_words(lead(best, b, h, k))
    return any
}

function peer_time(ns_, x) { return x > 0 ? duration(ns_) ", " times(x) : "-" }

# The heads of the columns that peer_cells fills.
function peer_columns(   i, s) {
    s = two(last) ", x read"
    for (i = 1; i <= rivals; i++)
        s = s "|" peer_name[rival[i]] ", x read|" two(last) " is"
    return s "|fastest of the others, x read|" two(last) " is"
}
