"""One system translating one file: what `inference_speed.py` starts, in a process of its own.

    python benchmarks/inference_systems.py SYSTEM FOLDER LINES --mode single|bulk --beam 4 [--out …]

Text goes in and text comes out, so every system cuts into subwords and joins them itself. Loading
and the first sentences, in which caches are filled, do not count; on a GPU, where more is set up
for every shape, all is translated once before it counts. Prints one line of JSON.
"""

import argparse
import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from record import status_bytes

NUM_WARM_UPS = 3


class Translated(NamedTuple):
    """A translation, and the subwords that were written for it, the end symbol included."""

    text: str
    num_tokens: int


System = Callable[[list[str]], list[Translated]]
"""A loaded system translates some lines together."""


class Setting(NamedTuple):
    """What a system may choose for itself."""

    beam_size: int
    threads: int
    batch: int
    device: str
    extra: int


def load_dragoman(folder: Path, setting: Setting, precision: str) -> System:
    """Load our own engine.

    Parameters
    ----------
    folder : Path
        A model folder.
    setting : Setting
        Beam, threads; batches are its own affair.
    precision : str
        Of the products.

    Returns
    -------
    System
        Ready to translate.
    """
    from dragoman.decoding.constraints.constraints import Constraints
    from dragoman.decoding.translator import Translator

    translator = Translator.load(folder, setting.device, precision=precision)
    said = {"beam_size": setting.beam_size, "max_extra_tokens": setting.extra}
    options = translator.options_with(said)

    def translate(lines: list[str]) -> list[Translated]:
        found = translator.translate_all(
            lines, options=options, constraints=Constraints(is_scored=False)
        )
        return [Translated(each.text, len(each.tokens)) for each in found]

    return translate


def load_ctranslate2(folder: Path, setting: Setting, compute_type: str) -> System:
    """Load CTranslate2 with an exported model and its SentencePiece models.

    Parameters
    ----------
    folder : Path
        What “dragoman export --to ctranslate2” wrote.
    setting : Setting
        Beam, threads, sentences a batch; a negative number of these lets every thread translate
        batches of its own.
    compute_type : str
        Of the products.

    Returns
    -------
    System
        Ready to translate.
    """
    import ctranslate2
    import sentencepiece

    source, target = (
        sentencepiece.SentencePieceProcessor(model_file=str(folder / f"{side}.spm"))
        for side in ("source", "target")
    )
    is_split = setting.batch < 0
    translator = ctranslate2.Translator(
        str(folder), device=setting.device, compute_type=compute_type,
        inter_threads=setting.threads if is_split else 1,
        intra_threads=1 if is_split else setting.threads,
    )  # fmt: skip

    def translate(lines: list[str]) -> list[Translated]:
        pieces = source.encode(lines, out_type=str)
        longest = max(map(len, pieces)) + 1 + setting.extra
        found = translator.translate_batch(
            pieces, beam_size=setting.beam_size, length_penalty=0.6 if setting.beam_size > 1 else 0,
            max_batch_size=abs(setting.batch), max_decoding_length=longest, disable_unk=True,
        )  # fmt: skip
        best = [each.hypotheses[0] for each in found]
        texts = target.decode(best)
        return [Translated(text, len(each) + 1) for text, each in zip(texts, best, strict=True)]

    return translate


def load_huggingface(folder: Path, setting: Setting) -> System:
    """Load Hugging Face's Marian with an exported model.

    Parameters
    ----------
    folder : Path
        What “dragoman export --to huggingface” wrote.
    setting : Setting
        Beam, threads, sentences a batch.

    Returns
    -------
    System
        Ready to translate.
    """
    import torch
    import transformers

    from marian import use_steady_attention

    use_steady_attention()
    transformers.logging.set_verbosity_error()
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    dtype = torch.float16 if setting.device == "cuda" else torch.float32
    model = transformers.AutoModelForSeq2SeqLM.from_pretrained(folder, dtype=dtype)
    model.eval().to(setting.device)

    pad_id = model.config.pad_token_id

    def translate(lines: list[str]) -> list[Translated]:
        order = sorted(range(len(lines)), key=lambda place: len(lines[place]))
        found = [Translated("", 0)] * len(lines)
        for start in range(0, len(order), setting.batch):
            chosen = order[start : start + setting.batch]
            batch = tokenizer([lines[each] for each in chosen], return_tensors="pt", padding=True)
            batch = batch.to(setting.device)
            with torch.inference_mode():
                ids = model.generate(
                    **batch, num_beams=setting.beam_size, do_sample=False,
                    max_new_tokens=batch["input_ids"].shape[1] + setting.extra,
                )  # fmt: skip
            texts = tokenizer.batch_decode(ids, skip_special_tokens=True)
            counts = (ids[:, 1:] != pad_id).sum(1).tolist()
            for place, text, num_tokens in zip(chosen, texts, counts, strict=True):
                found[place] = Translated(text, num_tokens)
        return found

    return translate


