"""Rewrites every case of a folder with the Python package safetensors, an answer added: what `flashdecode cases` wrote is
read by that package, and what the package wrote is read, and its inputs compared bit for bit, by `flashdecode check`.

    python safetensors_roundtrip.py DIR
"""
import glob
import json
import struct
import sys

import numpy as np
from safetensors import deserialize, safe_open
from safetensors.numpy import save_file

TYPES = {"F32": np.float32, "F16": np.float16, "I32": np.int32}


def numbers(tensor):
    raw, shape = bytes(tensor["data"]), tensor["shape"]
    if tensor["dtype"] == "BF16":
        return (np.frombuffer(raw, np.uint16).astype(np.uint32) << 16).view(np.float32).reshape(shape)
    return np.frombuffer(raw, TYPES[tensor["dtype"]]).reshape(shape)


def attention(t, window_right):
    q, k, v = (numbers(t[name]).astype(np.float64) for name in "qkv")
    batch, q_len, heads_q, _ = q.shape
    group = heads_q // k.shape[2]
    o, lse = np.zeros((batch, q_len, heads_q, v.shape[3])), np.full((batch, q_len, heads_q), -np.inf)
    for b, kv_len in enumerate(numbers(t["kv_lens"])):
        for row in range(q_len):
            end = kv_len if window_right < 0 else max(0, min(kv_len, kv_len - q_len + row + 1 + window_right))
            for h in range(heads_q if end > 0 else 0):
                s = float(numbers(t["sm_scale"])) * (k[b, :end, h // group] @ q[b, row, h])
                p = np.exp(s - s.max())
                o[b, row, h] = p @ v[b, :end, h // group] / p.sum()
                lse[b, row, h] = s.max() + np.log(p.sum())
    return o.astype(np.float32), lse.astype(np.float32)


def by_hand(raw):
    """The file without the package: what a tensor's bytes must be."""
    length = struct.unpack("<Q", raw[:8])[0]
    header = json.loads(raw[8:8 + length])
    assert length % 8 == 0
    return {name: raw[8 + length + x["data_offsets"][0]:8 + length + x["data_offsets"][1]]
            for name, x in header.items() if name != "__metadata__"}


def main(folder):
    paths = sorted(glob.glob(folder + "/[0-9]*.safetensors"))
    for path in paths:
        raw = open(path, "rb").read()
        tensors = dict(deserialize(raw))
        with safe_open(path, "np") as f:
            metadata = f.metadata()
        expected = by_hand(raw)
        assert {name: bytes(x["data"]) for name, x in tensors.items()} == expected, path
        o, lse = attention(tensors, int(metadata["window_right"]))
        if any(x["dtype"] == "BF16" for x in tensors.values()):  # numpy cannot write it: the answer beside the inputs
            save_file({"o": o, "lse": lse}, path.replace(".safetensors", ".out.safetensors"))
        else:
            save_file({name: numbers(x) for name, x in tensors.items()} | {"o": o, "lse": lse}, path, metadata)
    print("%d files read and rewritten by the package safetensors" % len(paths))
    assert paths


main(sys.argv[1])
