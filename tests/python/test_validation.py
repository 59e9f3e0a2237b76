"""`trn-sim validate`: reading rows, predicting, offsets, scores, limits, cache and exit codes."""

from __future__ import annotations

import contextlib
import io
import json
import math
import os
import tempfile
import unittest
from pathlib import Path
from typing import Any
from unittest import mock

from trace_support import NO_NATIVE, ROOT, has_native, trnsim
from trnsim.validation import (
    apart,
    command,
    document,
    inputs,
    limits,
    methods,
    pages,
    places,
    predict,
    report,
    rows,
    score,
)
from trnsim.validation.predict import Failure, Machine, Predictor
from trnsim.validation.rows import Row

HEADER = "id,hardware,value,unit,kernel,args,metric_kind,offset_group,confidence,notes,spilled\n"
ADD = "vector_add.streamed,elements=25600 partitions=128 free=200 dtype=fp32"
TRN_SIM = Path(trnsim._NATIVE).parents[1] / "bin" / "trn-sim"


def row(name: str, value: float, **given: Any) -> Row:
    """A measurement in us of 128 x 128 products."""
    settings = {
        "unit": "us",
        "kernel": "matmul.tiled",
        "args": "M=128 K=128 N=128 dtype=bf16",
        "metric_kind": "profiled_total",
        **given,
    }
    own = {key: settings.pop(key) for key in ("unit", "kernel", "args", "metric_kind")}
    return Row(name, value, other={key: str(text) for key, text in settings.items()}, **own)


def prediction(ns: float, *, launches: int = 1, spread: float = 0.0, **summary: float) -> Any:
    figures = [{"device_time_ns": ns, "summary": summary}]
    return methods.Prediction(ns, ns - spread, ns + spread, launches, figures)


def scored(name: str, measured_us: float, predicted_us: float, **given: Any) -> score.Scored:
    return score.Scored(row(name, measured_us, **given), prediction(1e3 * predicted_us), 0.0)


def files(**texts: str) -> Any:
    """Files in a folder that goes away."""
    folder = tempfile.TemporaryDirectory()
    for name, text in texts.items():
        (Path(folder.name) / name.replace("__", ".")).write_text(text)
    return folder


def check_schema(found: dict[str, Any]) -> None:
    """Raises when a result is not as docs/reference/validation.schema.json says."""
    import jsonschema

    schema = json.loads((ROOT / "docs" / "reference" / "validation.schema.json").read_text())
    jsonschema.Draft202012Validator(schema).validate(found)


class Reading(unittest.TestCase):
    def read(self, text: str) -> list[Row]:
        with files(rows__csv=text) as folder:
            return rows.read(Path(folder) / "rows.csv")

    def refused(self, text: str) -> str:
        with self.assertRaises(rows.RowsError) as caught:
            self.read(text)
        return str(caught.exception)

    def test_a_row_knows_its_source_its_time_and_its_settings(self) -> None:
        (one,) = self.read(HEADER + f'A-B-007,trn2,2.5,ms,{ADD},profiled_total,,high,"a, b",no\n')
        self.assertEqual((one.prefix, one.measured, one.confidence), ("A-B", 2.5e6, "high"))
        self.assertEqual(one.notes, "a, b")
        self.assertEqual(
            rows.settings(one.args),
            {"elements": 25600, "partitions": 128, "free": 200, "dtype": "fp32"},
        )
        self.assertEqual(rows.settings("a=0.5 b=-3 c=true d=MNK e=1e3")["a"], 0.5)

    def test_other_columns_in_any_order_will_do(self) -> None:
        (one,) = self.read("kernel,more,value,id,unit,args,metric_kind\nk.f,x,3,A-1,us,M=1,limit\n")
        self.assertEqual((one.id, one.hardware, one.kernel), ("A-1", "", "k.f"))

    def test_what_is_wrong_is_said_with_file_line_and_column(self) -> None:
        good = f"A-1,trn2,2.5,ms,{ADD},profiled_total,,high,,no\n"
        for text, message in (
            ("", "rows.csv:1: expected a line with the names"),
            ("id,value\n", "rows.csv:1: unit: no such column"),
            (HEADER, "expected at least one row"),
            (HEADER + good.replace("2.5", "fast"), "rows.csv:2: value: .*'fast'"),
            (HEADER + good.replace("2.5", "-1"), "rows.csv:2: value: .* above 0"),
            (HEADER + good.replace("2.5", "nan"), "rows.csv:2: value: .* above 0"),
            (HEADER + good + good, "rows.csv:3: id: A-1 is in line 2 already"),
            (HEADER + good + "A-2,trn2\n", "rows.csv:3: hardware: expected 11 columns, got 2"),
            (HEADER + good.replace("A-1", ""), "rows.csv:2: id: expected a name"),
            (HEADER + '"A-1', "rows.csv:2: not CSV"),
            ("id,id" + HEADER[2:], "rows.csv:1: id: more than one column"),
        ):
            self.assertRegex(self.refused(text), message)

    def test_all_errors_of_a_file_are_said(self) -> None:
        bad = f"A-1,trn2,x,ms,{ADD},limit,,high,,no\nA-2,trn2,y,ms,{ADD},limit,,high,,no\n"
        self.assertEqual(self.refused(HEADER + bad).count("\n"), 1)

    def test_lines_are_counted_through_quoted_breaks(self) -> None:
        text = HEADER + f'A-1,trn2,1,ms,{ADD},limit,,high,"two\nlines",no\nA-2,trn2,x'
        self.assertIn("rows.csv:4:", self.refused(text))