def load_marian(folder: Path, setting: Setting, gemm: str) -> System:
    """Load Marian NMT itself, in this process.

    Parameters
    ----------
    folder : Path
        What “dragoman export --to marian” wrote, “model.bin” beside it if weights are packed.
    setting : Setting
        Beam, threads, sentences a batch.
    gemm : str
        Marian's name for its products.

    Returns
    -------
    System
        Ready to translate.
    """
    import sys

    import sentencepiece

    sys.path.append(os.environ["PYMARIAN"])
    from pymarian import Translator

    vocabularies = [str(folder / f"{side}.spm") for side in ("source", "target")]
    target = sentencepiece.SentencePieceProcessor(model_file=vocabularies[1])
    packed = {} if gemm == "float32" else {"gemm_type": gemm, "optimize": True}
    marian = Translator(
        models=str(folder / ("model.bin" if packed else "model.npz")), vocabs=vocabularies,
        beam_size=setting.beam_size, normalize=0.6 if setting.beam_size > 1 else 0,
        cpu_threads=setting.threads, mini_batch=setting.batch,
        maxi_batch=100 if setting.batch > 1 else 1, maxi_batch_sort="src", quiet=True,
        **packed,
    )  # fmt: skip

    def translate(lines: list[str]) -> list[Translated]:
        texts = marian.translate(lines)
        return [Translated(each, len(target.encode(each)) + 1) for each in texts]

    return translate


LOADERS: dict[str, Callable[[Path, Setting], System]] = {
    "dragoman_int8": lambda folder, setting: load_dragoman(folder, setting, "int8"),
    "dragoman_float32": lambda folder, setting: load_dragoman(folder, setting, "float32"),
    "dragoman_float16": lambda folder, setting: load_dragoman(folder, setting, "float16"),
    "ctranslate2_int8": lambda folder, setting: load_ctranslate2(folder, setting, "int8"),
    "ctranslate2_float32": lambda folder, setting: load_ctranslate2(folder, setting, "float32"),
    "huggingface": load_huggingface,
    "marian_packed8avx2": lambda folder, setting: load_marian(folder, setting, "packed8avx2"),
    "marian_packed8avx512": lambda folder, setting: load_marian(folder, setting, "packed8avx512"),
    "marian_float32": lambda folder, setting: load_marian(folder, setting, "float32"),
}


def main() -> None:
    """Translate, and print what it took."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("system", choices=LOADERS)
    parser.add_argument("folder", type=Path)
    parser.add_argument("lines", type=Path)
    parser.add_argument("--mode", choices=("single", "bulk"), default="bulk")
    parser.add_argument("--beam", type=int, default=4)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--extra", type=int, default=50, help="subwords over the source's")
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    lines = given.lines.read_text(encoding="utf-8").splitlines()
    setting = Setting(given.beam, given.threads, given.batch, given.device, given.extra)
    os.environ["OMP_NUM_THREADS"] = str(given.threads)  # before any library is imported
    started = time.perf_counter()
    system = LOADERS[given.system](given.folder, setting)
    loaded = time.perf_counter() - started
    groups = [[line] for line in lines] if given.mode == "single" else [lines]
    for group in groups if given.device == "cuda" else [lines[:NUM_WARM_UPS]]:
        system(group)
    seconds, translated = [], []
    for group in groups:
        started = time.perf_counter()
        translated += system(group)
        seconds.append(time.perf_counter() - started)
    if given.out:
        text = "".join(each.text + "\n" for each in translated)
        given.out.write_text(text, encoding="utf-8")
    found = {
        "seconds": seconds,
        "tokens": sum(each.num_tokens for each in translated),
        "sentences": len(translated),
        "peak_bytes": _peak_bytes(given.device),
        "load_seconds": loaded,
    }
    print(json.dumps(found))


def _peak_bytes(device: str) -> int:
    """Find the most memory that was taken, on the card if that is where the work was done."""
    if device == "cuda":
        import torch

        return torch.cuda.max_memory_reserved()
    return status_bytes("VmHWM")  # getrusage begins with what the parent had


if __name__ == "__main__":
    main()
