# report.awk: the page. Every number comes from the arrays of results.awk, every figure from results (a folder); the
# words of HTML are html.awk's.
# Reads links.csv besides (rung, tutorial, source), made by report.sh.

file == "links.csv" {
    if (get("tutorial") != "")
        tutorial[get("rung") + 0] = get("tutorial")
    if (get("source") != "")
        source[get("rung") + 0] = get("source")
}

END {
    prepare()
    copy("head.html")
    banner()
    copy("guide.html")
    machine_record()
    ladder()
    hardest_inputs()
    section("rungs", "4. Rung by rung, old against new")
    for (i = 1; i <= rungs; i++)
        rung_section(rung[i])
    decode_section()
    real_input()
    guide_check()
    recorded()
    mutant_table()
    kill_table()
    others_judged()
    exceptions()
    appendix()
    print "</main></body></html>"
}

# A file of the plots folder, as it is.
function copy(path,   line) {
    while ((getline line < (plots "/" path)) > 0)
        print line
    close(plots "/" path)
}

# ---- Sections -----------------------------------------------------------------------------------

function banner(   i, links, n_, t, v) {
    v = verdict()
    print "<div class='banner" (v == "PASSED" ? "" : " fail") "' role=status>"
    para("<strong>" v ": " passed + mutants_killed " passed, " failed() " failed, " skipped + mutants_skipped \
        " skipped.</strong>")
    para(plural(passed, "case") " passed (" expecteds " of them by failing where the rung declares to), " failures " failed, " skipped \
        " skipped; " mutants_killed " of " mutants " wrong kernels caught and named; " undecided " undecided" \
        (undecided ? ", which must be 0" : "") ".")
    if (why != "")
        para("Incomplete: " why ". <code>make report</code> fills it in.")
    print "</div>"
    n_ = split("read How to read|machine Machine|ladder Ladder|rungs Rungs|decode Decoding|real Real input|guide The guide|" \
        "gpu On a GPU|mutants Mutants|killtable Kill table|adapters Others judged|exceptions Exceptions|appendix Appendix", links, "|")
    print "<nav><p>"
    for (i = 1; i <= n_; i++) {
        t = index(links[i], " ")
        print "<a href=#" substr(links[i], 1, t - 1) ">" substr(links[i], t + 1) "</a>"
    }
    print "</p></nav>"
    if (failures) {
        section("failures", "Failures")
        case_table(failure, failures, 100, 1)
    }
}

function machine_record(   f, i, k, n_, files, seen_line, line, id) {
    section("machine", "2. Machine record")
    table("what|value|recorded by")
    n_ = split("verify.csv bench.csv splits.csv decode.csv", files, " ")
    for (f = 1; f <= n_; f++)
        for (i = 1; i <= records[files[f]]; i++) {
            line = record[files[f], i]
            if (line ~ /^machine_id:/)
                id[files[f]] = line
            if (line in seen_line || line ~ /^command:/)
                continue
            seen_line[line] = 1
            k = index(line, ":")
            tr()
            td(k ? substr(line, 1, k - 1) : "")
            td(substr(line, k + 1))
            td(files[f])
            tr_end()
        }
    table_end()
    if (id["verify.csv"] != "" && id["bench.csv"] != "" && id["verify.csv"] != id["bench.csv"])
        para("<strong>Note:</strong> verify.csv and bench.csv carry different machine ids.")
    if (!records["verify.csv"])
        missing("verify.csv has no machine record.")
}

# Behind a number, where a rung has its own length and not the usual one.
function own_keys(k, usual) { return k && k != usual ? at_keys(k) : "" }