class Shipped(unittest.TestCase):
    """The list of rows is fixed: this many, each with its kernel."""

    def test_all_rows_can_be_asked_for(self) -> None:
        shipped = rows.read(places.folder("validation") / "rows.csv")
        self.assertEqual(len(shipped), 398)
        for one in shipped:
            machine = methods.machine_for(one, None, ())
            self.assertTrue(methods.requests_for(one, machine), one.id)
        trn1 = rows.read(places.folder("validation") / "trn1_rows.csv")
        self.assertEqual({methods.machine_for(one, None, ()).target for one in trn1}, {"trn1"})

    def test_rows_left_out_have_a_reason_and_are_not_run(self) -> None:
        folder = places.folder("validation")
        left_out = dict(rows.read_reasons(folder / "left_out.csv"))
        self.assertEqual(min(map(bool, left_out.values())), True)
        self.assertFalse(left_out.keys() & {one.id for one in rows.read(folder / "rows.csv")})

    def test_subsets_are_of_shipped_rows_and_reach_every_source(self) -> None:
        shipped = rows.read(places.folder("validation") / "rows.csv")
        for name, ids in command._yaml("subsets.yaml").items():
            self.assertFalse(set(ids) - {one.id for one in shipped}, name)
        ci = command._rows(None, "ci")
        self.assertEqual({one.prefix for one in ci}, {one.prefix for one in shipped})

    def test_every_set_of_rows_has_limits(self) -> None:
        self.assertEqual(
            set(command._yaml("thresholds.yaml")), {"full", *command._yaml("subsets.yaml")}
        )


