# gpu_pages.awk: what README.md and a page of tutorials/ say of the recorded results, Markdown. Behind gpu.awk.
# -v page=22: the block of rung 22; page= : the ladder.

# A paragraph in lines of at most 118 columns.
function wrap(s,   n, i, w, line) {
    n = split(s, w, " ")
    for (i = 1; i <= n; i++)
        if (line != "" && length(line) + 1 + length(w[i]) > 118) {
            print line
            line = w[i]
        } else
            line = line (line == "" ? "" : " ") w[i]
    print line
}

END {
    prepare_gpu()
    prepare_observed()
    if (page != "")
        rung_block(page + 0)
    else
        ladder_block()
}

function ladder_block(   i, r, p) {
    print "| rung | time, heads " grouped " | x read | over parent | over " two(first) " | time, heads " ungrouped \
        " | x read | over parent | over " two(first) " |"
    print "|---|--:|--:|--:|--:|--:|--:|--:|--:|"
    for (i = 1; i <= rungs; i++) {
        r = rung[i]
        p = recorded_parent(r)
        print "| " two(r) " " name[r] cells(r, p, grouped) cells(r, p, ungrouped) " |"
    }
    print ""
    wrap(sentence_case(stamp) ", driver " driver ": " keys(ref) " keys, batch 1, " elements \
        ", cache cold. \"x read\": over the time in which a kernel reads the same K and V, in the same run. " \
        "Over all batches, heads and lengths " two(last) " is " contest_words(last, recorded_parent(last)) \
        ". Judged there, too: " totals() ".")
}

function cells(r, p, h) {
    return " | " duration(took(1, h, r, ref)) " | " times(over_read(1, h, r, ref)) " | " \
        (p ? times(faster(1, h, r, p, ref)) : "-") " | " times(faster(1, h, r, first, ref))
}

function totals(   i, a, b, c, d, e, f, g, h) {
    for (i = 1; i <= rungs; i++) {
        a += verdicts[rung[i], "passed"]
        b += verdicts[rung[i], "failed"]
        c += related[rung[i]]
        d += unrelated[rung[i]]
        e += sanitized[rung[i]]
        f += unclean[rung[i]]
        g += beyond[rung[i]]
        h += astray[rung[i]]
    }
    return a + 0 " cases passed, " b + 0 " failed; " c + 0 " relations held, " d + 0 " failed; " e - f " of " e + 0 \
        " sanitizer runs clean; " g - h " of " g + 0 " problems past 2^31 elements right"
}

function rung_block(r,   p, k, fp32) {
    p = recorded_parent(r)
    k = at[r]
    if (!(r in name))
        die("rung " r " is not among the recorded ones")
    print sentence_case(stamp) ": " elements ", cache cold.\n"
    print picture(r, "speedup", "speed over " two(first) \
        (p && p != first ? " and, in grey, over the parent " two(p) : "") \
        " against the number of keys, at batch 1 with heads " grouped " and " ungrouped \
        ", on log axes, the speed of a plain read dashed") "\n"
    wrap(sentence(r, p, grouped) " " sentence(r, p, ungrouped) " " bytes_and_time(r) " " breadth(r, p))
    print ""
    if ((r, k) in e_max) {
        p = error_parent(r)
        print picture(r, "error", "worst and median scaled error against the number of keys, on log axes, " \
            (p ? "ancestors in grey, " : "") "the proved bound dashed") "\n"
        fp32 = "At " keys(k) " keys in " dtypes(type[r]) " the worst error is " show(e_max[r, k]) " u" \
            (p ? ", " compare(e_max[r, k], err[p, type[r], k], "below", "above") " " two(p) "'s" : "") \
            ", the bound " show(e_bound[r, k]) " u. "
    }
    wrap(fp32 "Over all cases error over bound is at most " ratio(num(row[worst[r], "ratio"])) ". " \
        sentence_case(checked(r)) ".")
    observed_block(r)
    if (r == last)
        peers_block()
}