function ladder(   i, r, k, e, t) {
    section("ladder", "3. The ladder")
    table("rung|idea|worst error, u" at_keys(ladder_at) "|median error, u" at_keys(ladder_at) \
        "|worst error over bound, all cases|time" at_keys(ladder_kv) "|threads|GB/s|share of the limit|" \
        "speed over " two(base ? base : 1) "|speed over parent|workspace", "ladder")
    for (i = 1; i <= rungs; i++) {
        r = rung[i]
        e = (r, ladder_at) in e_max ? ladder_at : at[r]
        k = (r in config) && config[r] == config[base] && ladder_kv ? ladder_kv : when[r]
        t = time(r, k)
        tr()
        printf "<th scope=row><a href=#r%s>%s</a></th>", two(r), call(r)
        td(idea[r])
        right((r in type) ? show(e_max[r, e]) own_keys(e, ladder_at) : "-")
        right((r in type) ? show(e_p50[r, e]) own_keys(e, ladder_at) : "-")
        right((r in worst) ? ratio(num(row[worst[r], "ratio"])) : "-")
        right(duration(t) own_keys(k, ladder_kv))
        right(t > 0 ? threads[config[r], r, k] : "-")
        right(t > 0 ? show(bytes[config[r], r, k] / t) : "-")
        right(share(r, k))
        right(gain(r, base, k))
        right(parent[r] ? gain(r, parent[r], k) : "-")
        right(t > 0 ? size(work[config[r], r, k]) : "-")
        tr_end()
    }
    table_end()
    para("The limit: the time to read the same K and V once with as many threads, in turns with the rung. Level: the " \
        "middle halves of the two times overlap, and no change is claimed." other_types())
    if (!base)
        missing("times. bench.csv has no rows; <code>make report</code> writes them.")
    print "<div class=pair>"
    figure("ladder-error")
    figure("ladder-floor")
    figure("ladder-speedup")
    figure("ladder-trade")
    figure("ladder-workspace")
    print "</div>"
}

function hardest_inputs(   i, j, k, head_row) {
    print "<h3>Which inputs are hardest</h3>"
    para("The worst error over bound, by family of inputs and rung, where the output is fp32. At 1 the bound has no slack left.")
    for (j = 1; j <= rungs; j++)
        head_row = head_row "|" two(rung[j])
    table("family" head_row, "families")
    for (i = 1; i <= families; i++) {
        tr()
        td(family[i])
        for (j = 1; j <= rungs; j++)
            right((rung[j], family[i]) in hardest ? small(hardest[rung[j], family[i]]) : "-")
        tr_end()
    }
    table_end()
}

function small(x) { return x > 0 && x < 1e-4 ? "< 1e-4" : ratio(x) } # which power of ten says nothing, and is wide

function rung_section(r,   s) {
    print "<h3 id=r" two(r) ">" call(r) "</h3>"
    s = esc(toupper(substr(idea[r], 1, 1)) substr(idea[r], 2)) "."
    para(s (parent[r] ? " Parent: " call(parent[r]) "." : "") \
        (tutorial[r] ? " <a href='" tutorial[r] "'>Tutorial</a>." : "") \
        (source[r] ? " <a href='" source[r] "'>Source</a>." : ""))
    s = error_sentence(r, parent[r], shared(r, 0)) bound_sentence(r, worst[r]) \
        time_sentence(r, parent[r], shared(r, 1)) thread_sentence(r) splits_sentence(r)
    if (s != "")
        para(s)
    print "<div class=pair>"
    figure(two(r) "-error")
    if (r < 20)
        figure(two(r) "-time")
    figure(two(r) "-ulps", 1)
    figure(two(r) "-gain", 1)
    figure(two(r) "-splits", 1)
    figure(two(r) "-splits-time", 1)
    if (r >= 20)
        para("Its kernels run on the emulator here, which tells no time: <a href=#gpu>recorded on a GPU</a>.")
    print "</div>"
}

function error_sentence(r, p, k,   s) {
    if (!(r in type))
        return ""
    s = "At " keys(k) " keys the worst error is " show(e_max[r, k]) " u and the median " show(e_p50[r, k]) " u"
    if ((p, type[r], k) in err)
        s = s "; the parent has " show(err[p, type[r], k]) " u and " show(p50[p, type[r], k]) " u: the worst is " \
            compare(e_max[r, k], err[p, type[r], k], "smaller than", "larger than") " the parent's"
    return s ". "
}