class Asking(unittest.TestCase):
    machine = Machine("trn2.3xlarge", "trn2")

    def unmatched(self, one: Row) -> str:
        with self.assertRaises(methods.Unmatched) as caught:
            methods.requests_for(one, methods.machine_for(one, None, ()))
        return str(caught.exception)

    def test_settings_become_shapes_and_arguments(self) -> None:
        (launch,) = inputs.launches(
            "matmul.blocked_order",
            rows.settings("M=1 K=2 N=3 dtype=bf16 transpose_lhs=1 order=MNK"),
        )
        self.assertEqual(launch.shapes, (("lhs", (1, 2)), ("rhs", (2, 3))))
        self.assertEqual(launch.arguments, (("order", "MNK"), ("transpose_lhs", 1)))

    def test_the_builders_options_follow_the_method(self) -> None:
        for kind in ("profiled_total", "benchmark_latency"):
            (request,) = methods.requests_for(row("A-1", 1, metric_kind=kind), self.machine)
            self.assertEqual(dict(request.options), methods.BUILDER_OPTIONS[kind])
        one = row("A-1", 1, metric_kind="benchmark_latency")
        (request,) = methods.requests_for(one, self.machine, {"reuse_loads_bytes": 0})
        self.assertEqual(dict(request.options)["reuse_loads_bytes"], 0)

    def test_reasons_of_rows_that_are_not_matched(self) -> None:
        for given, message in (
            ({"kernel": ""}, "no kernel is named"),
            ({"kernel": "matmul.tild"}, "no kernel matmul.tild; did you mean matmul.tiled"),
            ({"args": "M=128 K=128 dtype=bf16"}, "needs N"),
            ({"args": "M=128 K=128 N=x dtype=bf16"}, "N: expected a size"),
            ({"args": "M=128 K=128 N=128 dtype=bf61"}, "expected a dtype"),
            ({"args": "M128"}, "expected NAME=VALUE"),
            ({"metric_kind": "limit"}, "not a measurement"),
            ({"metric_kind": "ratio_only"}, "only ratios"),
            ({"metric_kind": ""}, "does not say how"),
            ({"metric_kind": "guess"}, "expected one of profiled_total"),
            ({"unit": "TFLOPS"}, "unit TFLOPS: expected ns, us, ms or s"),
            ({"hardware": "trn3"}, "hardware trn3"),
            ({"hardware": "trn2.3xlarge, 1 logical core LNC=2"}, "two physical cores"),
        ):
            self.assertIn(message, self.unmatched(row("A-1", 1, **given)))

    def test_one_core_of_a_pair_is_one_core(self) -> None:
        one = row("A-1", 1, hardware="trn2 (one physical core of the LNC=2 pair)")
        self.assertEqual(methods.machine_for(one, None, ()), self.machine)

    def test_times_are_those_of_the_method(self) -> None:
        figures = {
            "device_time_ns": 100.0,
            "device_time_low_ns": 90.0,
            "device_time_high_ns": 130.0,
            "profiled_total_ns": 150.0,
            "summary": {},
        }
        for kind, launches, expected in (
            ("profiled_total", 1, (150.0, 140.0, 180.0)),
            ("benchmark_latency", 2, (200.0, 180.0, 260.0)),
            ("host_wall", 1, tuple(t + methods.HOST_DISPATCH_NS for t in (100.0, 90.0, 130.0))),
        ):
            found = methods.combine(row("A-1", 1, metric_kind=kind), [figures] * launches)
            self.assertEqual((found.value, found.low, found.high), expected)
            self.assertEqual(found.launches, launches)

    def test_a_failure_is_a_reason(self) -> None:
        with self.assertRaisesRegex(methods.Unmatched, "exit 3"):
            methods.combine(row("A-1", 1), [Failure("running: exit 3: deadlock")])

    def test_throughput_is_a_share_of_the_plateaus(self) -> None:
        one = row(
            "A-1", 0.5, unit="fraction", kernel="dma.loads", args="count=4 free=8 dtype=fp32",
            metric_kind="relative_throughput",
        )  # fmt: skip
        self.assertEqual(len(methods.requests_for(one, self.machine)), 4)
        # 32 bytes a transfer in 10 ns, 32768 bytes in 100 ns: a 102.4th
        times = (50.0, 90.0, 500.0, 900.0)
        found = methods.combine(one, [{"device_time_ns": time, "summary": {}} for time in times])
        share = (32 / 40) / (32768 / 400)
        self.assertAlmostEqual(found.value, share)
        self.assertEqual((found.low, found.high), (found.value, found.value))

    def test_a_share_is_as_uncertain_as_its_times(self) -> None:
        one = row(
            "A-1", 0.5, unit="fraction", kernel="dma.loads", args="count=4 free=8 dtype=fp32",
            metric_kind="relative_throughput",
        )  # fmt: skip
        answers = [
            {
                "device_time_ns": time,
                "device_time_low_ns": time * low,
                "device_time_high_ns": time * high,
                "summary": {},
            }
            for time, low, high in ((50, 1, 1), (90, 0.9, 1.3), (500, 1, 1), (900, 0.6, 1.0))
        ]
        found = methods.combine(one, answers)
        self.assertAlmostEqual(found.low, found.value * 0.5)  # 0.3 longer, the plateau 0.4 shorter
        self.assertAlmostEqual(found.high, found.value * 1.1)


