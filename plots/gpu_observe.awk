# gpu_observe.awk: what `cuda/gpu/run.sh observe` recorded (sms.csv, parts.csv, blocks.csv), asked by the figures, the
# section and the pages. Behind gpu.awk. Batch 1 throughout; r: rung, h: heads, k: kv_len, q: the num_splits asked for,
# 0 what the rung chooses.

BEGIN {
    wanted["sms.csv"] = "loads blocks in_flight_bytes ns_median floor_ns"
    wanted["parts.csv"] = "rung heads_q heads_kv kv_len requested num_splits ns_median kernels split_ns_median " \
        "combine_ns_median workspace_bytes floor_ns launch_ns"
    wanted["blocks.csv"] = "rung heads_q heads_kv kv_len requested launch blocks_per_sm sm blocks start_ns end_ns sms busy_ns"
    guide_us = 2     # of the guide's combine
    guide_share = 0.01
}
file == "sms.csv" {
    x = get("loads") + 0
    if (!(x in loads_seen))
        loads_of[++loads_n] = x
    loads_seen[x] = get("in_flight_bytes") + 0
    read_at[x, ++read_n[x]] = get("blocks") + 0
    read_ns[x, get("blocks") + 0] = num(get("ns_median"))
    read_full = num(get("floor_ns"))
}
file == "parts.csv" { parts_row() }
file == "blocks.csv" { blocks_row() }

function at_of() {
    return get("rung") + 0 SUBSEP get("heads_q") ":" get("heads_kv") SUBSEP get("kv_len") + 0
}

# Of a step at its own cut. blocks.csv has the number of splits, too.
function rows_of_split(r, h) { return own_cut[r, h, ref] ? grid[r, h, ref, 0, 0] / own_cut[r, h, ref] : 1 }

function parts_row(   a, q) {
    a = at_of()
    q = get("requested") + 0
    asked[a, ++asked_n[a]] = q
    whole[a, q] = num(get("ns_median"))
    cut[a, q] = get("num_splits") + 0
    states_bytes[a, q] = get("workspace_bytes") + 0
    parts_floor[a] = num(get("floor_ns"))
    if (get("kernels") == 2) {
        stage1[a, q] = num(get("split_ns_median"))
        stage2[a, q] = num(get("combine_ns_median"))
    }
    parts_launch = num(get("launch_ns"))
}

# A row of a launch, of the step as a whole (launch ""), or of blocks of one multiprocessor, which come in order of it.
function blocks_row(   a, q, l, n) {
    a = at_of()
    q = get("requested") + 0
    l = get("launch")
    if (get("sm") != "") {
        n = ++stretches[a, l]
        stretch_sm[a, l, n] = get("sm") + 0
        stretch_from[a, l, n] = get("start_ns") + 0
        stretch_to[a, l, n] = get("end_ns") + 0
        return
    }
    grid[a, q, l] = get("blocks") + 0
    if (q == 0)
        own_cut[a] = get("num_splits") + 0
    fit[a, q, l] = get("blocks_per_sm") + 0
    sms_of[a, q, l] = get("sms") + 0
    busy[a, q, l] = get("busy_ns") + 0
    from[a, q, l] = get("start_ns") + 0
    to[a, q, l] = get("end_ns") + 0
    if (l != "")
        launches[a, q]++
}

# Also fills sms, of the card, and observed_stamp.
function prepare_observed(   w) {
    split(find_record("processor"), w, ", ")
    sms = w[2] + 0
    observed_stamp = stamp_of("observed", "sms.csv")
    if (!sms || !loads_n)
        die("data/measured/h200: sms.csv has no row, or bench.csv does not say how many SMs there are")
}

# ---- Multiprocessors -----------------------------------------------------------------------------

# The share of the fastest read's speed that b blocks reach, each alone on a multiprocessor.
function read_share(b,   i, x) {
    for (i = 1; i <= loads_n; i++)
        if ((loads_of[i], b) in read_ns && read_full / read_ns[loads_of[i], b] > x)
            x = read_full / read_ns[loads_of[i], b]
    return x ? x : -1
}

# Of all multiprocessor time of a step, the part in which one has a block; of its launches, the SMs used by the first.
function busy_share(r, h, k) { return busy[r, h, k, 0, ""] / (sms * to[r, h, k, 0, ""]) }
function first_sms(r, h, k) { return sms_of[r, h, k, 0, 0] }

# SMs of every kernel but a combine: "132, 32 and 32".
function all_sms(r, h, k,   l, n, s) {
    n = r >= 22 ? 1 : launches[r, h, k, 0]
    for (l = 0; l < n; l++)
        s = s (l == 0 ? "" : l == n - 1 ? " and " : ", ") sms_of[r, h, k, 0, l]
    return s
}

function all_blocks(r, h, k,   l, n, s) {
    n = r >= 22 ? 1 : launches[r, h, k, 0]
    for (l = 0; l < n; l++)
        s = s (l == 0 ? "" : l == n - 1 ? " and " : ", ") grid[r, h, k, 0, l]
    return s
}