function bound_sentence(r, w) {
    if (w == "")
        return ""
    return "Over all " plural(cases[r], "judged case") " the largest error over bound is " ratio(num(row[w, "ratio"])) \
        ", in case " esc(row[w, "case"]) " (" esc(row[w, "family"]) ", kv_len " row[w, "kv_len"] ", kv " \
        row[w, "dtype_kv"] "). "
}

function time_sentence(r, p, k,   s) {
    if (!(r in config))
        return ""
    s = "A call at " keys(k) " keys takes " duration(time(r, k)) ", " show(bytes[config[r], r, k] / time(r, k)) " GB/s"
    if (over_floor(r, k) > 0)
        s = s " and " share(r, k) " of the limit, a read with as many threads"
    if (speedup(r, p, k) > 0)
        s = s ", " compare_times(r, p, k, "faster than", "slower than") " the parent"
    return s ", with " size(work[config[r], r, k]) " of workspace. "
}

# The limit is one read of the same K and V in the same run.
function share(r, k) { return over_floor(r, k) > 0 ? sprintf("%.0f %%", 100 / over_floor(r, k)) : "-" }

function thread_sentence(r,   k, g) {
    k = when[r]
    g = config[r]
    if (!(r in config) || threads[g, r, k] < 2 || !((g, r, k) in ns_one))
        return ""
    return plural(threads[g, r, k], "thread") " take " times(ns[g, r, k] / ns_one[g, r, k]) " the time of one. "
}

function splits_sentence(r,   b, k) {
    if (!(r in split_n))
        return ""
    k = split_kv[r, 1]
    b = least_at(r, "err_p50")
    return "At " keys(split_keys) " keys the median error is " show(split_at[r, k, "err_p50"]) " u with " \
        plural(k, "split") " and " show(split_at[r, b, "err_p50"]) " u with " b ", where it is least; the bound is least with " \
        least_at(r, "bound") ". "
}

function decode_section(   i, r, n, k, checked, differ) {
    section("decode", "5. Decoding, token by token")
    if (!decode_rungs)
        return missing("decode.csv has no rows; <code>make report</code> writes them.")
    for (i = 1; i <= decode_rungs; i++) {
        checked += decode_checked[decode_rung[i]]
        differ += decode_differ[decode_rung[i]]
    }
    para("A step appends keys and values, attends, and takes the next token, which is a hash of every bit of o and lse. The " \
        "plan is made once, for the last step. " checked - differ " of " checked " sampled steps have the bits of a cache " \
        "built at once, and stay within their bound. The bytes to read grow with the cache: a time can be flat only " \
        "where something else than reading decides it.")
    print "<div class=pair>"
    figure("ladder-decode")
    print "</div>"
    table("rung|threads|first step|last step|for twice the keys|last over a read of the same bytes|" \
        "checked steps, right|worst error over bound, one head")
    for (i = 1; i <= decode_rungs; i++) {
        r = decode_rung[i]
        n = decode_n[r]
        k = decode_kv[r, n]
        tr()
        printf "<th scope=row>%s</th>", call(r)
        right(decode_threads[r])
        right(duration(decode_ns[r, decode_kv[r, 1]]) " at " decode_kv[r, 1] " keys")
        right(duration(decode_ns[r, k]) " at " k " keys")
        right(times(decode_twice(r)))
        right(decode_floor[r, k] > 0 ? times(decode_ns[r, k] / decode_floor[r, k]) : "-")
        right(decode_checked[r] - decode_differ[r] " of " decode_checked[r])
        right(ratio(decode_ratio[r]))
        tr_end()
    }
    table_end()
}