class Offsets(unittest.TestCase):
    def test_an_offset_is_found_to_a_tenth_of_a_microsecond(self) -> None:
        pairs = [(prediction(1e3 * us), 1e3 * us + 12340.0) for us in (10, 50, 200)]
        self.assertEqual(score.fit_offset(pairs), 12300.0)

    def test_it_has_bounds(self) -> None:
        self.assertEqual(score.fit_offset([(prediction(9e5), 8e5)]), 0.0)
        self.assertEqual(score.fit_offset([(prediction(1e5), 9e5)]), methods.MAX_OFFSET_NS)

    def test_each_launch_pays_it(self) -> None:
        self.assertEqual(score.fit_offset([(prediction(1e5, launches=2), 1.5e5)]), 25e3)
        one = score.Scored(row("A-1", 150), prediction(1e5, launches=2), 25e3)
        self.assertEqual(one.predicted, 1.5e5)

    def test_it_is_uncertain_beside_the_device_time(self) -> None:
        one = score.Scored(row("A-1", 150), prediction(1e5, launches=2, spread=1e4), 25e3)
        bar = math.hypot(1e4, methods.OFFSET_SPREAD * 5e4)
        self.assertAlmostEqual(one.low, 1.5e5 - bar)
        self.assertAlmostEqual(one.high, 1.5e5 + bar)

    def test_only_groups_of_nki_benchmark_have_one(self) -> None:
        timed = row("A-1", 112, metric_kind="benchmark_latency", offset_group="a")
        profiled = row("B-1", 112, offset_group="b")
        found = score.fit_offsets([(timed, prediction(1e5)), (profiled, prediction(1e5))])
        self.assertEqual(found, {"a": 12e3})
        self.assertEqual(score.offset_for(profiled, {"b": 3.0}), 0.0)
        other = row("C-1", 1, metric_kind="benchmark_latency", offset_group="c")
        self.assertEqual(score.offset_for(other, found), methods.DEFAULT_OFFSET_NS)


class Scores(unittest.TestCase):
    def test_errors_and_the_worst_row(self) -> None:
        found = score.overall(
            [scored("A-1", 100, 110), scored("A-2", 100, 70), scored("B-1", 10, 10)]
        )
        self.assertAlmostEqual(found["mape_percent"], 40 / 3)
        self.assertAlmostEqual(found["median_percent"], 10)
        self.assertAlmostEqual(found["bias_percent"], -20 / 3)
        self.assertAlmostEqual(found["within_20_percent"], 200 / 3)
        self.assertEqual(found["worst"]["id"], "A-2")
        self.assertAlmostEqual(found["sources_mape_percent"], 10)  # of 20 and 0

    def test_order_is_asked_within_a_workload_only(self) -> None:
        variants = [
            scored("A-1", 100, 90),
            scored("A-2", 105, 80),  # nearer than 10 %: not asked
            scored("A-3", 200, 210),
            scored("A-4", 300, 205),  # wrong against A-3
            scored("A-5", 900, 1, args="M=256 K=128 N=128 dtype=bf16"),
            scored("B-1", 900, 1),
        ]
        pairs, right, tau = score.order(variants)
        self.assertEqual((pairs, right), (5, 4))
        self.assertAlmostEqual(tau or 0.0, (4 - 2) / 6)

    def test_ties_count_neither_way(self) -> None:
        pairs, right, tau = score.order([scored("A-1", 1, 2), scored("A-2", 2, 2)])
        self.assertEqual((pairs, right, tau), (1, 0, None))

    def test_error_bars_cover_and_have_a_width(self) -> None:
        barred = score.Scored(row("A-1", 108), prediction(1e5, spread=1e4), 0.0)
        found = score.summarise([barred, scored("A-2", 100, 101)])
        self.assertAlmostEqual(found["coverage_percent"], 50)
        self.assertAlmostEqual(barred.half_width_percent, 10)

    def test_rows_of_high_confidence_that_did_not_spill_stand_apart(self) -> None:
        sure = scored("A-1", 100, 105, confidence="high", spilled="no")
        found = score.overall([sure, scored("A-2", 100, 200, confidence="high", spilled="yes")])
        self.assertEqual(found["sure"]["rows"], 1)
        self.assertAlmostEqual(found["sure"]["mape_percent"], 5)

    def test_published_counters_are_read_from_the_notes(self) -> None:
        for notes, expected in (
            ("TensorE busy 81.41%; DMA busy 57.27%; HBM bytes 100663296; DMA transfers 1152",
             {"tensor_active_percent": 81.41, "dma_active_percent": 57.27,
              "hbm_bytes": 100663296, "dma_transfers": 1152}),
            ("TensorE active 34.82 ms (87.28%); DMA active 39.87 ms (99.93%)",
             {"tensor_active_percent": 87.28, "dma_active_percent": 99.93}),
            ("TensorE 99.52%; DMA 95.70%; MFU 24.60%; VectorE 2.99 ms (10.55%)",
             {"tensor_active_percent": 99.52, "dma_active_percent": 95.7, "mfu_percent": 24.6,
              "vector_active_percent": 10.55}),
            ("HBM read 100 B, written 20 B; spill 0 B", {"hbm_bytes": 120}),
            ("240,123,904 B; 458 transfers", {"hbm_bytes": 240123904, "dma_transfers": 458}),
            ("modelled HBM bytes 7610368 / 5513216", {}),
            ("FLOP 268435456", {}),
        ):  # fmt: skip
            self.assertEqual(score.published(row("A-1", 1, notes=notes)), expected)

    def test_counters_of_rows_that_did_not_spill(self) -> None:
        ours = prediction(1e5, hbm_read_bytes=90.0, hbm_write_bytes=20.0)
        kept = score.Scored(row("A-1", 1, notes="HBM bytes 100", spilled="no"), ours, 0.0)
        spilt = score.Scored(row("A-2", 1, notes="HBM bytes 1", spilled="yes"), ours, 0.0)
        found = score.counters([kept, spilt])["hbm_bytes"]
        self.assertEqual(found["rows"], 1)
        self.assertAlmostEqual(found["mean_percent"], 10)


