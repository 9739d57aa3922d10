"""onnxruntime_gqa.py: ONNX Runtime's contrib operator GroupQueryAttention on the CPU, as a decoder calls it: the last q_len
keys of each sequence are the new tokens, the others the past. The operator's mask is causal and aligned to the end of the
cache; it has no answer for an empty cache, no lse, and one head_dim.

    python3 onnxruntime_gqa.py DIR"""
import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper

import fdcases

TYPES = {"F32": (TensorProto.FLOAT, np.float32), "F16": (TensorProto.FLOAT16, np.float16)}
sessions = {}


def session(heads_q, heads_kv, dtype, scale):
    """A model of the one operator; its sizes are those of what it is fed."""
    key = (heads_q, heads_kv, dtype, scale)
    if key not in sessions:
        names = ["query", "key", "value", "past_key", "past_value"]
        of_type = [helper.make_tensor_value_info(x, TYPES[dtype][0], None) for x in names]
        integers = [helper.make_tensor_value_info(x, TensorProto.INT32, None)
                    for x in ("seqlens_k", "total_sequence_length")]
        outputs = [helper.make_tensor_value_info(x, TYPES[dtype][0], None)
                   for x in ("output", "present_key", "present_value")]
        node = helper.make_node("GroupQueryAttention", names + ["seqlens_k", "total_sequence_length"],
                                ["output", "present_key", "present_value"], domain="com.microsoft",
                                num_heads=heads_q, kv_num_heads=heads_kv, scale=scale)
        graph = helper.make_graph([node], "decode", of_type + integers, outputs)
        model = helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 17),
                                                                      helper.make_opsetid("com.microsoft", 1)])
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 4  # its refusals come as exceptions, too
        sessions[key] = onnxruntime.InferenceSession(model.SerializeToString(), options,
                                                     providers=["CPUExecutionProvider"])
    return sessions[key]


def answer(case):
    dtype = case.one_dtype()
    if dtype not in TYPES:
        raise fdcases.Refused("the CPU operator has no bf16")
    if case.head_dim != case.head_dim_v:
        raise fdcases.Refused("head_dim_v is not head_dim")
    if case.head_dim % 8 != 0:
        raise fdcases.Refused("head_dim is no multiple of 8, as the operator wants it")
    if case.q_len > 1 and case.window_right != 0:
        raise fdcases.Refused("several query rows that all see the whole cache, or beyond themselves")
    if min(case.kv_lens) < case.q_len:
        raise fdcases.Refused("a sequence shorter than its new tokens, or empty")
    if case.q_len > 1 and case.batch > 1:
        raise fdcases.Refused("several new tokens for each of several sequences")
    q, k, v = (fdcases.array(case.tensors[x]) for x in "qkv")
    # The new tokens of sequence b are its last q_len keys. The past keeps its room, NaN behind each sequence.
    k_new, v_new = (np.stack([x[b, n - case.q_len : n] for b, n in enumerate(case.kv_lens)]) for x in (k, v))
    k_past, v_past = (np.ascontiguousarray(x[:, : case.kv_len - case.q_len].swapaxes(1, 2)) for x in (k, v))
    flat = [x.reshape(case.batch, case.q_len, -1) for x in (q, k_new, v_new)]
    lens = np.array(case.kv_lens, np.int32)
    feed = dict(zip(("query", "key", "value"), flat), past_key=k_past, past_value=v_past, seqlens_k=lens - 1,
                total_sequence_length=np.array([case.kv_len], np.int32))
    o = session(case.heads_q, case.heads_kv, dtype, case.sm_scale).run(["output"], feed)[0]
    return {"o": fdcases.packed(o.reshape(case.batch, case.q_len, case.heads_q, case.head_dim_v), dtype)}


if __name__ == "__main__":
    print(f"library: onnxruntime {onnxruntime.__version__}, CPUExecutionProvider")
    fdcases.main(answer)
