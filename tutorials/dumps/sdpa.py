"""sdpa.py DIR: attention in NumPy, on the cases that `flashdecode cases DIR` wrote. Yours goes in the place of attention()."""
import glob
import sys

import numpy as np
from safetensors.numpy import load_file, save_file


def attention(q, k, v, sm_scale):
    """One query row on the keys that it sees, at least one. q [d], k [keys, d], v [keys, d_v]: o [d_v] and the natural lse."""
    s = sm_scale * (k @ q)
    m = s.max()
    p = np.exp(s - m)
    return p @ v / p.sum(), m + np.log(p.sum())


for path in sorted(glob.glob(sys.argv[1] + "/[0-9]*.safetensors")):
    if path.endswith(".out.safetensors"):  # answers of an earlier run
        continue
    t = load_file(path)
    q, k, v = (t[name].astype(np.float32) for name in "qkv")
    batch, rows, heads = q.shape[:3]
    o = np.zeros((batch, rows, heads, v.shape[3]), np.float32)  # of a row that sees no key: 0 and -infinity
    lse = np.full((batch, rows, heads), -np.inf, np.float32)
    for b, row, h in np.ndindex(batch, rows, heads):
        keys = int(t["kv_lens"][b])  # behind them k and v hold NaN
        if t["window_right"] >= 0:
            keys = min(keys, max(0, keys - rows + row + 1 + int(t["window_right"])))
        if keys > 0:
            kv = h * k.shape[2] // heads
            o[b, row, h], lse[b, row, h] = attention(q[b, row, h], k[b, :keys, kv], v[b, :keys, kv], t["sm_scale"])
    out = {"o": np.ascontiguousarray(o), "lse": np.ascontiguousarray(lse)}  # save_file writes the memory as it lies
    save_file(out, path.replace(".safetensors", ".out.safetensors"))