class Results(unittest.TestCase):
    def result(self, **given: Any) -> dict[str, Any]:
        found = report.figures(
            [scored("A-1", 100, 110), scored("A-2", 100, 70), scored("B-1", 10, 10)],
            [(row("B-2", 1), "no such <kernel>")],
            {},
        )
        return {"config": {"name": "trn2.3xlarge"}, **found, **given}

    def test_limits_are_broken_one_by_one(self) -> None:
        given = {
            "overall": {"mape_percent_at_most": 10, "rows_at_least": 3},
            "sources": {"B": {"mape_percent_at_most": 1}, "C": {"mape_percent_at_most": 1}},
            "counters": {"hbm_bytes": {"mean_percent_at_most": 5}},
        }
        self.assertEqual(
            limits.broken(self.result(), given),
            [
                "overall: mape_percent 13.3, expected at most 10",
                "C: mape_percent: no such figure, expected at most 1",
                "hbm_bytes: mean_percent: no such figure, expected at most 5",
            ],
        )

    def test_limits_that_are_kept_are_not_broken(self) -> None:
        import yaml

        kept = limits.kept(self.result())
        self.assertEqual(limits.broken(self.result(), kept), [])
        self.assertEqual(yaml.safe_load(limits.as_yaml({"full": kept})), {"full": kept})

    def test_the_text_has_every_row_and_every_reason(self) -> None:
        said = report.text(self.result(broken=["overall: rows 3, expected at least 4"]))
        for part in ("A-1 ", "+10.0 %", "unmatched B-2: no such", "limit broken: overall: rows 3"):
            self.assertIn(part, said)
        self.assertIn("| A | 2 | 20.0 % |", document.short(self.result()))

    def test_pages_keep_what_is_not_between_markers(self) -> None:
        page = "before\n<!-- accuracy: worst -->\nold\n<!-- end -->\nafter\n"
        new = document.update(page, self.result())
        self.assertTrue(new.startswith("before\n<!-- accuracy: worst -->\n\n| row |"))
        self.assertTrue(new.endswith("|\n\n<!-- end -->\nafter\n"))
        self.assertNotIn("old", new)
        self.assertEqual(document.update(new, self.result()), new)

    def test_nothing_predicted_is_still_a_result(self) -> None:
        found = {"config": {"name": "m"}, **report.figures([], [(row("A-1", 1), "why")], {})}
        self.assertEqual(found["overall"], {"rows": 0})
        self.assertIn("unmatched A-1: why", report.text(found))
        self.assertIn("why", pages._page(found))

    def test_the_page_stands_alone(self) -> None:
        page = pages._page(self.result())
        self.assertNotRegex(page, r"(src|href)=|@import|<kernel>")
        self.assertIn("no such &lt;kernel&gt;", page)
        self.assertEqual(page.count("<circle"), 3)


