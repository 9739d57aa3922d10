# tables.awk -v which=bridge|counts: what Coq prints of Bridge.table and Levels.counts_table, as CSV. 17p-28 is 17 2^-28.
function take() { return item[++at] }
function dyad(  m) { m = take(); return m "p" take() }
{ text = text " " $0 }
END {
    sub(/^[^=]*=/, "", text); sub(/ : list.*/, "", text)
    if (which == "counts") {
        print "n,additions,rescales,normalised,h_n,h_d,parts,parts_norm,levels"
        records = split(text, record, "]")
    } else {
        print "tree,n,split_size,head_dim,u,eta,exp_rel,exp_abs,log_rel,sm_scale,s_max,page_o_low,page_o_high," \
            "page_lse_low,page_lse_high,o_low,o_high,lse_low,lse_high,keys"
        records = split(text, record, /\]\]/)
    }
    for (i = 1; i <= records; i++) {
        gsub(/[^-0-9]+/, " ", record[i]); sub(/^ /, "", record[i]); sub(/ $/, "", record[i])
        count = split(record[i], item, " "); at = 0
        if (count < 8) continue
        line = take()
        if (which == "counts") {
            for (k = 2; k <= 8; k++) line = line "," take()
            line = line ","
            while (at < count) { line = line (at > 8 ? " " : "") take() "/"; line = line take() "/"; line = line take() }
        } else {
            for (k = 2; k <= 4; k++) line = line "," take()
            for (k = 5; k <= 19; k++) line = line "," dyad()
            line = line ","
            while (at < count) { line = line (at > 34 ? " " : "") dyad() "/"; line = line dyad() "/"; line = line dyad() }
        }
        print line
    }
}
