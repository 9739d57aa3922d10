#!/usr/bin/env python3
"""Writes the seeds of the fuzzer into tests/fuzz/corpus: a file of each layout, and one of each way to be wrong.

Run it after a change of the names in tests/dump_names.c. Needs nothing but Python."""
import json
import pathlib
import struct

BYTES = {"F32": 4, "BF16": 2, "F16": 2, "I32": 4, "I64": 8, "F64": 8}


def tensor(dtype, shape, values=None):
    count = 1
    for extent in shape:
        count *= extent
    if values is None:
        return dtype, shape, bytes(count * BYTES[dtype])
    return dtype, shape, struct.pack("<%d%s" % (count, {"I32": "i", "I64": "q", "F32": "f", "F64": "d"}[dtype]), *values)


def file_of(tensors, metadata=None, edit=lambda header: None):
    header, data = {}, b""
    if metadata:
        header["__metadata__"] = metadata
    for name, (dtype, shape, raw) in sorted(tensors.items(), key=lambda t: -BYTES[t[1][0]]):
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    edit(header)
    text = json.dumps(header, separators=(",", ":")).encode()
    return struct.pack("<Q", len(text)) + text + data


def change(name, key, value):
    def edit(header):
        header[name][key] = value
    return edit


dense = {
    "q": tensor("F32", [2, 1, 2, 2]), "k": tensor("F32", [2, 3, 1, 2]), "v": tensor("F32", [2, 3, 1, 2]),
    "o": tensor("F32", [2, 1, 2, 2]), "lse": tensor("F32", [2, 1, 2]), "window_right": tensor("I32", [], [0]),
    "kv_lens": tensor("I32", [2], [3, 1]),
}
heads_first = {
    "q": tensor("BF16", [1, 2, 3, 2]), "k": tensor("BF16", [1, 1, 4, 2]), "v": tensor("BF16", [1, 1, 4, 1]),
    "o": tensor("BF16", [1, 2, 3, 1]), "lse": tensor("F32", [1, 2, 3]), "sm_scale": tensor("F64", [], [0.5]),
}
packed = {
    "q": tensor("F16", [3, 2, 2]), "k": tensor("F16", [5, 1, 2]), "v": tensor("F16", [5, 1, 2]),
    "o": tensor("F16", [3, 2, 2]), "softmax_lse": tensor("F32", [2, 3]),
    "cu_seqlens_q": tensor("I32", [3], [0, 2, 3]), "cu_seqlens_k": tensor("I64", [3], [0, 1, 5]),
}
paged = {
    "q": tensor("F32", [2, 2, 2]), "k_cache": tensor("F32", [3, 2, 1, 2]), "v_cache": tensor("F32", [3, 2, 1, 2]),
    "out": tensor("F32", [2, 2, 2]), "block_table": tensor("I32", [2, 2], [2, 0, 1, -1]),
    "cache_seqlens": tensor("I32", [2], [4, 1]),
}

seeds = {
    "dense": file_of(dense, {"sm_scale": "0.125", "causal": "true"}),
    "heads_first": file_of(heads_first, {"layout": "BHSD", "window_right": "1"}),
    "packed": file_of(packed, {"lse_layout": "HS"}),
    "paged": file_of(paged, {"kv_layout": "NHD", "split_size": "2"}),
    "claims": file_of(dense, {"order": "split:64,lse,tree", "weights": "bf16x2", "accumulate": "tensor-core"}),
    "empty": file_of({}),
    "no_o": file_of({name: dense[name] for name in ("q", "k", "v")}),
    "cut_off": file_of(dense)[:-5],
    "lying_length": struct.pack("<Q", 1 << 40) + file_of(dense)[8:],
    "overlap": file_of(dense, None, change("k", "data_offsets", [0, 48])),
    "backwards": file_of(dense, None, change("k", "data_offsets", [48, 0])),
    "beyond": file_of(dense, None, change("k", "data_offsets", [1 << 62, (1 << 62) + 48])),
    "huge_shape": file_of(dense, None, change("k", "shape", [1 << 31, 1 << 31, 1, 2])),
    "no_rows": file_of(dense, None, change("k", "shape", [1 << 40, 0, 1 << 40, 2])),
    "twice": file_of(dense).replace(b'"v"', b'"k"'),
    "page_beyond": file_of(dict(paged, block_table=tensor("I32", [2, 2], [3, 0, 1, -1]))),
    "length_beyond": file_of(dict(dense, kv_lens=tensor("I32", [2], [4, -1]))),
    "falling_starts": file_of(dict(packed, cu_seqlens_q=tensor("I32", [3], [0, 3, 2]))),
    "not_finite": file_of(dense, {"sm_scale": "inf"}),
    "deep": struct.pack("<Q", 200) + b'{"q":' + b"[" * 195,
}
folder = pathlib.Path(__file__).parent / "corpus"
folder.mkdir(exist_ok=True)
for name, raw in seeds.items():
    (folder / name).write_bytes(raw)