class Instructions(unittest.TestCase):
    def kind(self, engine: str, opcode: str, operands: str) -> str:
        one = apart.Instruction(engine, opcode, operands, 0.0, 0.0, "k8n8")
        return apart._kind(one)[1]

    def test_kinds_are_in_the_words_of_the_published_times(self) -> None:
        for engine, opcode, operands, expected in (
            ("Tensor", "LDWEIGHTS", "src=fp32@sbuf:0x0[1][128] pass=high wait S[8]>=16",
             "fp32 src=SBUF free=128 fp32_mode=HIGH transpose_mode=DISABLED HAM=k8n8"),
            ("Tensor", "MATMUL", "src=bf16@sbuf:0x0[1,0,32][32,1,4] dst=fp32@psum:0x0[1][128]",
             "bfloat16 src=SBUF free=128 HAM=k8n8"),
            ("Scalar", "ACTIVATE", "src=fp32@psum:0x0[1][512] dst=fp32@sbuf:0x0[1][512] function=EXP",
             "fp32 src=PSUM free=512 dst=SBUF fp32 dfree=512 EXP"),
            ("Sync", "DMA_DIRECT2D", "src=uint8@hbm:0x0{2048}[2048,262144][2,128] dst=uint8@sbuf:0x0",
             "op=NONE elem=2048 [2048,262144][2,128]"),
        ):  # fmt: skip
            self.assertEqual(self.kind(engine, opcode, operands), apart._sorted(expected))


