#!/bin/sh
# check.sh BUILD: compiles the proofs from scratch under BUILD/proofs, then compares what they rest on with axioms.txt.
# Exit code: 1 if a proof fails or assumes more than is listed, 2 if Coq or a library is missing.
set -u
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$1" && out=$(cd "$1" && pwd)/proofs || exit 2

need="apt-get install coq libcoq-flocq libcoq-interval (make setup-proofs)"
command -v coqc >/dev/null 2>&1 || { echo "proofs: coqc is missing; get it: $need" >&2; exit 2; }
rm -rf "$out" && mkdir -p "$out" && cd "$out" || exit 2
printf 'From Flocq Require Core.\nFrom Interval Require Tactic.\n' >probe.v
coqc probe.v >/dev/null 2>&1 || { echo "proofs: Flocq or Interval is missing; get them: $need" >&2; exit 2; }
rm -f probe.*

fail() { echo "proofs: $1" >&2; exit 1; }
if grep -nwE 'Admitted|admit|give_up|Axiom|Axioms|Conjecture|Parameter|Parameters' "$here"/*.v; then
    fail "an unproved statement, see above"
fi
awk 'length > 120 { print FILENAME ":" FNR ": longer than 120 columns"; bad = 1 } END { exit bad }' "$here"/*.v || exit 1

cp "$here"/*.v . || exit 2
coq_makefile -Q . FD ./*.v -o Makefile.coq >/dev/null || fail "coq_makefile failed"
# Its own make: flags of the calling one do not concern it.
MAKEFLAGS='' make -f Makefile.coq -j 2 >log.txt 2>&1 || { cat log.txt; fail "a proof does not check"; }

# axioms.txt names the theorems, in groups; Coq says what each group rests on; the two must agree.
awk -v files="$(cd "$here" && echo ./*.v)" '
    function close_group() { if (n) printf ").\nPrint Assumptions group_%d.\n", n }
    BEGIN { gsub(/\.\/|\.v/, "", files); print "From FD Require " files "." }
    /^= / { close_group(); n++; printf "Definition group_%d := (I", n; next }
    /^[A-Z]/ { printf ", @FD.%s", $1 }
    END { close_group() }' "$here/axioms.txt" >Questions.v
coqc -Q . FD Questions.v >answers.txt 2>&1 || { cat answers.txt; fail "axioms.txt names a theorem that is not there"; }
awk '
    function short(name) { # the aliases that axioms.txt explains; anything else keeps its full name
        if (name ~ /^ClassicalDedekindReals\.sig_(not|forall)_dec$/) return "reals"
        if (name == "Classical_Prop.classic") return "classic"
        if (name == "FunctionalExtensionality.functional_extensionality_dep") return "funext"
        if (name ~ /^(PrimInt63|Uint63|Sint63|Int63)\./) return "int63"
        if (name ~ /^(PrimFloat|FloatAxioms|FloatOps)\./) return "float64"
        return name
    }
    function close_group(  i, line) {
        if (!n) return
        for (i = 1; i <= known; i++) if (order[i] in seen) { line = line " " order[i]; delete seen[order[i]] }
        for (i in seen) line = line " " i
        print "=" (line == "" ? " none" : line)
        split("", seen)
    }
    BEGIN { known = split("reals classic funext int63 float64", order, " ") }
    /^Closed under the global context/ || /^Axioms:/ { close_group(); n++; next }
    /^[A-Za-z_]/ { sub(/[ :].*/, ""); seen[short($0)] = 1 }
    END { close_group() }' answers.txt >found.txt
grep '^= ' "$here/axioms.txt" | diff - found.txt || fail "axioms.txt is not true (<: listed, >: found)"

# What README.md calls proved is what was just checked.
sed -n 's/^|.*| `\([A-Za-z0-9]*\)\.v` | \(`[^|]*`\) | proved |$/\1 \2/p' "$here/README.md" |
    awk '{ gsub(/[`,]/, ""); for (i = 2; i <= NF; i++) print $1 "." $i }' | sort >claimed.txt
grep '^[A-Z]' "$here/axioms.txt" | sort | diff claimed.txt - ||
    fail "README.md and axioms.txt name different theorems (<: README, >: axioms.txt)"
# A page names theorems that are there, and every theorem has a page.
sed -n 's/^\*\*In Coq:\*\* `\([A-Za-z0-9]*\)\.v`: /\1 /p' "$here"/pages/*.md |
    awk '{ gsub(/[`,]/, ""); for (i = 2; i <= NF; i++) print $1 "." $i }' | sort -u >paged.txt
diff paged.txt claimed.txt || fail "the pages and axioms.txt name different theorems (<: proofs/pages, >: axioms.txt)"
# The numbers that the tests compare the judge with are those that Coq computes now.
for table in bridge counts; do
    awk -f "$here/tables.awk" -v which=$table $table.out >$table.csv
    cmp -s $table.csv "$here/$table.csv" ||
        fail "proofs/$table.csv is not what Coq computes (if that is meant: cp $out/$table.csv proofs/)"
done
echo "$(wc -l <claimed.txt) theorems checked; what they rest on: proofs/axioms.txt. $(($(cat bridge.csv counts.csv | wc -l) - 2)) points computed"
