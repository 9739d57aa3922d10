# splits_table.awk: error against num_splits of a page's rungs, as a Markdown table. -v page="5,7". Behind csv.awk and
# results.awk, on ladder.csv and splits.csv.

END {
    n = split(page, of, ",")
    printf "| num_splits | keys a split |"
    for (i = 1; i <= n; i++)
        printf " %s: median | worst | bound |", two(of[i])
    printf "\n|--:|--:|"
    for (i = 1; i <= n; i++)
        printf "--:|--:|--:|"
    printf "\n"
    for (j = 1; j <= split_n[of[1] + 0]; j++) {
        k = split_kv[of[1] + 0, j]
        printf "| %d | %d |", k, split_at[of[1] + 0, k, "split_size"]
        for (i = 1; i <= n; i++) {
            r = of[i] + 0
            printf " %s | %s | %s |", show(split_at[r, k, "err_p50"]), show(split_at[r, k, "err_max"]), \
                show(split_at[r, k, "bound"])
        }
        printf "\n"
    }
    printf "\nScaled errors in units of u = 2^-24 of sum p\\|v\\|; %s. %s, %s.\n", split_shape, find_record("processor"), \
        find_record("compiler")
}
