"""golden_agree.py: the two readers of the golden vectors, data/golden/judge.c and judge.py, have the same pass lines.

    cc -shared -fPIC -Dstatic= -Dmain=judge_main data/golden/judge.c data/golden/naive.c -lm -o judge.so
    python3 golden_agree.py judge.so data/golden"""
import ctypes
import glob
import os
import sys

import numpy as np

library, folder = ctypes.CDLL(os.path.abspath(sys.argv[1])), sys.argv[2]
sys.path.insert(0, folder)
import judge  # noqa: E402

NAMES = ("lse lse_lo lse_radius s_max a_max gap_max o o_lo o_radius gauge spread spread_a spread_gap v_max").split()
library.bounds.restype = ctypes.c_double
rows, worst = 0, 0.0
for path in sorted(glob.glob(os.path.join(folder, "*.safetensors"))):
    t, _ = judge.read(path)
    for row in np.ndindex(*t["exact.lse"].shape):
        x = {name.split(".")[1]: np.ascontiguousarray(array[row]) for name, array in t.items() if "." in name
             and name not in ("exact.visible", "exact.known")}
        n, head_dim, scale = int(t["exact.visible"][row[:2]]), t["q"].shape[-1], float(t["sm_scale"])
        for rescales in (n, 1, 2) if n > 0 else ():
            line, lse = judge.bounds(n, min(n, rescales), head_dim, scale, x)
            pointers = (ctypes.c_void_p * len(NAMES))(*(x[name].ctypes.data for name in NAMES))
            other = np.empty_like(line)
            other_lse = library.bounds(ctypes.c_double(n), ctypes.c_double(min(n, rescales)), ctypes.c_double(head_dim),
                                       ctypes.c_double(scale), ctypes.c_int64(line.size), pointers,
                                       other.ctypes.data_as(ctypes.c_void_p))
            worst = max(worst, float(np.max(np.abs(line - other) / other)), abs(lse - other_lse) / other_lse)
            rows += 1
print(f"{rows} rows, the two lines differ by {worst:.2g} of themselves at most")
sys.exit(0 if rows > 0 and worst <= 1e-12 else 1)
