#!/bin/sh
# judge.sh TARGET [options of `flashdecode check`]: judges a plug-in or a folder of tensors in CI. Leaves judged.xml (JUnit) and
# judged.csv. With a file attention-baseline.csv beside, a former judged.csv, only what became worse fails.
# Exit code: that of check.
set -u
target=$1
shift
[ ! -f attention-baseline.csv ] || set -- --baseline attention-baseline.csv "$@"
flashdecode check "$target" --csv judged.csv --junit judged.xml "$@"
code=$?
case $code in
0) echo "CI: good; to keep this as what later runs are held against: cp judged.csv attention-baseline.csv" ;;
1) echo "CI: a verdict against $target, above and in judged.xml; each failure names the command that shows it alone" ;;
77) echo "CI: nothing could run here, so nothing was judged: a GPU plug-in on a machine without a GPU?" ;;
*) echo "CI: nothing was judged; the line above says what to change" ;;
esac
exit $code
