"""scripts/calibrate.py on a made-up machine, whose true parameters are known."""

from __future__ import annotations

import contextlib
import io
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))

import calibrate  # noqa: E402

# A simulator whose rows take a fixed time, one that follows `interval`, and one in inverse
# proportion to `rate`. Measured is what it says with the true values and the sources' offsets.
FAKE = """
import json, sys
values = {"chip.interval": 541.0, "chip.rate": 1.0, "chip.unused": 10.0}
TRUE = {"chip.interval": 640.0, "chip.rate": 0.9}
OFFSET = {"S-A": 0.0, "S-B": 0.0, "S-C": 35.0, "S-D": 12.0}
words = sys.argv[1:]
assert words[0] == "validate", words
for i, word in enumerate(words):
    if word == "--set":
        path, text = words[i + 1].split("=")
        if path not in values:
            print(f"--set: no key '{path}'", file=sys.stderr)
            sys.exit(2)
        values[path] = float(text.split()[0])
def time(source, i, v):
    part = (i + "ABCD".index(source[-1])) % 5 / 5
    return 20 + 10 * i + 100 * part * v["chip.interval"] / 541 + 100 * (1 - part) / v["chip.rate"]
rows = []
for source, offset in OFFSET.items():
    for i in range(1, 8):
        noise = 1 + 0.01 * (-1) ** i * (1 if source in "S-A S-C" else -1)
        rows.append({
            "id": f"{source}-{i:03d}", "unit": "us",
            "metric_kind": "benchmark_latency" if offset else "profiled_total",
            "predicted": time(source, i, values) + (5.0 if offset else 0),
            "measured": (time(source, i, {**values, **TRUE}) + offset) * noise})
        if offset:
            rows[-1]["offset_us"] = 5.0
json.dump({"rows": rows}, sys.stdout)
sys.exit(1)  # a threshold is broken, as before any calibration
"""

FIT = """
parameters:
  - {path: chip.interval, value: 541 ns, low: 200 ns, high: 900 ns, spread: 60 ns, reason: made up}
  - {path: chip.rate, value: 1, low: 0.5, high: 1.1, spread: 0.06, reason: made up}
  - {path: chip.unused, value: 10 ns, low: 1 ns, high: 30 ns, spread: 2 ns, reason: made up}
"""

CALIBRATION = """
chip: made
date: 2026-01-01
rows: [profiles]
parameters:
  - path: chip.interval
    value: 541 ns
    low: 500 ns
    high: 600 ns
    acts_on: {gpsimd: 0.5}
    status: meas
    source: here
  - {path: chip.rate, value: 1, low: 0.9, high: 1.1, acts_on: {dma: -1}, status: meas, source: here}
  - {path: chip.unused, value: 10 ns, low: 9 ns, high: 11 ns, acts_on: {sync: 1}, status: est, source: here}
  - {path: chip.other, value: 3 ns, low: 2 ns, high: 4 ns, acts_on: {sync: 1}, status: est, source: here}
unknowns:
  - {name: schedule, low: 0.9, high: 1.1, acts_on: {tensor: 1, dma: 1}, status: est, source: here}
"""

CHIP = """# A chip.
name: made
interval: {value: 541 ns, status: meas, source: here}  # measured
rate: 1
unused: 10 ns
"""