function case_table(list, count, limit, list_seed,   i, j, w, c, n_) {
    table("rung|case|kv|kv_len|splits|worst error, u|median, u|smallest bound, u|error over bound|lse over bound|" \
        "median ulp|worst ulp|verdict" (list_seed ? "|seed" : ""), "cases")
    n_ = split("err_max err_p50 bound ratio lse_ratio ulp_p50 ulp_max", c, " ")
    for (i = 1; i <= count && i <= limit; i++) {
        w = list[i]
        tr()
        td(two(row[w, "rung"]) " " name[row[w, "rung"] + 0])
        td(row[w, "case"])
        td(row[w, "dtype_kv"])
        right(row[w, "kv_len"])
        right(row[w, "num_splits"])
        for (j = 1; j <= n_; j++)
            right(c[j] ~ /ratio/ ? ratio(num(row[w, c[j]])) : show(num(row[w, c[j]])))
        td(row[w, "verdict"])
        if (list_seed)
            td(row[w, "seed"])
        tr_end()
    }
    table_end()
    if (count > limit)
        para("The first " limit " of " count " rows; verify.csv has all.")
}

# One line per rung and types: 16-bit outputs and fp32 ones are different stories, layers and splits are not.
function real_input(   i, w, k, count, worst_, median, order, groups_) {
    section("real", "6. Real input")
    if (!reals)
        return missing("verify.csv has no row of family real.")
    para("Queries, keys and values captured from the encoder all-MiniLM-L6-v2. The unit is that of fp32 throughout: " \
        "with 16-bit outputs nearly all of the error is the rounding of the output itself, which the bound allows for.")
    for (i = 1; i <= reals; i++) {
        w = real[i]
        k = row[w, "rung"] SUBSEP row[w, "where"] " " row[w, "dtype_q"] " " row[w, "dtype_kv"] " " row[w, "dtype_o"]
        if (!count[k]++) {
            order[++groups_] = k
            worst_[k] = w
        }
        if (num(row[w, "ratio"]) > num(row[worst_[k], "ratio"]))
            worst_[k] = w
        if (num(row[w, "err_p50"]) > median[k] + 0)
            median[k] = num(row[w, "err_p50"])
    }
    table("rung|types|cases|worst error over bound|in case|its worst error, u|lse over bound|largest median, u", \
        "cases")
    for (i = 1; i <= groups_; i++) {
        k = order[i]
        w = worst_[k]
        tr()
        td(two(row[w, "rung"]) " " name[row[w, "rung"] + 0])
        td(types(substr(k, index(k, SUBSEP) + 1)))
        right(count[k])
        right(ratio(num(row[w, "ratio"])))
        td(row[w, "case"])
        right(show(num(row[w, "err_max"])))
        right(show(num(row[w, "lse_ratio"])))
        right(show(median[k] + 0))
        tr_end()
    }
    table_end()
}

function guide_check(   i, w, a) {
    section("guide", "7. The guide's own check")
    if (!guides)
        return missing("verify.csv has no case guide-16k.")
    para("The guide accepts a result if no element is off by more than 1e-4; beside it, the same result by the " \
        "bound, which here is as wide as 1e-4 or wider: it is what a right kernel could do on some input of this shape. " \
        "A fixed 1e-4 stays what it is while outputs shrink as the cache grows; the bound shrinks with them, and what it " \
        "must allow on random inputs, the statistical tier does not.")
    table("rung|case|largest absolute error|guide's 1e-4|1e-4 over it|worst error, u|error over bound|verdict", "cases")
    for (i = 1; i <= guides; i++) {
        w = guide[i]
        a = num(row[w, "max_abs"])
        tr()
        td(two(row[w, "rung"]) " " name[row[w, "rung"] + 0])
        td(row[w, "case"])
        right(show(a))
        td(known(a) && a <= 1e-4 ? "met" : "NOT met")
        right(a > 0 && known(a) ? times(1e-4 / a) : "-")
        right(show(num(row[w, "err_max"])))
        right(ratio(num(row[w, "ratio"])))
        td(row[w, "verdict"])
        tr_end()
    }
    table_end()
}

