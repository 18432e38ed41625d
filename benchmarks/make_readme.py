"""Make README.md and all-results.md of this folder from the results, the newest of each figure."""

import json
from pathlib import Path
from typing import NamedTuple

FOLDER = Path(__file__).parent

HEAD = """# Measurements

The figures that matter, each beside its rival in the same run on the same machine. Made by
`python benchmarks/make_readme.py` from the files in `results/`; nothing here is typed in by hand.
Each file there names its command, machine, commit and seeds; `all-results.md` lists all figures.
"""

ALL_HEAD = """# All results

Made by `python benchmarks/make_readme.py` from the files in `results/`, the newest of each figure;
[README.md](README.md) leads with those that matter.

| what | figure | value | date | machine |
|---|---|---|---|---|
"""


class Headline(NamedTuple):
    """One figure in words, and what to set beside it: a figure of the same run, or nothing."""

    words: str
    result: str
    figure: str
    unit: str
    rival: str = ""
    rival_figure: str = ""
    kind: str = "as fast"
    """How the two compare: “as fast” and “as much” by their ratio, “points” by their difference."""
    ratio: str = ""
    """A figure that is their ratio already: the median of rounds, one system after the other."""


_BASE, _STUDENT = "inference_speed-cpu-tatoeba-base", "inference_speed-cpu-tatoeba-student"
_CARD, _TRAINING = "inference_speed-cuda-newstest", "training_speed-cuda"
_QUARTER = "time_to_quality-cpu-tatoeba-en-de-full-15-minutes"

SECTIONS: dict[str, tuple[Headline, ...]] = {
    "Training on two cores of a CPU": (
        Headline("The recipe `small`, beside the fastest way of Hugging Face", "training_speed-cpu",
                 "cpu_small_tokens_per_second", "tokens/s", "Hugging Face in bfloat16",
                 "cpu_small_huggingface_bfloat16_tokens_per_second",
                 ratio="cpu_small_ratio_to_huggingface_bfloat16"),
        Headline("The same beside Marian NMT", "training_speed-cpu",
                 "cpu_small_tokens_per_second", "tokens/s", "Marian NMT",
                 "cpu_small_marian_tokens_per_second", ratio="cpu_small_ratio_to_marian"),
        Headline("Quality after 15 minutes, English–German Tatoeba", _QUARTER,
                 "tatoeba_full_15_minutes_bleu", "BLEU", "Hugging Face in bfloat16",
                 "tatoeba_full_15_minutes_huggingface_bfloat16_bleu", "points"),
        Headline("The same beside Marian NMT", _QUARTER, "tatoeba_full_15_minutes_bleu", "BLEU",
                 "Marian NMT", "tatoeba_full_15_minutes_marian_bleu", "points"),
        Headline("Quality after an hour, same corpus",
                 "time_to_quality-cpu-tatoeba-en-de-full-60-minutes",
                 "tatoeba_full_60_minutes_bleu", "BLEU"),
    ),
    "Translating on two cores of a CPU, beam 4": (
        Headline("Base model in eight bits, sentence by sentence", _BASE,
                 "cpu_single_beam4_dragoman_int8_tokens_per_second", "tokens/s",
                 "CTranslate2 in eight bits",
                 "cpu_single_beam4_ctranslate2_int8_tokens_per_second"),
        Headline("Base model in eight bits, many sentences", _BASE,
                 "cpu_bulk_beam4_dragoman_int8_tokens_per_second", "tokens/s",
                 "CTranslate2 in eight bits", "cpu_bulk_beam4_ctranslate2_int8_tokens_per_second"),
        Headline("Base model in float32, many sentences", _BASE,
                 "cpu_bulk_beam4_dragoman_float32_tokens_per_second", "tokens/s",
                 "CTranslate2 in float32", "cpu_bulk_beam4_ctranslate2_float32_tokens_per_second"),
        Headline("Quality of these translations in eight bits", _BASE,
                 "bleu_beam4_dragoman_int8", "BLEU", "CTranslate2 in eight bits",
                 "bleu_beam4_ctranslate2_int8", "points"),
        Headline("Memory at most, sentence by sentence", _BASE,
                 "cpu_single_beam4_dragoman_int8_peak_megabytes", "MB",
                 "CTranslate2 in eight bits", "cpu_single_beam4_ctranslate2_int8_peak_megabytes",
                 "as much"),
        Headline("Student with SSRU in eight bits, many sentences", _STUDENT,
                 "cpu_bulk_beam4_dragoman_int8_tokens_per_second", "tokens/s",
                 "CTranslate2 in eight bits", "cpu_bulk_beam4_ctranslate2_int8_tokens_per_second"),
        Headline("The same beside Marian NMT", _STUDENT,
                 "cpu_bulk_beam4_dragoman_int8_tokens_per_second", "tokens/s",
                 "Marian NMT, packed eight bits",
                 "cpu_bulk_beam4_marian_packed8avx512_tokens_per_second"),
        Headline("A file of a million lines, greedy", "million-lines",
                 "translate_file_lines_per_second", "lines/s"),
    ),
    "On one H200": (
        Headline("Training the base model of the paper", _TRAINING, "base_tokens_per_second",
                 "tokens/s", "Hugging Face, compiled",
                 "base_huggingface_compiled_tokens_per_second",
                 ratio="base_ratio_to_huggingface_compiled"),
        Headline("Training the big model", _TRAINING, "big_tokens_per_second", "tokens/s",
                 "Hugging Face, compiled", "big_huggingface_compiled_tokens_per_second",
                 ratio="big_ratio_to_huggingface_compiled"),
        Headline("Memory for training the base model", _TRAINING, "base_peak_gigabytes", "GB",
                 "Hugging Face, compiled", "base_huggingface_compiled_peak_gigabytes", "as much"),
        Headline("Translating many sentences in half precision, beam 4", _CARD,
                 "h200_bulk_beam4_tokens_per_second", "tokens/s", "Hugging Face",
                 "h200_bulk_beam4_huggingface_tokens_per_second"),
        Headline("Translating sentence by sentence", _CARD, "h200_single_beam4_tokens_per_second",
                 "tokens/s", "Hugging Face", "h200_single_beam4_huggingface_tokens_per_second"),
        Headline("Multi30k English–German, test 2016, sacreBLEU, mean of ten seeds", "multi30k",
                 "multi30k_en_de_test2016_sacrebleu_mean", "BLEU"),
    ),
    "Serving and exchange": (
        Headline("Requests of 64 clients at once, gathered into batches", "serving_load",
                 "clients_64_requests_per_second", "requests/s", "one after another",
                 "one_by_one_requests_per_second"),
        Headline("A refusal under overload (429), median", "serving_load",
                 "overload_429_p50_milliseconds", "ms"),
        Headline("Share of sentences that CTranslate2 translates to the same tokens from an export",
                 "exchange", "exchange_ctranslate2_identical_tokens_share", ""),
        Headline("Share of sentences that an imported model of Marian translates as Marian does, "
                 "greedily", "marian_import", "marian_import_post_norm_greedy_identical_share", ""),
    ),
}  # fmt: skip

