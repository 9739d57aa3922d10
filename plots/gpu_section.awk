# gpu_section.awk: the report's section on results recorded on a GPU, HTML. Behind html.awk and gpu_guide.awk.

END {
    prepare_gpu()
    prepare_observed()
    judge_guide()
    judge_matrix()
    section("gpu", "8. On a GPU (recorded)")
    para("<strong>" esc(sentence_case(stamp)) ".</strong> Not measured by this run, which needs " \
        "no GPU: drawn from <code>data/measured/h200</code>, which <code>sh cuda/gpu/run.sh</code> writes on a " \
        "machine that has one. Times are of " elements ", the cache cold, median of repeated calls in a CUDA graph. " \
        "<em>The read</em> is a kernel that only reads the same K and V, in the same run, the fastest of several ways.")
    ladder()
    print "<div class=pair>"
    figure("gpu-time-" file_word(grouped))
    figure("gpu-time-" file_word(ungrouped))
    figure("gpu-share-" file_word(grouped))
    figure("gpu-share-" file_word(ungrouped))
    print "</div>"
    peers_part()
    guide_claims()
    guide_matrix()
    why_part()
    for (i = 1; i <= rungs; i++)
        rung_part(rung[i])
    gpu_record()
}

function ladder(   i, j, r, p, h, k) {
    k = ref
    print "<h3>The CUDA ladder at " keys(k) " keys, batch 1</h3>"
    table("rung|time, heads " grouped "|times the read|speed over parent|speed over " two(first) "|time, heads " \
        ungrouped "|times the read|speed over parent|speed over " two(first) \
        "|verify: passed, failed, skipped|relations: passed, failed|sanitizer runs clean|past 2^31 elements", "")
    for (i = 1; i <= rungs; i++) {
        r = rung[i]
        p = recorded_parent(r)
        tr()
        print "<td>" call(r) "</td>"
        for (j = 1; j <= 2; j++) {
            h = j == 1 ? grouped : ungrouped
            right(duration(took(1, h, r, k)))
            right(times(over_read(1, h, r, k)))
            right(p ? times(faster(1, h, r, p, k)) : "-")
            right(times(faster(1, h, r, first, k)))
        }
        right(verdicts[r, "passed"] + 0 ", " verdicts[r, "failed"] + 0 ", " verdicts[r, "skipped"] + 0)
        right(related[r] + 0 ", " unrelated[r] + 0)
        right(sanitized[r] - unclean[r] " of " sanitized[r] + 0)
        right(beyond[r] - astray[r] " of " beyond[r] + 0)
        tr_end()
    }
    table_end()
    para(losses())
}

# The rungs that are slower than their parents, said once.
function losses(   i, j, r, p, h, s) {
    for (j = 1; j <= 2; j++) {
        h = j == 1 ? grouped : ungrouped
        for (i = 1; i <= rungs; i++) {
            r = rung[i]
            p = recorded_parent(r)
            if (p && faster(1, h, r, p, ref) < 1 / 1.02)
                s = s (s == "" ? "" : "; ") two(r) " is " compare(took(1, h, r, ref), took(1, h, p, ref), "faster", \
                    "slower") " than its parent " two(p) " with heads " h
        }
    }
    return s == "" ? "No rung is slower than its parent here." : "Not every step gains: " s "."
}

function guide_claims(   i) {
    print "<h3>The guide's claims about time</h3>"
    table("the guide|recorded|verdict", "claims")
    for (i = 1; i <= claims; i++) {
        tr()
        td(claim[i])
        td(measured[i] ".")
        td(ruling[i])
        tr_end()
    }
    table_end()
}

function guide_matrix(   i, c) {
    print "<h3>The guide's comparison matrix, row by row</h3>"
    para(esc(matrix_caveat()))
    table(matrix_columns(), "matrix")
    for (i = 1; i <= matrix_rows; i++) {
        tr()
        for (c = 1; c <= 5; c++)
            td(matrix[i, c])
        tr_end()
    }
    table_end()
}

# Where blocks ran, what a read needs, splits and waves, the combine.
function why_part() {
    print "<h3>Why: multiprocessors, waves, the combine</h3>"
    para(esc(sentence_case(observed_stamp) ". " blame(21, grouped) ". " wave_words(24, grouped, ref) ". " \
        alone_words(grouped) ". " sentence_case(waiting_words(27, 26, grouped, 8192)) ". " observer_words()))
    print "<div class=pair>"
    figure("gpu-read-sms")
    figure("gpu-combine-" file_word(grouped))
    figure("gpu-blocks-" file_word(grouped))
    figure("gpu-blocks-" file_word(ungrouped))
    figure("gpu-splits-" file_word(grouped))
    figure("gpu-splits-" file_word(ungrouped))
    print "</div>"
    blocks_table()
}

