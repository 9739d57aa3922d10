# counters_ncu.awk: the emulator's counters beside Nsight Compute's, as Markdown. Reads verify.csv of the GPU, for its
# numbers of splits; ncu.csv (case, rung, launch, kernel, metric, value, in the order of the launches); then what
# `flashdecode emulate --csv` wrote. -v sms="multiprocessors that splits were planned for". Behind csv.awk.

BEGIN {
    num_counters = split("global_loads global_load_sectors global_stores global_store_sectors shared_loads " \
        "shared_load_wavefronts shared_stores shared_store_wavefronts", counters, " ")
    split("global load requests,global load sectors,global store requests,global store sectors,shared load requests," \
        "shared load wavefronts,shared store requests,shared store wavefronts", labels, ",")
    split("l1tex__t_requests_pipe_lsu_mem_global_op_ld l1tex__t_sectors_pipe_lsu_mem_global_op_ld " \
        "l1tex__t_requests_pipe_lsu_mem_global_op_st l1tex__t_sectors_pipe_lsu_mem_global_op_st " \
        "smsp__inst_executed_op_shared_ld l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld " \
        "smsp__inst_executed_op_shared_st l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st", metrics, " ")
    for (i = 1; i <= num_counters; i++)
        counter_of[metrics[i] ".sum"] = counters[i]
    # Asynchronous copies: the emulator counts what they do to shared memory among the stores.
    counter_of["smsp__inst_executed_op_ldgsts.sum"] = "shared_stores"
    counter_of["sm__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared_op_ldgsts.sum"] = "shared_store_wavefronts"
}
FNR == 1 { header = 0 }
/^# gpu, / { gpu = $0; sub(/^[^:]*: /, "", gpu); sub(/,.*/, "", gpu) }
/^# compiler: / { compiler = substr($0, 13) }
/^#/ { next }
!header {
    header = 1
    file = FILENAME
    kind = $0 ~ /metric/ ? "ncu" : $0 ~ /global_loads/ ? "emulated" : "verified"
    csv_header($0, kind == "verified" ? "rung where case num_splits" : kind == "ncu" ? "case rung launch kernel metric value" : \
        "rung case num_splits kernel launches uncounted global_loads " \
        "global_load_sectors global_stores global_store_sectors shared_loads shared_load_wavefronts shared_stores " \
        "shared_store_wavefronts")
    next
}
{ csv_split($0, cell) }
kind == "verified" {
    if (get("where") == "gpu")
        splits[get("case"), get("rung")] = get("num_splits") + 0
    next
}
kind == "ncu" {
    if (!(get("metric") in counter_of))
        die(file ": metric " get("metric") " is none that the emulator has a counter for")
    at = get("case") SUBSEP get("rung") SUBSEP get("kernel")
    if (!(at in seen)) {
        seen[at] = 1
        launch[++n] = at
    }
    if (at SUBSEP get("launch") != current) {
        close_launch()
        current = at SUBSEP get("launch")
        current_at = at
    }
    sum[counter_of[get("metric")]] += get("value")
    next
}
kind == "emulated" && current != "" { close_launch() }
{
    at = get("case") SUBSEP get("rung") SUBSEP get("kernel")
    planned = splits[get("case"), get("rung")]
    if (planned == "" || (planned ? planned : 1) != get("num_splits")) # a rung without a plan has 0 there, 1 here
        die("rung " get("rung") ", " get("case") ": other splits than in verify.csv")
    if (get("uncounted") > 0)
        die(file ": accesses are left uncounted")
    counted[at] = 1
    for (i = 1; i <= num_counters; i++)
        emulated[at, counters[i]] = get(counters[i]) / get("launches")
}
END {
    if (bad)
        exit bad
    for (k = 1; k <= n; k++)
        if (!(launch[k] in counted))
            die(file ": a kernel of ncu.csv is missing: " launch[k])
    printf "| counter | kernels | the two agree |\n|---|--:|---|\n"
    for (i = 1; i <= num_counters; i++)
        agreement(i)
    printf "\nWhere they do not (ratio: emulator over ncu; of several launches, over the least):\n\n"
    table(1)
    printf "\n<details><summary>Where they are equal</summary>\n\n"
    table(0)
    printf "\n</details>\n\nncu: %s. Emulated with %s, `--padded --sms %d`.\n", gpu, compiler, sms
}

# All metrics of one launch are there: the least and the most of several launches.
function close_launch(   c, at) {
    for (c in sum) {
        at = current_at SUBSEP c
        if (!(at in least) || sum[c] < least[at])
            least[at] = sum[c]
        if (!(at in most) || sum[c] > most[at])
            most[at] = sum[c]
        delete sum[c]
    }
    current = ""
}

# Zero on both sides says nothing.
function compared(k, c) { return emulated[launch[k], c] > 0 || most[launch[k], c] > 0 }

function equal(k, c) { return emulated[launch[k], c] == least[launch[k], c] }

function over(k, c) { return least[launch[k], c] > 0 ? emulated[launch[k], c] / least[launch[k], c] : 1e300 }

# One row of words for a counter, over the kernels that have it.
function agreement(i,   k, c, of, same, steady, low, high, x) {
    c = counters[i]
    low = 1e300
    steady = 1
    for (k = 1; k <= n; k++) {
        if (!compared(k, c))
            continue
        of++
        same += equal(k, c)
        steady = steady && least[launch[k], c] == most[launch[k], c]
        x = over(k, c)
        low = x < low ? x : low
        high = x > high ? x : high
    }
    printf "| %s | %d | ", labels[i], of
    if (same == of)
        printf "equal in all"
    else
        printf "%s; ratio %.2f to %.2f", (same ? "equal in " same : "in none"), low, high
    printf "%s |\n", steady ? "" : "; ncu's own launches differ"
}

function table(differing,   k, i, c, part, name, ncu) {
    printf "| case | kernel | counter | emulator | ncu |%s\n|---|---|---|--:|--:|%s\n", differing ? " ratio |" : "",
        differing ? "--:|" : ""
    for (k = 1; k <= n; k++) {
        split(launch[k], part, SUBSEP)
        name = part[3]
        sub(/^fd_k_/, "", name)
        if (name + 0 != part[2] + 0) # a combine, or the kernel of another rung
            name = part[2] ": " name
        gsub(/_/, " ", name)
        for (i = 1; i <= num_counters; i++) {
            c = counters[i]
            if (!compared(k, c) || equal(k, c) == differing)
                continue
            ncu = least[launch[k], c]
            if (most[launch[k], c] > ncu)
                ncu = ncu " to " most[launch[k], c]
            printf "| %s | %s | %s | %d | %s |%s\n", part[1], name, labels[i], emulated[launch[k], c], ncu,
                differing ? sprintf(" %.2f |", over(k, c)) : ""
        }
    }
}