# What was observed of a rung beside its times, where its page teaches it.
function observed_block(r) {
    if (r == 21) {
        print "\n![Bandwidth of a plain read against the number of its blocks, each alone on a multiprocessor, with rungs as" \
            " points](figures/gpu-read-sms.svg)\n"
        wrap(sentence_case(observed_stamp) ", " keys(ref) " keys, heads " grouped ". " sms_words(21, grouped) ". " \
            blame(21, grouped) ".")
    } else if (r == 22) {
        print "\n![When each multiprocessor has a block, in a step of rungs 20, 21, 22 and 28 at 64K keys, heads " grouped \
            "](figures/gpu-blocks-" file_word(grouped) ".svg)\n"
        wrap(sentence_case(observed_stamp) ", " keys(ref) " keys, heads " grouped ". " sms_words(21, grouped) ". " \
            sms_words(22, grouped) ". " sms_words(last, grouped) ". " wave_words(22, grouped, ref) \
            ". In chunks of 1024 keys, " choice_words(22, grouped, 8192) "; " choice_words(22, grouped, ref) ".")
        print "\n![The combine alone against the number of splits, and its share of a call against the number of keys, on log" \
            " axes](figures/gpu-combine-" file_word(grouped) ".svg)\n"
        wrap("At " keys(ref) " keys, heads " grouped ", " alone_words(grouped) ". Whole calls over their split kernel alone," \
            " at the rung's own cut: the combine adds to " combine_words(22, grouped) ", to " combine_words(24, grouped) \
            ", to " combine_words(26, grouped) ".")
        matrix_block()
    } else if (r == 24) {
        print "\n![Time against the number of splits, rungs 22, 24 and 28 at 8K and 64K keys, heads " grouped \
            ", on log axes; where a wave is full is marked](figures/gpu-splits-" file_word(grouped) ".svg)\n"
        wrap(sentence_case(observed_stamp) ". " wave_words(24, grouped, ref) ". " wave_words(24, ungrouped, ref) ".")
    } else if (r == 27) {
        print ""
        wrap(sentence_case(observed_stamp) ", heads " grouped ": " waiting_words(27, 26, grouped, 8192) "; " \
            waiting_words(27, 26, grouped, ref) ". Heads " ungrouped ": " waiting_words(27, 26, ungrouped, 8192) "; " \
            waiting_words(27, 26, ungrouped, ref) ".")
    } else if (r == 28) {
        print ""
        wrap(sentence_case(observed_stamp) ". With heads " grouped " " choice_words(28, grouped, 8192) "; " \
            choice_words(28, grouped, ref) ". With heads " ungrouped " " choice_words(28, ungrouped, 8192) "; " \
            choice_words(28, ungrouped, ref) ".")
    }
}

function matrix_block(   i, c, s) {
    judge_matrix()
    print "\n### The guide's comparison matrix\n"
    wrap(matrix_caveat())
    s = matrix_columns()
    gsub(/\|/, " | ", s)
    print "\n| " s " |\n|---|---|---|---|---|"
    for (i = 1; i <= matrix_rows; i++) {
        printf "|"
        for (c = 1; c <= 5; c++)
            printf " %s |", matrix[i, c]
        print ""
    }
}

# Beside other people's kernels, at batch 1; the report has every shape.
function peers_block(   c, j, h, m, n, k) {
    print "\n### Beside other kernels\n"
    print "![Time over the read of the same bytes against the number of keys at batch 1, heads " grouped \
        ", on log axes: rung " two(last) " in colour, other projects' kernels in grey](figures/gpu-peers-" \
        file_word(grouped) ".svg)\n"
    k = peer_columns()
    gsub(/\|/, " | ", k)
    print "| heads | keys | " k " |"
    gsub(/[^|]+/, "--:", k)
    print "|---|--:|" k "|"
    for (j = 1; j <= 2; j++) {
        h = j == 1 ? grouped : ungrouped
        n = lengths(1, h, last)
        for (m = 1; m <= n; m++) {
            if (!peer_cells(1, h, length_at[m]))
                continue
            printf "| %s | %s |", h, keys(length_at[m])
            for (c = 1; c <= cells_of; c++)
                printf " %s |", cell_of[c]
            print ""
        }
    }
    print ""
    wrap("Over all " shapes_met() " batches, heads and lengths that both timed: " peer_sentence() " " peer_caveat())
}

function picture(r, what, words) {
    return "![Rung " two(r) " on a GPU: " words "](figures/gpu-" two(r) "-" what ".svg)"
}

function sentence(r, p, h) {
    return "At " keys(ref) " keys, batch 1, heads " h ", a call takes " duration(took(1, h, r, ref)) ": " \
        times(over_read(1, h, r, ref)) " the read" (p ? ", " compare(took(1, h, r, ref), took(1, h, p, ref), \
        "faster than", "slower than") " " two(p) : "") (p && p != first ? ", " compare(took(1, h, r, ref), \
        took(1, h, first, ref), "faster than", "slower than") " " two(first) : "") "."
}

# The same query heads on more K and V: does the time follow the bytes?
function bytes_and_time(r) {
    return "From " grouped " to " ungrouped " the read takes " times(reads(1, ungrouped, r, ref) / \
        reads(1, grouped, r, ref)) " as long, the call " \
        times(took(1, ungrouped, r, ref) / took(1, grouped, r, ref)) "."
}

# One sentence over all batches, heads and lengths.
function breadth(r, p) {
    return p ? "Over all batches, heads and lengths it is " contest_words(r, p) "." : \
        "With batch " batch_of[2] " it takes " times(took(batch_of[2], grouped, r, ref) / took(1, grouped, r, ref)) \
        " the time of batch 1 (heads " grouped ")."
}