# The observed step over the timed one.
function slowed(r, h, k) {
    return (r, h, k, 0, "") in to && took(1, h, r, k) > 0 ? to[r, h, k, 0, ""] / took(1, h, r, k) : -1
}

# "2.2x slower while observed" where noting it changed the step by more than a tenth; else "".
function slowed_note(r, h, k,   x) {
    x = slowed(r, h, k)
    return x > 1.1 || x < 0.9 ? compare(x, 1, "faster", "slower") " while observed" : ""
}

# Did noting when blocks ran change how long they took? Of the steps at 64K keys, the least and the most.
function observer_words(   i, j, h, x, lo, hi, hi_r, s) {
    for (j = 1; j <= 2; j++) {
        h = j == 1 ? grouped : ungrouped
        for (i = 1; i <= rungs; i++) {
            x = slowed(rung[i], h, ref)
            if (x <= 0)
                continue
            lo = !lo || x < lo ? x : lo
            if (x > hi) {
                hi = x
                hi_r = rung[i]
            }
        }
    }
    for (j = 1; j <= 2; j++)
        for (i = 1; i <= rungs; i++) {
            h = j == 1 ? grouped : ungrouped
            x = slowed(rung[i], h, ref)
            s = rung[i] != hi_r && x > s ? x : s
        }
    return "Blocks are noted by kernels that are compiled for it, which no timing uses; a step so observed takes " \
        times(lo) " to " times(s) " the timed one, and " times(hi) " for " two(hi_r) \
        (hi > 1.1 ? ", whose loops the compiler then unrolls otherwise" : "") "."
}

function sms_words(r, h) {
    return two(r) ": " all_blocks(r, h, ref) " blocks on " all_sms(r, h, ref) " of " sms " SMs, a block present for " \
        percent(busy_share(r, h, ref)) " of all SM time, " percent(1 / over_read(1, h, r, ref)) " of the read's speed"
}

# Multiprocessors explain so much of rung r's time over the read, and the rest is not theirs.
function blame(r, h,   used, x) {
    used = first_sms(r, h, ref)
    x = over_read(1, h, r, ref)
    return "A plain read with a block on each of " used " SMs reaches " percent(read_share(used)) \
        " of the full read's speed, with " sms / 2 " SMs " percent(read_share(sms / 2)) ", with all " \
        percent(read_share(sms)) ". So of " two(r) "'s " times(x) " the read at heads " h ", the missing SMs explain " \
        times(1 / read_share(used)) "; the other " times(x * read_share(used)) " is what its blocks do not have in flight"
}

# ---- Waves ---------------------------------------------------------------------------------------

function waves(a, q,   slots) {
    slots = sms * fit[a, q, 0]
    return slots ? int((grid[a, q, 0] + slots - 1) / slots) : 0
}

# Blocks that one split makes.
function rows_of(a, q) { return cut[a, q] ? grid[a, q, 0] / cut[a, q] : 0 }

# The requests of a, ascending, without 0: request[1..n]. Returns n.
function requests(a,   i, n) {
    split("", request)
    for (i = 1; i <= asked_n[a]; i++)
        if (asked[a, i] > 0)
            request[++n] = asked[a, i]
    sort(request, n)
    return n
}

# Where the second wave begins: last_full, the most splits tried of one wave, and next_one behind it. 0: nowhere tried.
function second_wave(a,   i, n) {
    n = requests(a)
    last_full = next_one = 0
    for (i = 1; i < n; i++)
        if (waves(a, request[i]) == 1 && waves(a, request[i + 1]) == 2) {
            last_full = request[i]
            next_one = request[i + 1]
        }
    return last_full
}

function wave_words(r, h, k,   a) {
    a = r SUBSEP h SUBSEP k
    if (!second_wave(a))
        return ""
    return "At " keys(k) " keys, heads " h ", " fit[a, last_full, 0] " blocks of " two(r) " fit an SM, so a wave is " \
        sms * fit[a, last_full, 0] " blocks. " last_full " splits are " grid[a, last_full, 0] " blocks and take " \
        duration(whole[a, last_full]) "; " next_one " splits are " grid[a, next_one, 0] " and take " \
        duration(whole[a, next_one]) ", " times(whole[a, next_one] / whole[a, last_full]) " as long"
}

# The fastest of the requests tried.
function fastest(a,   i, n, best) {
    n = requests(a)
    for (i = 1; i <= n; i++)
        if (!best || whole[a, request[i]] < whole[a, best])
            best = request[i]
    return best
}

function choice_words(r, h, k,   a, best, n) {
    a = r SUBSEP h SUBSEP k
    best = fastest(a)
    n = requests(a)
    return "at " keys(k) " keys " two(r) " takes " plural(cut[a, 0], "split") ", " duration(whole[a, 0]) "; of " n \
        " numbers tried " best " is fastest, " duration(whole[a, best]) \
        (whole[a, 0] <= whole[a, best] * 1.02 ? ", level" : "")
}
