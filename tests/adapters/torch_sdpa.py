"""torch_sdpa.py: torch.nn.functional.scaled_dot_product_attention with one of its backends, on a GPU or a CPU.

    python3 torch_sdpa.py DIR --backend math|flash|efficient|cudnn [--device cuda|cpu]

Sequences of different lengths go one at a time: the function has no lengths. A causal mask is aligned to the end of the cache
(causal_lower_right). lse comes from the operator below the function, where that returns it for the same arguments."""
import argparse
import ctypes
import sys

import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.attention.bias import causal_lower_right

import fdcases

TYPES = {"F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16}
BACKENDS = {"math": SDPBackend.MATH, "flash": SDPBackend.FLASH_ATTENTION, "efficient": SDPBackend.EFFICIENT_ATTENTION,
            "cudnn": SDPBackend.CUDNN_ATTENTION}


def tensor(x, device):
    dtype, shape, data = x
    if not data:
        return torch.empty(shape, dtype=TYPES[dtype], device=device)
    return torch.frombuffer(bytearray(data), dtype=TYPES[dtype]).reshape(shape).to(device)


def packed(x, dtype):
    x = x.to("cpu", TYPES[dtype]).contiguous()
    return dtype, tuple(x.shape), ctypes.string_at(x.data_ptr(), x.numel() * x.element_size()) if x.numel() else b""


def attention(q, k, v, mask, scale):
    """Query heads share KV heads; for a backend that does not know that, each gets a copy of its own."""
    try:
        return F.scaled_dot_product_attention(q, k, v, attn_mask=mask, scale=scale, enable_gqa=True)
    except RuntimeError:
        if q.shape[1] == k.shape[1]:
            raise
        k, v = (x.repeat_interleave(q.shape[1] // k.shape[1], dim=1) for x in (k, v))
        return F.scaled_dot_product_attention(q, k, v, attn_mask=mask, scale=scale)


def lse_of(q, k, v, backend, scale):
    """[batch, heads, rows], natural; None where this backend keeps it to itself, or for these arguments."""
    group = q.shape[1] // k.shape[1]
    k, v = (x.repeat_interleave(group, dim=1) for x in (k, v))
    aten = torch.ops.aten
    try:
        if backend == "flash" and q.is_cuda:
            lse = aten._scaled_dot_product_flash_attention(q, k, v, 0.0, False, scale=scale)[1]
        elif backend == "flash":
            lse = aten._scaled_dot_product_flash_attention_for_cpu(q, k, v, 0.0, False, scale=scale)[1]
        elif backend == "efficient":
            lse = aten._scaled_dot_product_efficient_attention(q, k, v, None, True, scale=scale)[1]
        elif backend == "cudnn":
            lse = aten._scaled_dot_product_cudnn_attention(q, k, v, None, True, scale=scale)[1]
        else:
            return None
    except RuntimeError:
        return None
    return lse.reshape(q.shape[0], q.shape[1], -1)[:, :, : q.shape[2]]


def answer(case, backend, device):
    dtype = case.one_dtype()
    q, k, v = (tensor(case.tensors[x], device).transpose(1, 2) for x in "qkv")
    even = all(n == case.kv_len for n in case.kv_lens)
    parts = [(slice(None), case.kv_len)] if even else [(slice(b, b + 1), n) for b, n in enumerate(case.kv_lens)]
    outputs, sums = [], []
    for rows, keys in parts:
        q_b, k_b, v_b, mask = q[rows], k[rows, :, :keys], v[rows, :, :keys], None
        masked = case.window_right >= 0 and case.window_right < case.q_len - 1  # else every row sees the whole cache
        if masked and case.window_right == 0:
            mask = causal_lower_right(case.q_len, keys)
        elif masked and backend in ("flash", "cudnn"):
            raise fdcases.Refused("a mask that is not causal")
        elif masked:
            last = keys - case.q_len + torch.arange(case.q_len, device=device)[:, None] + case.window_right
            mask = torch.arange(keys, device=device)[None, :] <= last
        with sdpa_kernel([BACKENDS[backend]]):
            outputs.append(attention(q_b, k_b, v_b, mask, case.sm_scale))
        sums.append(None if mask is not None or keys == 0 else lse_of(q_b, k_b, v_b, backend, case.sm_scale))
    written = {"o": packed(torch.cat(outputs).transpose(1, 2), dtype)}
    if all(x is not None for x in sums):
        written["lse"] = packed(torch.cat(sums).transpose(1, 2).float(), "F32")
    return written


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder")
    parser.add_argument("--backend", choices=BACKENDS, required=True)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    o = parser.parse_args()
    name = torch.cuda.get_device_name() if o.device == "cuda" else "CPU"
    print(f"library: PyTorch {torch.__version__} on {name}, {o.backend}")
    with torch.no_grad():
        return fdcases.run(o.folder, lambda case: answer(case, o.backend, o.device))


if __name__ == "__main__":
    sys.exit(main())
