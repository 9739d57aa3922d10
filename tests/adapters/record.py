"""record.py: a check of an adapter as it is kept under data/measured: the machine record and the library, what it refused
and why, and a line a verdict. It serves as --baseline.

    python3 record.py CHECK.csv ADAPTER.txt > RECORD.csv"""
import csv
import sys

COLUMNS = ("implementation where group case verdict tier err_max err_p50 ratio lse_err lse_ratio vacuous undecided "
           "reason").split()

with open(sys.argv[1], newline="") as file:
    lines = file.readlines()
with open(sys.argv[2]) as file:
    said = [line.strip() for line in file]
comments = [line for line in lines if line.startswith("#")]
sys.stdout.write("".join(line for line in comments if not line.startswith(("# flags", "# compiler", "# command"))))
for line in said:
    if line.startswith("library: ") or line.startswith("own check: "):
        print(f"# {line}")
    elif " refused, as " in line:
        count, reason = line.split(" refused, as ")
        print(f"# refused: {count}, {reason.split(': ', 1)[1]}")
out = csv.DictWriter(sys.stdout, COLUMNS, extrasaction="ignore", lineterminator="\n")
out.writeheader()
rows = csv.DictReader(line for line in lines if not line.startswith("#"))
out.writerows(row for row in rows if not row["reason"].startswith("no o"))  # those are above, by reason
