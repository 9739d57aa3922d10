# gpu_guide.awk: what the recorded numbers say to the guide's claims about time. Behind gpu.awk.

# Fills claim[], measured[] and ruling[] 1..claims. Rungs by number: 20 naive, 21 a block a row, 22 split.
function judge_guide(   one, many, top, h, r, s, longer) {
    one = batch_of[1]
    top = batch_of[batches]
    longer = longest(grouped)
    rule("\"Up to 8x faster decoding throughput\" by splitting; \"up to 8.2x\" over naive attention " \
        "\"at 64k context\"", \
        "22 over 20 at " keys(ref) " keys, batch " one ": " both(one, 22, 20, ref) "; over 21, the same kernel " \
        "without splits: " both(one, 22, 21, ref) ". At batch " top ", heads " grouped ", " keys(longer) " keys: " \
        times(faster(top, grouped, 22, 20, longer)) " over 20, " times(faster(top, grouped, 22, 21, longer)) \
        " over 21", \
        met(faster(one, grouped, 22, 20, ref) >= 8) " at batch " one "; " \
        met(faster(top, grouped, 22, 20, longer) >= 8) " at batch " top)
    rule("FlashAttention-2 is \"1.4x\" naive attention at 64k", \
        "21, one fused kernel with a block a row, over 20 at " keys(ref) " keys, batch " one ": " \
        both(one, 21, 20, ref) ". 21 has FlashAttention-2's grid, not its inner loop", \
        "not decided for FlashAttention-2; 21 alone: " met(faster(one, grouped, 21, 20, ref) >= 1.4))
    s = took(one, ungrouped, 21, ref) / took(one, ungrouped, 21, 2048)
    rule("Without splitting, a token \"at 64k context is over 10x slower than ... at 2k\"", \
        "21, heads " ungrouped ", batch " one ": " times(s) " for 32 times the keys; 22: " \
        times(took(one, ungrouped, 22, ref) / took(one, ungrouped, 22, 2048)), met(s > 10))
    rule("\"Generating the 50,000th token occurs at practically the same speed as ... the 500th\"", \
        "time at " keys(ref) " keys over time at 512, heads " grouped ", batch " one ": " growth(one, grouped) \
        ". Level within 10 %: " flat(one, grouped) ". From 128K to 256K keys, twice as many: 22 takes " \
        times(took(one, grouped, 22, 262144) / took(one, grouped, 22, 131072)) " the time, " last " " \
        times(took(one, grouped, last, 262144) / took(one, grouped, last, 131072)), \
        met(took(one, grouped, last, ref) <= 1.1 * took(one, grouped, last, 512)))
    rule("\"Leaves 100 out of 132 SMs ... completely idle\", so that \"memory bus bandwidth is drastically under-saturated\"", \
        sms_words(21, grouped) ". " blame(21, grouped), \
        "idle SMs: " met(first_sms(21, grouped, ref) == 32) "; as the reason: " \
        met(read_share(first_sms(21, grouped, ref)) < 2 / over_read(one, grouped, 21, ref)))
    rule("\"Saturates 100% of GPU SMs\", hence memory", \
        sms_words(22, grouped) ". " sms_words(last, grouped) ". Share of the read's speed, heads " ungrouped ": " \
        shares(one, ungrouped), \
        "SMs: " met(first_sms(22, grouped, ref) == sms) ", " percent(busy_share(22, grouped, ref)) \
        " of their time; memory, by splitting alone (22): " met(over_read(one, grouped, 22, ref) < 1.1))
    rule("Below 512 to 1024 tokens the kernel without splits has the lower overhead", \
        "22 against 21, batch " one ", heads " ungrouped ": " \
        compare(took(one, ungrouped, 22, 512), took(one, ungrouped, 21, 512), "faster", "slower") " at 512 keys, " \
        compare(took(one, ungrouped, 22, 1024), took(one, ungrouped, 21, 1024), "faster", "slower") \
        " at 1K, with one split, so with a second launch for the combine", \
        met(took(one, ungrouped, 22, 512) > 1.02 * took(one, ungrouped, 21, 512)))
    combine_verdict()
}

function combine_verdict(   least) {
    least = least_combine()
    rule("The combine takes \"less than 2 microseconds\" and \"less than 1%\" of the time", \
        "heads " grouped ", " keys(ref) " keys: " alone_words(grouped) ". The least of all measured: " duration(least) \
        " for " plural(least_cut, "split") ". What it adds to a call at the rung's own cut: " \
        combine_words(22, grouped) "; " combine_words(24, grouped) "; " combine_words(26, grouped) "; " \
        combine_words(27, grouped), \
        "2 us: " met(stage2[22, grouped, ref, 64] < 1e3 * guide_us) " at 64 splits; 1 %: at " below_share(22, grouped) \
        " lengths for 22, which is slow itself; at " below_share(26, grouped) " for 26")
}

# ---- The guide's comparison matrix ---------------------------------------------------------------

