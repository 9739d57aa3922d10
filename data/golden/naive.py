"""naive.py: attention in float32 as a textbook has it, for judge.py; and the same with the maximum started at 0."""
import numpy as np


def attention(q, k, v, kv_lens, visible, sm_scale, start=-np.inf):
    batch, q_len, heads_q, _ = q.shape
    o = np.zeros((batch, q_len, heads_q, v.shape[-1]), np.float32)
    lse = np.full((batch, q_len, heads_q), -np.inf, np.float32)
    for b, t, h in np.ndindex(batch, q_len, heads_q):
        n, h_kv = visible[b, t], h // (heads_q // k.shape[2])
        if n == 0:
            continue
        logits = (k[b, :n, h_kv] @ q[b, t, h]) * np.float32(sm_scale)
        m = np.float32(max(logits.max(), start))
        p = np.exp(logits - m)
        o[b, t, h] = p @ v[b, :n, h_kv] / p.sum()
        lse[b, t, h] = m + np.log(p.sum())
    return o, lse


def wrong(*arguments):
    return attention(*arguments, start=0.0)