function mutant_table(   i, v) {
    section("mutants", "9. Mutants: can the checker fail?")
    if (!mutants)
        return missing("mutants.csv has no rows; <code>make report</code> writes them.")
    para("Each mutant is a rung with one bug; " mutants_killed " of " mutants " are caught and named. " \
        "<em>Margin</em> is error over bound in the worst case: the further above 1, the less luck was needed.")
    table("of|the bug|cases that catch it|caught by|worst case|margin|named|outcome", "bugs")
    for (i = 1; i <= mutants; i++) {
        tr()
        td(two(mutant[i, "parent"]))
        td((mutant[i, "name"] == mutant[i, "mutant"] ? "" : mutant[i, "name"] ": ") mutant[i, "change"])
        right(mutant[i, "cases_killed"] " of " mutant[i, "cases_run"])
        td(mutant[i, "killed_by"])
        td(mutant[i, "worst_case"])
        right(show(num(mutant[i, "margin"])))
        td(mutant[i, "diagnosis"] == mutant[i, "name"] ? "right" : mutant[i, "diagnosis"])
        v = mutant[i, "verdict"]
        td(mutant[i, "ok"] ? "caught" : "FAIL" (v == "fail" ? "" : ": " v))
        tr_end()
    }
    table_end()
}

# Made by gpu_section.awk, for report.sh.
function recorded(   line) {
    while ((getline line < gpu) > 0)
        print line
}

# Made by killtable.awk, for report.sh.
function kill_table(   line, lines) {
    section("killtable", "10. Kill table: published rules beside ours")
    for (; (getline line < killtable) > 0; lines++)
        print line
    if (!lines)
        missing("killtable.csv has no rows; <code>make report</code> writes them.")
}

# Made by adapters.sh, for report.sh.
function others_judged(   line) {
    section("adapters", "11. Other people's attention, judged")
    para("Recorded, and read as files: NumPy with the guide's algorithm and ONNX Runtime on a CPU, PyTorch's backends " \
        "there and on a GPU. The bound is that of any merge tree in fp32 with a GPU library's exp, and the rounding of " \
        "o; \"as tensor cores\": with weights rounded to the type, and sums as tensor cores take them. " \
        "tutorials/adapters.md says what each failure is.")
    while ((getline line < adapters) > 0)
        print line
}

function exceptions() {
    section("exceptions", "12. Expected failures, skips and empty verdicts")
    para(plural(expecteds, "expected failure") ", " plural(skipped, "skip") ", " plural(vacuous + 0, "vacuous bound") \
        ", " undecided " undecided.")
    if (expecteds) {
        para("A rung that declares where it breaks must break there: these came out wrong, as declared.")
        print "<details><summary>" plural(expecteds, "case") "</summary>"
        case_table(expected, expecteds, 200)
        print "</details>"
    }
}

function appendix(   f, i, n_, files) {
    section("appendix", "13. Appendix: commands, raw output, samples")
    para("<code>make report</code> makes this page from the CSV files; <code>sh plots/plots.sh</code> draws " \
        "the figures again, with PNG copies; <code>make report-text</code> is the version for terminals. The commands:")
    print "<pre>"
    n_ = split("verify.csv mutants.csv killtable.csv bench.csv splits.csv decode.csv", files, " ")
    for (f = 1; f <= n_; f++)
        for (i = 1; i <= records[files[f]]; i++)
            if (record[files[f], i] ~ /^command:/)
                print esc(substr(record[files[f], i], 10))
    print "</pre>"
    n_ = split("verify mutants killtable exp", files, " ")
    for (f = 1; f <= n_; f++)
        raw(files[f] ".txt")
    n_ = split("bench splits decode", files, " ")
    for (f = 1; f <= n_; f++)
        raw(files[f] ".csv")
    para("verify.csv, mutants.csv and killtable.csv lie beside this page, and so does what the last run of each command said, " \
        "in files that end in .log.")
}

function raw(name_,   line, lines) {
    while ((getline line < (results "/" name_)) > 0) {
        if (!lines++)
            print "<details><summary>" name_ "</summary><pre>"
        gsub(/\033\[[0-9;]*[A-Za-z]/, "", line)
        print esc(line)
    }
    close(results "/" name_)
    if (lines)
        print "</pre></details>"
    else
        missing(name_ "; <code>make report</code> writes it.")
}
