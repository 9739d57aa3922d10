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
    rule("\"Saturates 100% of GPU SMs\", hence memory", \
        "busy multiprocessors were not recorded. Share of the read's speed at " keys(ref) " keys, batch " one \
        ", heads " ungrouped ": " shares(one, ungrouped), \
        "occupancy not measured; the read's speed reached by splitting alone (22): " \
        percent(1 / over_read(one, ungrouped, 22, ref)))
    rule("Below 512 to 1024 tokens the kernel without splits has the lower overhead", \
        "22 against 21, batch " one ", heads " ungrouped ": " \
        compare(took(one, ungrouped, 22, 512), took(one, ungrouped, 21, 512), "faster", "slower") " at 512 keys, " \
        compare(took(one, ungrouped, 22, 1024), took(one, ungrouped, 21, 1024), "faster", "slower") \
        " at 1K, with one split, so with a second launch for the combine", \
        met(took(one, ungrouped, 22, 512) > 1.02 * took(one, ungrouped, 21, 512)))
    rule("The combine takes \"less than 2 microseconds\" and \"less than 1%\" of the time", \
        "only whole calls were timed, the combine never alone. An empty kernel took " duration(launch) \
        " in the same runs", \
        "not measured")
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