@unittest.skipUnless(has_native(), NO_NATIVE)
@unittest.skipUnless(os.access(TRN_SIM, os.X_OK), "trn-sim is not built")
class Running(unittest.TestCase):
    def setUp(self) -> None:
        self.folder = Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.cache = self.folder / "cache"

    def run_it(self, *words: str) -> tuple[int, str, str]:
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = command.main([str(TRN_SIM), "--jobs", "1", *words])
        return code, out.getvalue(), err.getvalue()

    def rows_file(self, *lines: str) -> str:
        file = self.folder / "mine.csv"
        file.write_text(HEADER + "\n".join(lines) + "\n")
        return str(file)

    def validate(self, *words: str) -> dict[str, Any]:
        code, out, err = self.run_it(*words, "--report", "json", "--cache", str(self.cache))
        self.assertEqual((code, err), (0, ""))
        found = dict(json.loads(out))
        check_schema(found)
        return found

    def test_other_rows_are_predicted_and_the_rest_is_listed(self) -> None:
        mine = self.rows_file(
            f"X-1,trn2,20,us,{ADD},profiled_total,,high,,no",
            f"X-2,trn2,15,us,{ADD},benchmark_latency,new,high,,no",
            f"X-3,trn2,15,us,{ADD},benchmark_latency,csx,high,,no",
            "X-4,trn2,1,us,,,benchmark_latency,,,,",
            "X-5,trn2,1,us,vector_add.streamed,elements=5 partitions=128 free=9 dtype=fp32,"
            "profiled_total,,,,",
        )
        found = self.validate("--rows", mine)
        self.assertEqual([one["id"] for one in found["rows"]], ["X-1", "X-2", "X-3"])
        self.assertEqual([one["id"] for one in found["unmatched"]], ["X-4", "X-5"])
        self.assertIn("tracing:", found["unmatched"][1]["reason"])
        self.assertEqual(found["overall"]["rows"], 3)
        new, known = found["rows"][1:]
        self.assertEqual(new["offset_us"], methods.DEFAULT_OFFSET_NS / 1e3)
        stored = command._stored_offsets()["csx"] / 1e3
        self.assertAlmostEqual(known["predicted"] - new["predicted"], stored - new["offset_us"])
        self.assertNotIn("broken", found)

    def test_ids_and_values_change_no_prediction(self) -> None:
        one = self.validate("--rows", self.rows_file(f"X-1,trn2,20,us,{ADD},profiled_total,,,,"))
        two = self.validate("--rows", self.rows_file(f"K-Y-2,trn2,9,us,{ADD},profiled_total,,,,"))
        self.assertEqual(one["rows"][0]["predicted"], two["rows"][0]["predicted"])

    def test_results_are_kept_by_what_they_depend_on(self) -> None:
        mine = self.rows_file(f"X-1,trn2,20,us,{ADD},profiled_total,,high,,no")
        first = self.validate("--rows", mine)
        with mock.patch.object(predict, "_run", side_effect=AssertionError("ran again")):
            self.assertEqual(self.validate("--rows", mine), first)
        slow = self.validate("--rows", mine, "--set", "chip.vector.clock=96 MHz")
        self.assertGreater(slow["rows"][0]["predicted"], first["rows"][0]["predicted"])
        self.assertEqual(len(list(self.cache.glob("*.bin"))), 1)
        self.assertEqual(len(list(self.cache.glob("*.json"))), 2)
        before = len(list(self.cache.iterdir()))
        code, _, _ = self.run_it("--rows", mine, "--no-cache", "-o", str(self.folder / "out"))
        self.assertEqual((code, len(list(self.cache.iterdir()))), (0, before))

    def test_processes_change_nothing(self) -> None:
        mine = self.rows_file(
            f"X-1,trn2,20,us,{ADD},profiled_total,,high,,no",
            f"X-2,trn2,15,us,{ADD},benchmark_latency,new,high,,no",
        )
        words = ("--rows", mine, "--report", "json", "--no-cache")
        self.assertEqual(self.run_it(*words), self.run_it(*words, "--jobs", "2"))

    def test_wrong_usage_is_exit_code_2(self) -> None:
        mine = self.rows_file("X-1,trn2,fast,us,,,profiled_total,,,,")
        for words, message in (
            (("--rows", mine), "mine.csv:2: value"),
            (("--rows", str(self.folder / "none.csv")), "No such file"),
            (("--subset", "nightly"), "there are ci, mutation"),
            (("--subset", "ci", "--rows", mine), "expected one of them"),
            (("--jbs", "3"), "did you mean --jobs"),
            (("--jobs", "0"), "expected at least 1"),
            (("--report", "xml"), "invalid choice"),
            (("--subset", "ci", "-o", "/no/such/file"), "no such folder"),
            (("--subset", "mutation", "--set", "chip.no=1"), "unknown key"),
            (("--subset", "mutation", "--config", "trn9"), "trn9"),
            (("--subset", "mutation", "--option", "no=1"), "no such option"),
            (("--rows", mine, "--write-offsets"), "all shipped rows only"),
        ):
            code, out, err = self.run_it(*words)
            self.assertEqual((code, out), (2, ""), words)
            self.assertIn(message, err)
            self.assertTrue(err.startswith("trn-sim: "), err)

    def test_a_broken_limit_is_exit_code_1(self) -> None:
        stored = {"mutation": {"overall": {"mape_percent_at_most": 0.001}}}
        shipped = rows.read(places.folder("validation") / "rows.csv")
        few = [one for one in shipped if one.id == "K-CSX-003"]
        with mock.patch.object(command, "_rows", return_value=few):
            with mock.patch.object(command, "_yaml", return_value=stored):
                words = ("--subset", "mutation", "--cache", str(self.cache))
                code, out, _ = self.run_it(*words)
                self.assertEqual(code, 1)
                self.assertIn("limit broken: overall: mape_percent", out)
                self.assertEqual(self.run_it(*words, "--no-check")[0], 0)
                code, _, err = self.run_it(*words, "--report", "json")
                self.assertIn("trn-sim: limit broken: overall", err)

    def test_profiles_that_cannot_be_replayed_are_listed(self) -> None:
        found, failed = apart.replays(str(TRN_SIM), "trn1.2xlarge", ())
        self.assertEqual((found, len(failed)), ([], 5))
        self.assertIn("exit 2", failed[0]["reason"])
        found, failed = apart.replays(str(TRN_SIM), "trn2.3xlarge", ())
        self.assertEqual((len(found), failed), (5, []))
        self.assertLess(max(abs(one["error_percent"]) for one in apart.profile_figures(found)), 2)

    def test_the_pictures_are_written(self) -> None:
        mine = self.rows_file(f"X-1,trn2,20,us,{ADD},profiled_total,,high,,no")
        prefix = self.folder / "new" / "accuracy"
        self.validate("--rows", mine, "--plot", str(prefix))
        self.assertIn("<svg", prefix.with_suffix(".html").read_text())
        try:
            import matplotlib  # noqa: F401
        except ImportError:
            return
        self.assertEqual(prefix.with_suffix(".png").read_bytes()[:4], b"\x89PNG")


if __name__ == "__main__":
    unittest.main()