# Rows 1..matrix_rows: matrix[i, c], c: 1 what, 2 to 4 the guide's words and what rungs 20, 21 and 22 do, 5 verdict.
function judge_matrix(   one, kv) {
    one = batch_of[1]
    kv = bytes[group_of[one, grouped], 22, ref]
    matrix_row("Decoding parallelism", "Batch x Heads", all_blocks(20, grouped, ref) " blocks in its kernels", \
        "Batch x Heads", all_blocks(21, grouped, ref) " blocks", "Batch x Heads x Chunks", \
        all_blocks(22, grouped, ref) " blocks: " cut[22, grouped, ref, 0] " chunks of 32 heads", \
        met(grid[21, grouped, ref, 0, 0] == 32 && grid[22, grouped, ref, 0, 0] == 32 * cut[22, grouped, ref, 0]) \
        " by 21 and 22; 20 has a block for every 128 keys in one kernel, and a block a head in the others")
    matrix_row("SM utilization at B=1", "Poor (<25%)", utilised(20), "Poor (<25%)", utilised(21), "100% Saturation", \
        utilised(22), "21: " met(busy_share(21, grouped, ref) < 0.25) "; 22: all SMs, not all of their time; " \
        "the share of the read's speed is what counts: " percent(1 / over_read(one, grouped, 20, ref)) ", " \
        percent(1 / over_read(one, grouped, 21, ref)) ", " percent(1 / over_read(one, grouped, 22, ref)))
    matrix_row("Latency scaling with length", "O(N) severe degradation", slopes(20), "O(N) linear degradation", slopes(21), \
        "O(N / num_SMs) sub-linear", slopes(22), "21: " met(slope(21, 65536, 262144) > 0.9) "; 22: sub-linear until " \
        "the machine is full, then " (slope(22, 65536, 262144) > 0.9 ? "linear like the others" : "still sub-linear"))
    matrix_row("Intermediate memory overhead", "Huge (N x N matrix)", scratch(20, kv), "Zero (In SRAM)", scratch(21, kv), \
        "Negligible (K partial statistics)", scratch(22, kv), "20: not met, one row of N logits a head; 21: " \
        met(work[group_of[one, grouped], 21, ref] == 0) "; 22: " met(work[group_of[one, grouped], 22, ref] < 0.01 * kv))
    matrix_row("Speedup at 64k context", "Baseline (1.0x)", "1.00x", "1.4x", both(one, 21, 20, ref), "Up to 8.2x", \
        both(one, 22, 20, ref), "FlashAttention-2: not decided by 21, see above; 22: " \
        met(faster(one, grouped, 22, 20, ref) >= 8) ", over a naive that is slow, too: " last " is " \
        times(faster(one, grouped, last, 20, ref)))
}

function matrix_row(what, a, a_, b, b_, c, c_, says) {
    matrix_rows++
    matrix[matrix_rows, 1] = what
    matrix[matrix_rows, 2] = "\"" a "\". 20: " a_
    matrix[matrix_rows, 3] = "\"" b "\". 21: " b_
    matrix[matrix_rows, 4] = "\"" c "\". 22: " c_
    matrix[matrix_rows, 5] = says
}

function utilised(r,   s) {
    s = slowed_note(r, grouped, ref)
    return all_sms(r, grouped, ref) " SMs; a block present for " percent(busy_share(r, grouped, ref)) " of all SM time" \
        (s == "" ? "" : " (" s ")")
}

# The exponent of time in the number of keys, between two lengths.
function slope(r, a, b) { return log(took(1, grouped, r, b) / took(1, grouped, r, a)) / log(b / a) }
function slopes(r) {
    return sprintf("time as N to the %.2f from 1K to 4K keys, to the %.2f from 64K to 256K", slope(r, 1024, 4096), \
        slope(r, 65536, 262144))
}

function scratch(r, kv,   w) {
    w = work[group_of[1, grouped], r, ref]
    return w > 0 ? size(w) " of workspace, " percent(w / kv) " of the bytes of K and V" : "no workspace"
}

function matrix_columns() {
    return "row of the guide|naive attention|FlashAttention-2 (21: its grid)|FlashDecoding|verdict"
}

function matrix_caveat() {
    return "At " keys(ref) " keys, batch 1, heads " grouped ". Prefill, and the column PagedAttention, are not measured: " \
        "these rungs decode, from a dense cache."
}

function rule(c, m, v) {
    claim[++claims] = c
    measured[claims] = m
    ruling[claims] = v
}

function met(x) { return x ? "met" : "not met" }

function both(b, r, p, k) {
    return times(faster(b, grouped, r, p, k)) " (heads " grouped "), " times(faster(b, ungrouped, r, p, k)) " (" \
        ungrouped ")"
}

function growth(b, h,   i, s) {
    for (i = 1; i <= rungs; i++)
        if (rung[i] >= 22)
            s = s (s == "" ? "" : ", ") rung[i] " " times(took(b, h, rung[i], ref) / took(b, h, rung[i], 512))
    return s ", the read " times(reads(b, h, last, ref) / reads(b, h, last, 512))
}

# The longest stretch of lengths over which a rung's times differ by at most 10 %.
function flat(b, h,   i, m, j, n, lo, hi, t, from, to, s) {
    for (i = 1; i <= rungs; i++) {
        if (rung[i] < 22)
            continue
        n = lengths(b, h, rung[i])
        from = to = length_at[1]
        for (m = 1; m <= n; m++) {
            lo = hi = took(b, h, rung[i], length_at[m])
            for (j = m; j <= n; j++) {
                t = took(b, h, rung[i], length_at[j])
                lo = t < lo ? t : lo
                hi = t > hi ? t : hi
                if (!(hi <= 1.1 * lo))
                    break
                if (length_at[j] / length_at[m] > to / from) {
                    from = length_at[m]
                    to = length_at[j]
                }
            }
        }
        s = s (s == "" ? "" : ", ") rung[i] (to > from ? " from " keys(from) " to " keys(to) : " nowhere")
    }
    return s
}

function shares(b, h,   i, s) {
    for (i = 1; i <= rungs; i++)
        s = s (s == "" ? "" : ", ") rung[i] " " percent(1 / over_read(b, h, rung[i], ref))
    return s
}
