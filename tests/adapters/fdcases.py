"""fdcases.py: what the adapters share: the files of `flashdecode cases DIR`, without any library.

A tensor is a triple (dtype, shape, bytes), as safetensors keeps it: "F32", "F16" or "BF16" and row-major little-endian bytes.
An adapter turns case.tensors into arrays of its own library and hands the answer to run(), which writes it beside the case."""
import csv
import json
import os
import struct
import sys


class Refused(Exception):
    """The implementation does not take this case; str() says why. No verdict."""


def read(path):
    """Tensors and metadata of a safetensors file."""
    with open(path, "rb") as file:
        header = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
        data = file.read()
    metadata = header.pop("__metadata__", {})
    return {name: (x["dtype"], x["shape"], data[slice(*x["data_offsets"])]) for name, x in header.items()}, metadata


def write(path, tensors):
    """Writes tensors, whole or not at all."""
    header, begin = {}, 0
    for name, (dtype, shape, data) in tensors.items():
        header[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [begin, begin + len(data)]}
        begin += len(data)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path + ".tmp", "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + b"".join(data for _, _, data in tensors.values()))
    os.replace(path + ".tmp", path)


class Case:
    """One problem. q [batch, q_len, heads_q, head_dim]; k, v [batch, kv_len, heads_kv, ..], NaN where kv_lens ends."""

    def __init__(self, row, path):
        self.name, self.family = row["case"], row["family"]
        self.tensors, metadata = read(path)
        self.dtype_q, self.dtype_kv, self.dtype_o = ({"f": "F32", "h": "F16", "b": "BF16"}[x] for x in row["dtypes"])
        self.batch, self.q_len, self.heads_q, self.head_dim = self.tensors["q"][1]
        self.kv_len, self.heads_kv = self.tensors["k"][1][1:3]
        self.head_dim_v = self.tensors["v"][1][3]
        self.kv_lens = list(struct.unpack(f"<{self.batch}i", self.tensors["kv_lens"][2]))
        self.sm_scale = struct.unpack("<f", self.tensors["sm_scale"][2])[0]
        self.window_right = int(metadata.get("window_right", "-1"))  # -1: no mask; 0: causal, aligned to the end

    def one_dtype(self):
        """The type of everything; Refused if there are several."""
        if not self.dtype_q == self.dtype_kv == self.dtype_o:
            raise Refused("q, k, v and o of different types")
        return self.dtype_q


def run(folder, answer):
    """answer(case) returns {"o": tensor} and perhaps "lse", or raises. Returns the exit code: 77 if nothing was answered."""
    with open(os.path.join(folder, "index.csv"), newline="") as file:
        rows = list(csv.DictReader(line for line in file if not line.startswith("#")))
    answered, refusals = 0, {}
    for row in rows:
        path = os.path.join(folder, row["file"])
        out = path[: -len(".safetensors")] + ".out.safetensors"
        if os.path.exists(out):
            os.remove(out)
        try:
            write(out, answer(Case(row, path)))
            answered += 1
        except (MemoryError, KeyboardInterrupt):
            raise
        except Exception as reason:  # a library's refusals have any type
            first = (str(reason).strip() or type(reason).__name__).splitlines()[0][:240]
            first = first if isinstance(reason, Refused) else f"{type(reason).__name__}: {first}"
            refusals.setdefault(first, []).append(row["case"])
    print(f"{answered} of {len(rows)} cases answered")
    for reason, cases in sorted(refusals.items(), key=lambda x: -len(x[1])):
        print(f"   {len(cases)} refused, as {cases[0]}: {reason}")
    return 0 if answered else 77


def main(answer):
    """For an adapter that takes a folder and nothing else."""
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        sys.exit(f"usage: {sys.argv[0]} DIR   (written by `flashdecode cases DIR`)")
    sys.exit(run(sys.argv[1], answer))


# ---- For the adapters that use NumPy ----

NUMPY = {"F32": "<f4", "F16": "<f2", "BF16": "<u2", "I32": "<i4"}


def array(tensor):
    """As a NumPy array; BF16 as float32, which holds it exactly."""
    import numpy as np

    dtype, shape, data = tensor
    x = np.frombuffer(data, NUMPY[dtype]).reshape(shape)
    return (x.astype("<u4") << 16).view("<f4") if dtype == "BF16" else x


def packed(x, dtype="F32"):
    """A NumPy array as a tensor of F32 or F16."""
    import numpy as np

    x = np.ascontiguousarray(x, NUMPY[dtype])
    return dtype, x.shape, x.tobytes()