function blocks_table(   j, i, h, r, s) {
    para("The steps observed, kernels in turn; the multiprocessors of a combine are left out.")
    table("heads|rung|splits|blocks|blocks that fit an SM|SMs|a block present, of all SM time|share of the read's speed|" \
        "observed over timed", "")
    for (j = 1; j <= 2; j++) {
        h = j == 1 ? grouped : ungrouped
        for (i = 1; i <= rungs; i++) {
            r = rung[i]
            if (!((r, h, ref, 0, "") in to))
                continue
            tr()
            td(h)
            print "<td>" call(r) "</td>"
            right(r < 22 ? "-" : grid[r, h, ref, 0, 0] / rows_of_split(r, h))
            right(all_blocks(r, h, ref))
            right(fit[r, h, ref, 0, 0])
            right(all_sms(r, h, ref))
            right(percent(busy_share(r, h, ref)))
            right(percent(1 / over_read(1, h, r, ref)))
            right(times(slowed(r, h, ref)))
            tr_end()
        }
    }
    table_end()
}

# The last rung beside other projects' kernels, every shape that both timed.
function peers_part(   i, j, m, n, c, b, h) {
    print "<h3>Beside other kernels</h3>"
    para(esc("Over all " shapes_met() " batches, heads and lengths that both timed: " peer_sentence() " " \
        peer_caveat()))
    print "<div class=pair>"
    figure("gpu-peers-" file_word(grouped))
    figure("gpu-peers-" file_word(ungrouped))
    print "</div>"
    table("heads|batch|keys|" peer_columns(), "peers")
    for (j = 1; j <= heads; j++)
        for (i = 1; i <= batches; i++) {
            b = batch_of[i]
            h = heads_of[j]
            n = lengths(b, h, last)
            for (m = 1; m <= n; m++) {
                if (!peer_cells(b, h, length_at[m]))
                    continue
                tr()
                td(h)
                right(b)
                right(keys(length_at[m]))
                for (c = 1; c <= cells_of; c++)
                    right(cell_of[c])
                tr_end()
            }
        }
    table_end()
}

function rung_part(r,   p) {
    p = recorded_parent(r)
    print "<h3>" call(r) ", recorded</h3>"
    para((p ? "Over all batches, heads and lengths " esc(contest_words(r, p)) ". " : "") \
        esc(sentence_case(checked(r))) ".")
    print "<div class=pair>"
    figure("gpu-" two(r) "-speedup")
    figure("gpu-" two(r) "-error", 1) # errors are drawn in fp32, which tensor cores do not take
    if (p)
        figure("gpu-" two(r) "-step")
    print "</div>"
    if (p) {
        contest(r, p)
        if (lost)
            step_table(r, p)
    }
}

# Where a step does not gain everywhere: speed of r over p for each batch and heads at each length.
function step_table(r, p,   i, j, m, n, b, h, columns, all, x) {
    para("The speed of " two(r) " over " two(p) "; shaded where it is slower.")
    n = lengths(1, ungrouped, r)
    for (m = 1; m <= n; m++) {
        all[m] = length_at[m]
        columns = columns "|" keys(all[m])
    }
    table("heads|batch" columns, "kills")
    for (j = 1; j <= heads; j++)
        for (i = 1; i <= batches; i++) {
            b = batch_of[i]
            h = heads_of[j]
            tr()
            td(h)
            td(b)
            for (m = 1; m <= n; m++) {
                x = faster(b, h, r, p, all[m])
                printf("<td%s>%s</td>", x > 0 && x < 1 / 1.02 ? " class=half" : "", x > 0 ? sprintf("%.2fx", x) : "-")
            }
            tr_end()
        }
    table_end()
}

function gpu_record(   f, i, k, line, files, files_n, written) {
    print "<details><summary>Machine record of the recorded run</summary>"
    table("what|value|recorded by")
    files_n = split("bench.csv verify.csv sanitize.csv huge.csv sms.csv parts.csv blocks.csv h200.csv", files, " ")
    for (f = 1; f <= files_n; f++)
        for (i = 1; i <= records[files[f]]; i++) {
            line = record[files[f], i]
            if (line in written)
                continue
            written[line] = 1
            k = index(line, ": ")
            tr()
            td(substr(line, 1, k - 1))
            td(substr(line, k + 2))
            td(files[f])
            tr_end()
        }
    table_end()
    print "</details>"
}
