"""The house rules that a program can check."""

import ast
import itertools
import re
from dataclasses import fields
from pathlib import Path
from typing import get_type_hints

import pytest

from dragoman.cli.command import build_parser
from dragoman.cli.model_verbs.train import TOPICS
from dragoman.cli.topics import ALL, format_topic
from dragoman.options import section_kinds
from dragoman.training.configuration import RunOptions

ROOT = Path(__file__).parent.parent
SOURCES = sorted((ROOT / "src" / "dragoman").rglob("*.py"))
MAX_FUNCTION_LINES = 50
MAX_FLAGS = 80
# What Python programs import; elsewhere types and one line say enough, unless there is a surprise.
PUBLIC = {
    "__init__.py",
    "decoding/constraints/constraints.py",
    "decoding/options.py",
    "decoding/output/alignments.py",
    "decoding/output/sequence_scores.py",
    "decoding/search/sampling.py",
    "decoding/translation.py",
    "decoding/translator.py",
    "evaluation/bleu.py",
    "evaluation/compare.py",
    "evaluation/evaluate.py",
    "folder.py",
    "insight/attention.py",
    "insight/explanation.py",
    "insight/rise.py",
    "models/interface.py",
    "training/run.py",
}


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT / "src" / "dragoman"))


def functions(tree: ast.AST):
    """Every function and method, with whether it is public."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


@pytest.mark.parametrize("path", SOURCES, ids=name_of)
def test_file_says_what_it_is_for(path):
    text = path.read_text(encoding="utf-8")
    assert ast.get_docstring(ast.parse(text))


@pytest.mark.parametrize("path", SOURCES, ids=name_of)
def test_functions_are_short(path):
    for node in functions(ast.parse(path.read_text(encoding="utf-8"))):
        body = node.body[1:] if ast.get_docstring(node) else node.body
        size = node.end_lineno - body[0].lineno + 1 if body else 0
        assert size <= MAX_FUNCTION_LINES, f"{path.name}:{node.lineno} {node.name} has {size} lines"


# What only other files of the same folder and the kernels call: arrays whose names say the rest.
COMPILED = ROOT / "src" / "dragoman" / "kernels" / "training" / "cpu"


@pytest.mark.parametrize(
    "path", [each for each in SOURCES if COMPILED not in each.parents], ids=name_of
)
def test_public_functions_are_documented_and_typed(path):
    tree = ast.parse(path.read_text(encoding="utf-8"))
    nested = {
        id(inner) for node in functions(tree) for inner in functions(node) if inner is not node
    }
    for node in functions(tree):
        protocol_stub = isinstance(node.body[-1], ast.Expr) and len(node.body) == 2
        if node.name.startswith("_") or id(node) in nested or protocol_stub:
            continue
        owner = next(
            (
                each
                for each in ast.walk(tree)
                if isinstance(each, ast.ClassDef) and node in each.body
            ),
            None,
        )
        if owner is not None and owner.name.startswith("_"):
            continue
        doc = ast.get_docstring(node) or ""
        place = f"{path.name}:{node.lineno} {node.name}"
        arguments = [each for each in node.args.args + node.args.kwonlyargs
                     if each.arg not in ("self", "cls")]  # fmt: skip
        assert doc, f"{place} has no docstring"
        assert node.returns is not None, f"{place} has no return type"
        if name_of(path) in PUBLIC:
            assert not arguments or "Parameters\n" in doc, f"{place} has no section Parameters"
        for each in arguments if "Parameters\n" in doc else ():
            is_there = re.search(rf"^(\w+, )*{each.arg}(, \w+)* :", doc, re.MULTILINE)
            assert is_there or f"*{each.arg} :" in doc, f"{place} does not document {each.arg}"


def test_no_star_imports_and_no_pickle():
    for path in SOURCES:
        text = path.read_text(encoding="utf-8")
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.ImportFrom):
                assert all(alias.name != "*" for alias in node.names), path
                assert node.level == 0, f"{path}: relative import"
            if isinstance(node, ast.Import | ast.ImportFrom):
                names = [alias.name for alias in node.names] + [getattr(node, "module", "") or ""]
                assert "pickle" not in names, path
        assert "torch.load(" not in text, path


CLIENT = re.compile(
    r"^\s*(from|import) +(aiohttp|ftplib|http\.client|http +import +client|httpx|imaplib|poplib|"
    r"huggingface_hub|requests|smtplib|urllib\.request|urllib +import +request|urllib3|xmlrpc|"
    r"websockets(?!\.(frames|protocol) ))\b",
    re.MULTILINE,
)


def test_only_downloads_import_what_opens_connections():
    found = [name_of(path) for path in SOURCES if CLIENT.search(path.read_text(encoding="utf-8"))]
    assert found == ["catalogue/download.py"]


# Modules without a test file of their own: the file that tests them, or why there is none.
TESTED_ELSEWHERE = {
    "test_verb_table.py": ["__main__.py"],
    "test_generator.py": [
        "data/builtin/lexicon/adjectives.py",
        "data/builtin/lexicon/weather.py",
        "data/builtin/lexicon/word_meanings.py", "data/builtin/sampling/choosing.py",
        "data/builtin/sampling/clauses.py", "data/builtin/sampling/frames.py",
        "data/builtin/sampling/noun_phrases.py", "data/builtin/sampling/sentence_templates.py",
    ],
    "test_english.py": ["data/builtin/languages/english_phrases.py"],
    "test_french.py": ["data/builtin/languages/french_phrases.py"],
    "test_spanish.py": ["data/builtin/languages/spanish_phrases.py"],
    "test_constrained_beam.py": [
        "decoding/constraints/term_automaton.py", "decoding/constraints/term_speller.py",
    ],
    "test_cpu_engine.py": [
        "decoding/engines/cpu/cpu_weights.py", "kernels/cpu_search/head_attention.py",
        "kernels/cpu_search/slot_search.py", "kernels/cpu_search/steps.py",
        "kernels/cpu_search/transformer_steps.py",
    ],
    "test_rebuilt_transformer.py": ["decoding/engines/cuda/rebuilt_state.py"],
    "test_beam.py": ["decoding/search/hypotheses.py"],
    "test_translator.py": [
        "decoding/search/batched_search.py", "decoding/segment.py", "decoding/translation.py",
    ],
    "test_evaluate.py": ["evaluation/evaluate.py"],
    "test_huggingface.py": ["exchange/huggingface_layout.py"],
    "test_marian.py": ["exchange/marian_files.py", "exchange/unsupported.py"],
    "test_attention.py": ["insight/maps.py"],
    "test_packed_attention.py": [
        "data/packed_mask.py", "kernels/training/attention_blocks.py",
        "kernels/training/attention_tiles.py", "kernels/training/cpu/products.py",
    ],
    "test_add_and_norm.py": [
        "kernels/training/cpu/add_and_norm.py", "kernels/training/cpu/norms.py",
    ],
    "test_token_embedding.py": ["kernels/training/cpu/token_embedding.py"],
    "test_families.py": [
        "models/recurrent/encoder_decoder.py", "models/recurrent/options.py", "models/state.py",
    ],
    "test_transformer.py": ["models/transformer_layers.py"],
    "test_experiment_runs.py": ["paper/training_runs/outcomes.py"],
    "test_markup.py": [
        "serving/markup/markup_elements.py", "serving/markup/markup_segments.py",
        "serving/markup/tag_rules.py",
    ],
    "test_server_state.py": [
        "serving/state/shared_counts.py", "serving/state/shared_glossaries.py",
    ],
    "test_deepl.py": ["serving/protocols/deepl/deepl_common.py"],
    "test_translate_forms.py": [
        "serving/protocols/deeplx.py", "serving/protocols/immersive.py",
        "serving/protocols/microsoft.py", "serving/protocols/plain_errors.py",
    ],
    "test_openapi.py": [
        "serving/protocols/openapi/openapi_glossaries.py",
        "serving/protocols/openapi/openapi_translate.py",
        "serving/protocols/openapi/openapi_deepl.py", "serving/protocols/openapi/openapi_parts.py",
    ],
    "test_manifests.py": ["catalogue/offers.py"],
    "test_pull.py": ["catalogue/installation.py"],
    "test_install.py": ["catalogue/bundle.py"],
    "test_run.py": [
        "training/assembly.py", "training/loop.py",
        "training/run_setup.py",
    ],
    "test_folder.py": ["weights.py"],
    "test_ctranslate2_import.py": [
        "exchange/ctranslate2_file.py", "exchange/ctranslate2_layout.py",
    ],
    "test_foreign_model.py": ["exchange/argos_import.py"],
    "types and constants alone": [
        "data/builtin/lexicon/entries.py", "data/builtin/meaning.py",
        "decoding/engines/search_engine.py", "errors.py", "kernels/cpu_search/model.py",
        "kernels/cpu_search/task.py", "models/attention/self_attention.py", "models/interface.py",
        "serving/documents/pdf/pdf_parts.py", "shapes.py", "training/options.py",
    ],
}  # fmt: skip


def test_every_module_has_its_test_file_or_a_reason():
    tests = {path.name for path in (ROOT / "tests").rglob("test_*.py")}
    mirrored = {
        str(path.relative_to(ROOT / "tests").with_name(path.name[5:]))
        for path in (ROOT / "tests").rglob("test_*.py")
    }
    excused = {module for modules in TESTED_ELSEWHERE.values() for module in modules}
    modules = {name_of(path) for path in SOURCES if path.name != "__init__.py"}
    assert sorted(modules - mirrored - excused) == []
    assert sorted(excused - modules) == []
    assert sorted(excused & mirrored) == []
    assert [each for each in TESTED_ELSEWHERE if each.endswith(".py") and each not in tests] == []


def test_tests_mirror_the_sources():
    known = {name_of(path) for path in SOURCES}
    for path in (ROOT / "tests").rglob("test_*.py"):
        relative = path.relative_to(ROOT / "tests")
        if relative.name in (
            "test_benchmarks.py",
            "test_conventions.py",
            "test_docs.py",
            "test_examples.py",
            "test_package.py",
        ):
            continue
        if relative.parts[0] == "benchmarks":
            assert (ROOT / relative.with_name(relative.name[5:])).exists(), relative
            continue
        # A view of the page, or a module of it, is tested in a browser.
        module = relative.name[5:-3].removesuffix("_view")
        static = "src/dragoman/serving/page/static"
        if relative.parent.name == "page" and (ROOT / static / f"{module}.js").exists():
            continue
        source = str(relative.with_name(relative.name[5:]))
        package = f"{source[:-3]}/__init__.py"
        assert source in known or package in known, f"{relative} tests nothing that is there"


def test_options_of_a_run_have_unique_names():
    hints = get_type_hints(RunOptions)
    sections = [section_kinds(hints[each.name]) for each in fields(RunOptions)]
    for chosen in itertools.product(*sections):
        names = [each.name for kind in chosen for each in fields(kind)]
        assert len(names) == len(set(names))


@pytest.mark.parametrize("kind", TOPICS.kinds)
def test_flags_of_train_are_few(kind):
    parser = build_parser("train").parse(["train", "--out", "x"]).parser
    parser.words = ["--family", kind().family]
    text = format_topic(parser, TOPICS, ALL)
    assert len(re.findall(r"^  --", text, re.MULTILINE)) <= MAX_FLAGS


def test_prose_uses_typographic_quotation_marks():
    for path in [*(ROOT / "docs").glob("*.md"), ROOT / "README.md", ROOT / "CONTRIBUTING.md"]:
        is_code = False
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
            if line.startswith("```"):
                is_code = not is_code
            prose = "".join(line.split("`")[::2])
            assert is_code or '"' not in prose, f"{path.name}:{number}"
