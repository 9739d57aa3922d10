# gpu_peers_figure.awk: the last rung beside other projects' kernels, time over read. Behind gpu_figures.awk and
# gpu_peers.awk.

# Looks by the order of the list; the rivals in dark grey, the others in light grey.
function peers_figure(h,   i, m, n, x, y, look, drawn, said) {
    open_figure("gpu-peers-" file_word(h))
    drawn = split("fa2-splitkv sdpa-cudnn fa3-dense flashinfer-single-tc", shown, " ")
    n = lengths(1, h, last)
    for (i = 1; i <= drawn; i++) {
        x = shown[i]
        look = "lc rgb '" (i <= 2 ? "#444444" : "#999999") "' lw 1.5 dt " word_of("1 2 4 3", i) " ps 0.7 pt " \
            word_of("7 5 9 11", i)
        for (m = 1; m <= n; m++)
            if ((y = peer_over_read(x, 1, h, length_at[m])) > 0)
                print length_at[m], see(y) > dat
        curve("linespoints " look)
        sub(/lw [0-9.]* dt [0-9]* /, "", look)
        pend(brief(x), y, (i <= 2 ? "" : "tc rgb GREY ") "point " look " offset char 1,DROP")
        said = said " " peer_name[x] ": " times(peer_over_read(x, 1, h, ref)) "."
    }
    for (m = 1; m <= n; m++)
        print length_at[m], see(over_read(1, h, last, length_at[m])) > dat
    curve(line_of(last, 2.5))
    see(1)
    heading("At " keys(ref) " keys " two(last) " is " lead_of("fa2-splitkv", 1, h, ref) ", " \
        lead_of("sdpa-cudnn", 1, h, ref), elements ", batch 1, heads " h \
        ", cache cold; the others recorded apart, FlashInfer on tensor cores", \
        "time of a call over that of reading the same K and V in the same run; lower is better")
    x_axis(length_at[1], length_at[n])
    y_axis(0)
    pend(short(last), over_read(1, h, last, length_at[n]), "font BOLD " mark(last))
    at_one("the read")
    place_pending()
    print "Log-log line chart. At " keys(ref) " keys: " two(last) " " times(over_read(1, h, last, ref)) "." said > alt
    close_figure()
}
