import json
import subprocess
import sys

import pytest
from tests.serving.documents.pdf.pdf_files import draw

from dragoman.serving.documents.pdf import pdf_process

resource = pytest.importorskip("resource")


def run(command, content=b""):
    done = subprocess.run(
        [sys.executable, *command], input=content, capture_output=True, check=True
    )
    return json.loads(done.stdout)


def test_a_file_goes_in_and_its_parts_come_out():
    answer = run(["-m", pdf_process.__name__], draw((50, 700, "Hello")))
    assert [each["text"] for each in answer["parts"]] == ["Hello"]
    assert run(["-m", pdf_process.__name__], b"no PDF") == {
        "refusal": "the file is damaged, or no PDF"
    }


BOUNDED = f"""
import json, resource
from {pdf_process.__name__} import _bound_resources
_bound_resources()
names = ("RLIMIT_AS", "RLIMIT_FSIZE", "RLIMIT_CORE")
print(json.dumps([resource.getrlimit(getattr(resource, name))[0] for name in names]))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not bound all of them")
def test_memory_is_bounded_and_no_file_can_be_written():
    assert run(["-c", BOUNDED]) == [pdf_process.MOST_MEMORY, 0, 0]


SHORT_OF_MEMORY = f"""
from {pdf_process.__name__} import main
from {pdf_process.__name__.rpartition(".")[0]} import pdf_process
def read_pages(content):
    raise MemoryError
pdf_process.read_pages = read_pages
main()
"""


def test_too_little_memory_is_said():
    assert run(["-c", SHORT_OF_MEMORY]) == {"refusal": "the PDF needs too much memory; split it"}
