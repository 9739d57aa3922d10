"""numpy_guide.py: the algorithm of the guide in NumPy: chunks of 1024 keys, each normalised by its own sum, weighed by their
maxima and sums; 1e-8 is added to each of the two denominators. And the guide's own check: against one softmax over all keys in
the same precision, largest difference below 1e-4.

    python3 numpy_guide.py DIR [--epsilon X] [--checks FILE]

--epsilon: another number in place of 1e-8 (0: none). --checks: the guide's own check of each case, as CSV."""
import argparse
import sys

import numpy as np

import fdcases


def split_attention(q, k, v, scale, epsilon, chunk=1024):
    """q [heads, rows, d], k and v [heads, keys, ..] in float32."""
    outputs, maxima, sums = [], [], []
    for begin in range(0, k.shape[1], chunk):
        part = slice(begin, begin + chunk)
        scores = q @ k[:, part].swapaxes(1, 2) * scale
        m = scores.max(axis=-1, keepdims=True)
        p = np.exp(scores - m)
        l = p.sum(axis=-1, keepdims=True)
        outputs.append((p / (l + epsilon)) @ v[:, part])
        maxima.append(m)
        sums.append(l)
    m, l, o = np.stack(maxima), np.stack(sums), np.stack(outputs)  # an empty cache has nothing to stack: ValueError
    weight = np.exp(m - m.max(axis=0)) * l
    return (weight * o).sum(axis=0) / (weight.sum(axis=0) + epsilon)


def one_softmax(q, k, v, scale):
    scores = q @ k.swapaxes(1, 2) * scale
    p = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return (p / p.sum(axis=-1, keepdims=True)) @ v


def answer(case, epsilon, checks):
    if case.one_dtype() != "F32":
        raise fdcases.Refused("the guide's code was written for fp32")
    if case.window_right >= 0:
        raise fdcases.Refused("the guide's code has no mask")
    if case.sm_scale != np.float32(1 / np.sqrt(case.head_dim)):
        raise fdcases.Refused("the guide's code has no parameter for the scale")
    q, k, v = (fdcases.array(case.tensors[x]).swapaxes(1, 2) for x in "qkv")  # [batch, heads, rows or keys, ..]
    o = np.empty((case.batch, case.heads_q, case.q_len, case.head_dim_v), np.float32)
    group, worst = case.heads_q // case.heads_kv, 0.0
    for b, keys in enumerate(case.kv_lens):  # the code takes dense caches: one sequence at a time, as long as it is
        k_b, v_b = (np.repeat(x[b, :, :keys], group, axis=0) for x in (k, v))
        scale, eps = np.float32(case.sm_scale), np.float32(epsilon)
        o[b] = split_attention(q[b], k_b, v_b, scale, eps)
        worst = max(worst, float(np.abs(o[b] - one_softmax(q[b], k_b, v_b, scale)).max()))
    checks.append((case.name, worst))
    return {"o": fdcases.packed(o.swapaxes(1, 2))}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder")
    parser.add_argument("--epsilon", type=float, default=1e-8)
    parser.add_argument("--checks")
    o = parser.parse_args()
    checks = []
    print(f"library: numpy {np.__version__}, 1e-8 is {o.epsilon:g}")
    with np.errstate(all="ignore"):
        code = fdcases.run(o.folder, lambda case: answer(case, o.epsilon, checks))
    passed = sum(worst < 1e-4 for _, worst in checks)
    print(f"own check: largest difference below 1e-4: {passed} of {len(checks)} pass")
    if o.checks:
        with open(o.checks, "w") as file:
            file.write("case,max_diff,passes\n" + "".join(f'"{n}",{w!r},{int(w < 1e-4)}\n' for n, w in checks))
    return code


if __name__ == "__main__":
    sys.exit(main())
