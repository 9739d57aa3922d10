# readme.awk: the ladder as a Markdown table, with the machine and the date it was measured on.

END {
    prepare()
    print "| rung | idea | cases it gives up on | worst error" at_keys(ladder_at) " | error / bound, all cases | time" \
        at_keys(ladder_kv) " | x read floor | speed over " two(base ? base : 1) " | speed over parent |"
    print "|---|---|--:|--:|--:|--:|--:|--:|--:|"
    for (i = 1; i <= rungs; i++) {
        r = rung[i]
        k = ladder_kv
        t = idea[r]
        gsub(/\|/, "\\|", t)
        printf "| %s %s | %s | %d | %s | %s | %s | %s | %s | %s |\n", two(r), name[r], t, gives_up[r], \
            ((r, ladder_at) in e_max ? show(e_max[r, ladder_at]) " u" : "-"), \
            ((r in worst) ? ratio(num(row[worst[r], "ratio"])) : "-"), duration(time(r, k)) \
            (time(r, k) > 0 && threads[config[r], r, k] > 1 ? ", " threads[config[r], r, k] " threads" : ""), \
            times(over_floor(r, k)), \
            gain(r, base, k), (parent[r] ? gain(r, parent[r], k) : "-")
    }
    printf "\n%s: %d cases passed (%d by failing where the rung declares to), %d failed, %d skipped; " \
        "%d of %d wrong kernels caught and named.\n", \
        verdict(), passed, expecteds, failures, skipped, mutants_killed, mutants
    printf "%s, %s, commit %s, %s.\n", machine, find_record("compiler"), find_record("commit"), find_record("date")
    note = other_types()
    if (base)
        printf "Times: %s, cache %s; x read floor: over a read with as many threads; level: could be noise. Errors in units of u = 2^-24 of sum p\\|v\\|.%s\n", config[base], \
            cache[config[base], base, ladder_kv], note
    else
        printf "Errors in units of u = 2^-24 of sum p\\|v\\|.%s\n", note
}