class Calibrate(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        for name, text in {
            "fake.py": FAKE,
            "fit.yaml": FIT,
            "old.yaml": CALIBRATION,
            "chip.yaml": CHIP,
        }.items():
            (self.folder / name).write_text(text)

    def run_it(self, *more: str, output: str = "new.yaml") -> str:
        out = io.StringIO()
        words = [
            f"--command={sys.executable} {self.folder / 'fake.py'} validate",
            f"--fit={self.folder / 'fit.yaml'}",
            f"--calibration={self.folder / 'old.yaml'}",
            f"--chip={self.folder / 'chip.yaml'}",
            f"--write-chip={self.folder / ('chip_' + output)}",
            f"--output={self.folder / output}",
            "--date=2026-02-03",
            "--draws=20",
            "--quiet",
            *more,
        ]
        with contextlib.redirect_stdout(out):
            self.assertEqual(calibrate.main(words), 0)
        return out.getvalue()

    def written(self) -> dict[str, dict[str, str]]:
        document = yaml.safe_load((self.folder / "new.yaml").read_text())
        self.document = document
        return {entry["path"]: entry for entry in document["parameters"]}

    def test_recovers_the_true_parameters_and_offsets(self) -> None:
        said = self.run_it()
        entries = self.written()
        interval, _ = calibrate.split_quantity(entries["chip.interval"]["value"], "")
        self.assertAlmostEqual(interval, 640, delta=25)
        self.assertAlmostEqual(float(entries["chip.rate"]["value"]), 0.9, delta=0.03)
        self.assertEqual(entries["chip.interval"]["status"], "der")
        lines = [line.split() for line in said.splitlines()]
        found = {
            line[0]: float(line[1])
            for line in lines
            if len(line) == 2 and line[0] in ("S-C", "S-D")
        }
        self.assertAlmostEqual(found["S-C"], 35, delta=4)
        self.assertAlmostEqual(found["S-D"], 12, delta=4)

    def test_intervals_hold_the_value_and_the_truth(self) -> None:
        self.run_it()
        for path, true in (("chip.interval", 640), ("chip.rate", 0.9)):
            entry = self.written()[path]
            value, low, high = (
                calibrate.split_quantity(entry[key], "")[0] for key in ("value", "low", "high")
            )
            self.assertLessEqual(low, value)
            self.assertLessEqual(value, high)
            self.assertLess(low * 0.95, true)
            self.assertGreater(high * 1.05, true)
            self.assertGreater(entry["influence_percent"], 0)

    def test_what_the_rows_do_not_show_keeps_its_prior(self) -> None:
        self.run_it()
        entry = self.written()["chip.unused"]
        self.assertEqual(entry["value"], "10 ns")
        self.assertEqual(entry["status"], "est")
        self.assertEqual(entry["influence_percent"], 0)
        low, high = (calibrate.split_quantity(entry[key], "")[0] for key in ("low", "high"))
        self.assertLess(low, 9)
        self.assertGreater(high, 11)

    def test_what_is_not_fitted_stays(self) -> None:
        self.run_it()
        entry = self.written()["chip.other"]
        self.assertEqual([entry["low"], entry["high"]], ["2 ns", "4 ns"])
        self.assertEqual(str(self.document["date"]), "2026-02-03")
        self.assertEqual(self.document["rows"], ["all"])
        schedule = self.document["unknowns"][0]
        self.assertLess(schedule["high"], 1.02)  # one per cent of noise is left
        self.assertGreaterEqual(schedule["high"], 1)

    def test_every_source_is_left_out_once(self) -> None:
        said = self.run_it()
        table = said[said.index("source left out") :].splitlines()
        self.assertEqual(
            [line.split()[0] for line in table[1:]], ["S-A", "S-B", "S-C", "S-D", "mean"]
        )
        for line in table[1:]:
            before, _, own = (float(cell) for cell in line.split()[2:])
            self.assertGreater(before, own)  # the others tell what the machine is
            self.assertLess(own, 3)
        self.assertIn("28", table[-1].split())

    def test_the_same_bytes_twice(self) -> None:
        first = self.run_it(output="a.yaml")
        self.assertEqual(self.run_it(output="b.yaml"), first)
        self.assertEqual(
            (self.folder / "a.yaml").read_bytes(), (self.folder / "b.yaml").read_bytes()
        )

    def test_a_chip_gets_the_new_values(self) -> None:
        self.run_it()
        text = (self.folder / "chip_new.yaml").read_text()
        chip = yaml.safe_load(text)
        self.assertEqual(chip["interval"]["value"], self.written()["chip.interval"]["value"])
        self.assertEqual(chip["rate"]["status"], "der")
        self.assertEqual(chip["unused"], "10 ns")  # unmoved
        self.assertTrue(text.startswith("# A chip.\nname: made\ninterval: {value: "))
        self.assertIn("  # measured\n", text)

    def test_only_some_parameters(self) -> None:
        said = self.run_it("--only=chip.rate", "--rows=some.csv")
        self.assertNotIn("chip.interval", said)
        self.assertEqual(self.written()["chip.interval"]["value"], "541 ns")
        self.assertEqual(self.document["rows"], ["some.csv"])
        with self.assertRaisesRegex(SystemExit, "chip.rates"):
            self.run_it("--only=chip.rates")

    def test_mistakes_in_the_list_are_named(self) -> None:
        for old, new, message in (
            ("spread: 60 ns", "sprad: 60 ns", "chip.interval: expected the keys path"),
            ("low: 200 ns", "low: 200 us", "chip.interval: expected one unit, ns"),
            ("low: 200 ns", "low: 600 ns", "chip.interval: expected low <= value"),
            ("chip.interval", "chip.intervall", "no key 'chip.intervall'"),
        ):
            with self.subTest(new):
                (self.folder / "fit.yaml").write_text(FIT.replace(old, new))
                with self.assertRaisesRegex(SystemExit, message):
                    self.run_it()


class Shipped(unittest.TestCase):
    def test_the_shipped_lists_fit_each_other(self) -> None:
        folder = ROOT / "configs/calibration"
        known = {
            entry["path"]: entry
            for entry in yaml.load((folder / "trn2.yaml").read_text(), yaml.BaseLoader)[
                "parameters"
            ]
        }
        chip = (ROOT / "configs/chips/trn2.yaml").read_text()
        for parameter in calibrate.read_parameters(folder / "fit.yaml", []):
            self.assertIn(parameter.path, known)
            self.assertEqual(
                calibrate.split_quantity(known[parameter.path]["value"], ""),
                (parameter.value, parameter.unit),
            )
            calibrate.patched_chip(chip, {parameter.path.removeprefix("chip."): "1"})
            self.assertTrue(parameter.reason)

    def test_help_has_an_example(self) -> None:
        done = subprocess.run(
            [sys.executable, str(ROOT / "scripts/calibrate.py"), "--help"],
            capture_output=True,
            text=True,
            check=True,
        )
        self.assertIn("Example:", done.stdout)


if __name__ == "__main__":
    unittest.main()