Newest = dict[tuple[str, str], tuple[float, dict]]


def make_pages() -> dict[str, str]:
    """Collect the newest figure of each name.

    Returns
    -------
    dict[str, str]
        Markdown pages by the names of their files.
    """
    newest: Newest = {}
    for path in sorted((FOLDER / "results").glob("*.json")):
        result = json.loads(path.read_text(encoding="utf-8"))
        for key, value in result["figures"].items():
            newest[result["name"], key] = (value, result)
    rows = [
        f"| {name} | `{key}` | {_show(value)} | {result['date']} | {result['machine']} |"
        for (name, key), (value, result) in sorted(newest.items())
    ]
    parts = [HEAD, *(_write_section(name, each, newest) for name, each in SECTIONS.items())]
    return {"README.md": "\n".join(parts), "all-results.md": ALL_HEAD + "\n".join(rows) + "\n"}


def _write_section(name: str, headlines: tuple[Headline, ...], newest: Newest) -> str:
    """Write a table of figures in words, and on which machines they were measured."""
    rows, machines = [], []
    for each in headlines:
        value, result = newest[each.result, each.figure]
        cells = [each.words, f"{_show(value)} {each.unit}".strip(), "", ""]
        if each.rival:
            beside, same = newest[each.result, each.rival_figure]
            if same is not result:
                raise ValueError(f"{each.result}: {each.rival_figure} is of another run")
            said = f"{value - beside:+.1f} points"
            if each.kind != "points":
                ratio = newest[each.result, each.ratio][0] if each.ratio else value / beside
                said = f"{ratio:.2g} × {each.kind}"
            cells[2:] = [f"{_show(beside)} {each.unit}, {each.rival}", said]
        rows.append(f"| {' | '.join(cells)} | {result['date']} |")
        machine = result["machine"].split(", torch")[0]
        machines += [machine] if machine not in machines else []
    head = "| what | Dragoman | rival | compared | date |\n|---|---|---|---|---|"
    return f"## {name}\n\n{head}\n" + "\n".join(rows) + f"\n\nMachine: {'; '.join(machines)}.\n"


def _show(value: float) -> str:
    """Show four digits, and large numbers whole."""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


if __name__ == "__main__":
    for name, text in make_pages().items():
        (FOLDER / name).write_text(text, encoding="utf-8")
