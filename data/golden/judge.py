"""judge.py: is an attention function right on golden vectors? The same verdicts as judge.c, for Python; needs NumPy.

    python3 judge.py naive:attention *.safetensors
    python3 judge.py naive:wrong *.safetensors
    python3 judge.py -r 2 naive:attention *.safetensors    no key is rescaled more often than twice: a lower pass line

MODULE:FUNCTION is yours. It is called with arrays q [batch, q_len, heads_q, head_dim], k and v [batch, kv_len, heads_kv, ...]
in float32, kv_lens [batch], visible [batch, q_len] (a query row sees keys 0 .. visible - 1; whatever is behind is NaN) and
sm_scale, and returns o, or (o, lse)."""
import importlib
import json
import sys

import numpy as np

U, ETA, EXP_REL, EXP_ABS, LOG_REL = 2.0**-24, 2.0**-150, 2.0**-22, 2.0**-148, 2.0**-22
UP = 1 + 2.0**-20
STORED = {"F32": (0.0, 0.0), "F16": (2.0**-11, 2.0**-25), "BF16": (2.0**-8, 2.0**-134)}


def read(path):
    """Tensors and metadata of a safetensors file; 16-bit floats as float32."""
    with open(path, "rb") as file:
        header = json.loads(file.read(int.from_bytes(file.read(8), "little")))
        data = file.read()
    metadata, tensors = header.pop("__metadata__"), {}
    for name, entry in header.items():
        raw = data[slice(*entry["data_offsets"])]
        if entry["dtype"] == "BF16":
            array = (np.frombuffer(raw, "<u2").astype("<u4") << 16).view("<f4")
        else:
            array = np.frombuffer(raw, {"F64": "<f8", "F32": "<f4", "F16": "<f2", "I32": "<i4"}[entry["dtype"]])
            array = array.astype("<f4") if entry["dtype"] == "F16" else array
        tensors[name] = array.reshape(entry["shape"])
    return tensors, metadata


def bounds(n, r, head_dim, sm_scale, x):
    """Pass lines of o and of lse of a row over n keys, none rescaled more than r times (judge.c has the formulas' names)."""
    def grow(h):
        return np.expm1(h * np.log1p(U))
    h_n, h_d = r + n + 1, r + n - 2
    g_n, g_d, low, dot = grow(h_n), grow(h_d), np.exp(h_d * np.log1p(-U)), grow(head_dim + 1)
    most = (1 + g_n) / low
    under = 2 * (abs(sm_scale) * head_dim * ETA * (1 + dot) + ETA)
    excess = dot * x["a_max"] + under
    alpha, beta, gamma = dot * (1 + U), U * UP, 2 * under + U * excess + r * (ETA - np.log1p(-EXP_REL))
    z = (alpha * x["a_max"] + beta * x["gap_max"] + gamma) * UP
    omega = n * EXP_ABS * r * np.exp((r - 1) * np.log1p(EXP_REL))
    ln_l = (x["lse"] - x["s_max"]) + x["lse_lo"]
    lost = (omega + 4 * n * ETA) * np.exp(excess - ln_l) * (1 + g_d)
    least, largest = np.exp(-z) * low - lost, np.exp(z) * (1 + g_d) + lost
    if not least > 0:
        return np.full_like(x["o"], np.inf), np.inf
    o = np.abs(x["o"])
    total = (np.expm1(z) / z * (alpha * x["spread_a"] + beta * x["spread_gap"] + gamma * x["spread"])
             + np.exp(z) * (g_n * x["gauge"] + g_d * o))
    tiny = omega * (x["v_max"] + o) + 2 * ETA * (n + 2 * n * (1 + o) + 2 * n * x["v_max"] * most)
    e0 = max(np.log(largest), -np.log(least)) * UP + n * 2.0**-52
    e1 = e0 + LOG_REL * (ln_l + excess + e0)
    return (((1 + U) * total / least + U * o + most**2 * (tiny + 2 * ETA)) * UP, (e1 + U * (abs(x["lse"]) + e1)) * UP)


def judge(path, attention, rescales):
    """Values that are wrong, values judged, largest error over its bound, and whether lse was among them."""
    t, metadata = read(path)
    visible, u_o, tiny_o = t["exact.visible"], *STORED[metadata["golden.dtype_o"]]
    answer = attention(t["q"], t["k"], t["v"], t["kv_lens"], visible, float(t["sm_scale"]))
    o, lse = answer if isinstance(answer, tuple) else (answer, None)
    wrong, judged, ratio = 0, 0, 0.0
    for row in np.ndindex(*t["exact.lse"].shape):
        x = {name.split(".")[1]: array[row] for name, array in t.items() if name.startswith(("exact.", "moments."))
             and name != "exact.visible"}
        n = int(visible[row[:2]])
        line_o, line_lse = np.zeros_like(x["o"]), 0.0
        if n > 0:
            line_o, line_lse = bounds(n, min(n, rescales), t["q"].shape[-1], float(t["sm_scale"]), x)
            line_o = line_o + u_o * (np.abs(x["o"]) + line_o) + tiny_o
        got = np.asarray(o[row], np.float64)
        held = [(np.abs((got - x["o"]) - x["o_lo"]) + x["o_radius"], line_o)]
        if "known" in x:
            wrong += int(np.sum((held[0][0] <= line_o) & (got != x["known"])))
        if lse is not None:
            error = abs((float(lse[row]) - x["lse"]) - x["lse_lo"]) + x["lse_radius"] if n > 0 else (
                0.0 if lse[row] == -np.inf else np.inf)
            held.append((np.array([error]), np.array([line_lse])))
        for error, line in held:
            judged += error.size
            wrong += int(np.sum(~(error <= line)))  # NaN is wrong
            ratio = max(ratio, float(np.max(np.divide(error, line, out=np.where(error <= line, 0, np.inf), where=line > 0))))
    return wrong, judged, ratio, lse is not None


def main(arguments):
    rescales = np.inf
    if arguments[:1] == ["-r"]:
        rescales, arguments = float(arguments[1]), arguments[2:]
    if len(arguments) < 2 or ":" not in arguments[0]:
        print(__doc__, file=sys.stderr)
        return 2
    module, function = arguments[0].split(":")
    attention, failed = getattr(importlib.import_module(module), function), 0
    for path in arguments[1:]:
        wrong, judged, ratio, has_lse = judge(path, attention, rescales)
        failed += wrong > 0
        print(f"{'FAIL' if wrong else 'pass'} {path}: {wrong} of {judged} values wrong, largest error over bound "
              f"{ratio:.3g}{'' if has_lse else '; no lse'}")
    print(f"given: fp32, round to nearest; {'any merge tree' if rescales == np.inf else 'at most so many rescales of a key'}; "
          f"exp within 2 ulp, log within 2^-22\n{len(arguments) - 1 - failed} passed, {failed} failed")
    return failed > 0


if __name__ == "__main__":
    with np.errstate(all="ignore"):
        sys.exit(main(sys.argv[1:]))
