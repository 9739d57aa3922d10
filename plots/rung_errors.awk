# rung_errors.awk: the worst error over its bound of a page's rungs, by family of inputs, as a Markdown table.
# -v page="21,22". Behind csv.awk and results.awk, on ladder.csv and verify.csv.

END {
    prepare()
    n = split(page, of, ",")
    printf "| error / bound, o in fp32 |"
    for (i = 1; i <= n; i++)
        printf " %s %s |", two(of[i]), name[of[i]]
    printf "\n|---|"
    for (i = 1; i <= n; i++)
        printf "--:|"
    printf "\n"
    for (j = 1; j <= families; j++) {
        found = 0
        for (i = 1; i <= n; i++)
            found += (of[i], family[j]) in hardest
        if (!found)
            continue
        printf "| %s |", family[j]
        for (i = 1; i <= n; i++)
            printf " %s |", ((of[i], family[j]) in hardest) ? ratio(hardest[of[i], family[j]]) : "-"
        printf "\n"
    }
    printf "| **all cases, all types** |"
    for (i = 1; i <= n; i++)
        printf " **%s** |", (of[i] in worst) ? ratio(num(row[worst[of[i]], "ratio"])) : "-"
    printf "\n| cases passed by being right |"
    for (i = 1; i <= n; i++)
        printf " %d |", cases[of[i]]
    if (ladder_at) {
        printf "\n| worst E%s |", at_keys(ladder_at)
        for (i = 1; i <= n; i++)
            printf " %s |", ((of[i], ladder_at) in e_max) ? show(e_max[of[i], ladder_at]) : "-"
    }
    printf "\n\n%s, %s, commit %s.%s CUDA rungs on the emulator, with this machine's `expf` and `logf`.\n", \
        find_record("processor"), find_record("compiler"), find_record("commit"), other_types()
}
