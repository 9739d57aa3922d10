#!/bin/sh
# report_parts.sh: an edit of one rung runs that rung again, and no other. plots/parts.sh with a program that only notes its
# calls, and object files of one word.
set -u
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
build=$work/build
failed=0
mkdir -p "$build/obj/reference" "$build/obj/tests" "$build/obj/cuda" "$build/mutants" "$build/parents" "$build/report"
for f in reference/fd reference/01_a reference/05_b cuda/22_c tests/judge tests/cmd_verify tests/cmd_bench tests/bench \
    tests/rules tests/killtable tests/cmd_mutants tests/cmd_killtable; do
    echo 1 > "$build/obj/$f.o"
done
echo 1 | tee "$build/mutants/m.o" "$build/parents/p.o" "$build/libm_error.csv" > /dev/null
printf 'rung,name,parent,idea\n1,a,0,x\n5,b,1,y\n22,c,5,z\n' > "$build/report/ladder.csv"

# Writes a row for each --rung, and its arguments to calls. A rung in $work/broken ends it with 2, one in $work/wrong with 1.
cat > "$build/flashdecode" <<END
#!/bin/sh
command=\$1 rungs= code=0
echo "\$*" | sed 's/ --csv.*//' >> "$work/calls"
while [ \$# -gt 0 ]; do
    case \$1 in --rung) rungs="\$rungs \$2" ;; --csv) csv=\$2 ;; esac
    shift
done
{
    echo "# command: \$command\$rungs"
    echo rung,name,where,verdict,ratio,lse_ratio,case
    for r in \$rungs; do
        echo "\$r,n,cpu,pass,0.5,0.5,c"
        [ ! -f "$work/wrong" ] || code=1
        ! grep -qx "\$r" "$work/broken" 2> /dev/null || exit 2
    done
} > "\$csv"
exit \$code
END
chmod +x "$build/flashdecode"

parts() { # command: the calls that it made, sorted, on one line
    : > "$work/calls"
    sh plots/parts.sh "$1" "$build" small 2> "$work/why"
    code=$?
    calls=$(sort "$work/calls" | paste -sd ';' -)
}

expect() { # what, calls, exit code
    [ "$calls" = "$2" ] && [ $code -eq "$3" ] || {
        echo "report_parts: $1: got '$calls' and exit code $code, not '$2' and $3"
        failed=$((failed + 1))
    }
}

parts verify
expect "the first time, all" "verify --size small --rung 1 --rung 5;verify --size small --rung 22" 0
parts verify
expect "nothing changed" "" 0
echo 2 > "$build/obj/reference/05_b.o"
parts verify
expect "a rung was edited" "verify --size small --rung 5" 0
[ "$(grep -c '^[0-9]' "$build/report/verify.csv")" -eq 3 ] || { echo "report_parts: rows are lost" && failed=$((failed + 1)); }
echo 2 > "$build/obj/tests/cmd_bench.o"
echo 2 > "$build/obj/tests/rules.o"
parts verify
expect "another command was edited" "" 0
echo 2 > "$build/obj/tests/judge.o"
echo 5 > "$work/broken"
parts verify
expect "a run that breaks" "verify --size small --rung 1 --rung 5;verify --size small --rung 22" 2
rm "$work/broken"
touch "$work/wrong"
parts verify
expect "it is begun again; a failing verdict is a result" \
    "verify --size small --rung 1 --rung 5;verify --size small --rung 22" 0
rm "$work/wrong"
echo 3 > "$build/obj/cuda/22_c.o"
parts verify
expect "a CUDA rung was edited" "verify --size small --rung 22" 0
parts bench
expect "CUDA rungs are not timed" "bench --size small --rung 1 --rung 5" 0
echo 3 > "$build/obj/reference/01_a.o"
parts bench
expect "times of one run only are compared" "bench --size small --rung 1 --rung 5" 0
parts bench
expect "nothing to time" "" 0
parts killtable
expect "the kill table" "killtable" 0
echo 4 > "$build/obj/reference/05_b.o"
parts killtable
expect "the kill table is of the committed rungs" "" 0
echo 2 > "$build/parents/p.o"
parts killtable
expect "which a commit changes" "killtable" 0

[ $failed -eq 0 ] && echo "report_parts: only what changed is run again"
exit $((failed > 0))
