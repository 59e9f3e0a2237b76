"""The documents are true: generated pages are fresh, the tutorial's outputs real, links lead on.

TRN_UPDATE_REFERENCE=1 rewrites the generated pages and the tutorial's outputs. Figures in its text
and its picture (docs/images/tutorial-timeline.png, by the command in the tutorial) are not.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import unittest
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import trace_support

import trnsim

ROOT = trace_support.ROOT
TUTORIAL = ROOT / "docs" / "tutorial.md"
UPDATE = "TRN_UPDATE_REFERENCE" in os.environ
BIN = Path(os.path.normpath(os.path.join(trnsim._NATIVE, "..", "..", "bin")))

sys.path.insert(0, str(ROOT / "scripts"))


@dataclass
class Block:
    """A fenced block: lines [begin, end) of a page, without the fences."""

    language: str
    begin: int
    end: int
    text: str


def blocks(lines: list[str]) -> Iterator[Block]:
    begin, language = None, ""
    for number, line in enumerate(lines):
        if line.startswith("```"):
            if begin is None:
                begin, language = number + 1, line[3:].strip()
            else:
                yield Block(language, begin, number, "\n".join(lines[begin:number]))
                begin = None


def comparable(output: str) -> list[str]:
    """Without what the host's speed and its folder's name (which is in a trace) decide."""
    output = re.sub(r"[\d.]+ [KM]iB, traced in [\d.]+ s", "- KiB, traced in - s", output)
    return [line for line in output.splitlines() if not line.startswith("simulated in")]


@unittest.skipUnless(trace_support.has_native(), trace_support.NO_NATIVE)
class Generated(unittest.TestCase):
    def test_reference_pages_are_fresh(self) -> None:
        import supported_calls

        for file, text in supported_calls.pages().items():
            with self.subTest(file.name):
                if UPDATE:
                    file.write_text(text)
                self.assertTrue(
                    file.exists() and file.read_text() == text,
                    "stale: run this test with TRN_UPDATE_REFERENCE=1 and commit",
                )


class Links(unittest.TestCase):
    def test_links_between_documents_lead_to_files(self) -> None:
        pages = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("traces/**/*.md")]
        self.assertGreater(len(pages), 20)
        for page in pages:
            text = re.sub(r"```.*?```|`[^`\n]*`", "", page.read_text(), flags=re.DOTALL)
            for target in re.findall(r"\]\(([^)\s]+)\)", text):
                file = target.split("#")[0]
                if file and "://" not in target:
                    with self.subTest(page=str(page.relative_to(ROOT)), link=target):
                        self.assertTrue((page.parent / file).exists())


@unittest.skipUnless(trace_support.has_native(), trace_support.NO_NATIVE)
@unittest.skipUnless((BIN / "trn-sim").exists(), "trn-sim is not built")
class Tutorial(unittest.TestCase):
    """Files and commands of the tutorial give the outputs that stand below them."""

    maxDiff = None

    def test_outputs_are_those_of_the_commands(self) -> None:
        lines = TUTORIAL.read_text().splitlines()
        found = list(blocks(lines))
        outputs: list[tuple[Block, str]] = []
        with tempfile.TemporaryDirectory() as folder:
            for block, after in zip(found, [*found[1:], None]):
                first = block.text.split("\n")[0]
                if block.language == "python":
                    Path(folder, first.removeprefix("# ")).write_text(block.text + "\n")
                elif block.language == "sh" and "scripts/" not in block.text:
                    output = self.run_commands(block.text, folder)
                    if after is not None and after.language == "":
                        outputs.append((after, output))
                    else:
                        self.assertEqual(output, "", block.text)
        self.assertGreaterEqual(len(outputs), 5)
        for block, output in reversed(outputs):
            if comparable(output) == comparable(block.text):
                continue
            if not UPDATE:
                self.assertEqual(
                    comparable(output), comparable(block.text), f"{TUTORIAL}:{block.begin}"
                )
            lines[block.begin : block.end] = output.rstrip("\n").split("\n")
        if UPDATE:
            TUTORIAL.write_text("\n".join(lines) + "\n")

    def test_the_text_says_what_the_outputs_say(self) -> None:
        text = TUTORIAL.read_text()
        times = re.findall(r"^device time +([\d.]+) us", text, re.MULTILINE)
        self.assertEqual(len(times), 3)
        claim = f"from {float(times[0]):.0f} us to {float(times[-1]):.0f} us"
        for page in (TUTORIAL, ROOT / "README.md"):
            self.assertIn(claim, " ".join(page.read_text().split()), page.name)

    def run_commands(self, commands: str, folder: str) -> str:
        environment = {
            **os.environ,
            "PATH": f"{BIN}:{os.environ['PATH']}",
            "PYTHONPATH": os.path.dirname(trnsim._HERE),
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        done = subprocess.run(
            ["bash", "-e", "-o", "pipefail", "-c", commands],
            cwd=folder,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self.assertEqual(done.returncode, 0, f"{commands}\n{done.stdout}")
        return done.stdout.replace(os.path.realpath(folder), "/tmp/tutorial")


if __name__ == "__main__":
    unittest.main()
