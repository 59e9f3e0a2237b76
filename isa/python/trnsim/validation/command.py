"""The command line of `trn-sim validate`."""

from __future__ import annotations

import argparse
import json
import os
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from trnsim.validation import apart, document, limits, methods, places, predict, report, rows, score
from trnsim.validation.methods import Prediction, Unmatched
from trnsim.validation.predict import Predictor, Request
from trnsim.validation.rows import Row

DONE, FAILED, BAD_INPUT, OUR_FAULT = 0, 1, 2, 70
FULL, FOREIGN = "full", "rows"

DESCRIPTION = """\
Predicts published measurements, and sets prediction, measurement and error of each side by side.
Exit code 1 when a stored limit is broken (tests/validation/thresholds.yaml)."""
EXAMPLE = """\
Example: all shipped measurements, as JSON and as a picture
  trn-sim validate --report json -o accuracy.json --plot accuracy
Example: measurements of your own, in the columns id, value, unit, kernel, args, metric_kind
  trn-sim validate --rows mine.csv"""


class UsageError(ValueError):
    """A wrong command line or input file."""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> Any:
        from trnsim import specs

        hint = ""
        if message.startswith("unrecognized"):
            for word in message.split():
                if word.startswith("--"):
                    known = list(self._option_string_actions)
                    hint = hint or specs.near(word.partition("=")[0], known)
        raise UsageError(f"{message}{hint}\ntrn-sim validate --help shows the usage")


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command; gives its exit code. The first word is the trn-sim that is used."""
    try:
        return _main(list(sys.argv[1:] if argv is None else argv))
    except (UsageError, rows.RowsError, predict.MachineError) as error:
        return _fail(str(error), BAD_INPUT)
    except SystemExit as error:
        return error.code if isinstance(error.code, int) else DONE
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return DONE
    except Exception:
        said = traceback.format_exc().rstrip()
        return _fail(f"a fault of ours: please report it with this text\n{said}", OUR_FAULT)


def _fail(message: str, code: int) -> int:
    sys.stdout.flush()
    if not message.startswith("trn-sim: "):
        message = f"trn-sim: {message}"
    print(message, file=sys.stderr)
    return code


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="trn-sim validate",
        description=DESCRIPTION,
        epilog=EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    add = parser.add_argument
    add("--rows", metavar="FILE.csv", help="these measurements instead of the shipped ones")
    add("--subset", metavar="NAME", help="a part of the shipped ones: ci takes two minutes")
    add("--report", choices=("text", "json"), default="text", help="text or json")
    add("--markdown", action="store_true", help="only the table of README.md")
    add("-o", "--output", metavar="FILE", help="where the report goes instead of stdout")
    add("--plot", metavar="PREFIX", help="writes PREFIX.png and PREFIX.html")
    add("-c", "--config", metavar="MACHINE", help="instead of trn2.3xlarge")
    add("--set", action="append", default=[], metavar="PATH=VALUE", help="overrides a key of it")
    add("--option", action="append", default=[], metavar="NAME=VALUE", help="of the builder")
    add("--jobs", type=int, metavar="N", help="processes; default: number of processors")
    add("--cache", metavar="DIR", help="default: $XDG_CACHE_HOME/trn-sim/validation")
    add("--no-cache", action="store_true", help="keep no results")
    add("--no-check", action="store_true", help="exit code 0 even when a limit is broken")
    add("--write-offsets", action="store_true", help="keeps the fitted offsets for other rows")
    add("--write-limits", action="store_true", help="keeps what this run reaches as its limits")
    add("-q", "--quiet", action="store_true", help="no progress on stderr")
    add("--progress", action="store_true", help="progress even if stderr is no terminal")
    return parser


def _main(argv: list[str]) -> int:
    trn_sim, *words = argv
    given = _parser().parse_args(words)
    if given.rows and given.subset:
        raise UsageError("--rows and --subset: expected one of them")
    if given.write_offsets and (given.rows or given.subset):
        raise UsageError("--write-offsets: offsets are fitted on all shipped rows only")
    if given.write_limits and given.rows:
        raise UsageError("--write-limits: only shipped rows have limits")
    if given.jobs is not None and given.jobs < 1:
        raise UsageError(f"--jobs: expected at least 1, got {given.jobs}")
    _check_outputs(given)
    set_name = FOREIGN if given.rows else given.subset or FULL
    chosen = _rows(given.rows, given.subset)
    options = _options(given.option)
    predictor = Predictor(
        trn_sim,
        None if given.no_cache else _cache(given.cache),
        given.jobs or os.cpu_count() or 1,
        _progress(given),
    )
    predicted, unmatched = _predict(chosen, predictor, given.config, given.set, options)
    offsets = score.fit_offsets(predicted) if set_name == FULL else _stored_offsets()
    found = {
        "schema": report.SCHEMA,
        "set": set_name,
        "config": {
            "name": given.config or "trn2.3xlarge",
            "overrides": given.set,
            "options": options,
        },
        **report.figures(_scored(predicted, offsets), unmatched, offsets),
    }
    if given.write_limits:
        stored = {**_yaml("thresholds.yaml"), set_name: limits.kept(found)}
        _write("thresholds.yaml", limits.as_yaml(stored))
    if set_name != FOREIGN:
        found["broken"] = limits.broken(found, _yaml("thresholds.yaml").get(set_name, {}))
    if set_name == FULL:
        found["apart"] = _apart(predictor, given.config, given.set, options)
        found["left_out"] = [
            {"id": row, "reason": reason}
            for name in ("left_out.csv", "trn1_left_out.csv")
            for row, reason in rows.read_reasons(places.folder("validation") / name)
        ]
    if given.write_offsets:
        trn1 = found["apart"]["trn1"]["offsets_us"]
        _write_offsets({**found["offsets_us"], **trn1})
    _print(found, given)
    return FAILED if found.get("broken") and not given.no_check else DONE


def _check_outputs(given: argparse.Namespace) -> None:
    """Says before a run of minutes what could not be written after it. Throws UsageError."""
    if given.output and not Path(given.output).resolve().parent.is_dir():
        raise UsageError(f"{given.output}: no such folder")
    if given.plot:
        try:
            import matplotlib  # noqa: F401
        except ImportError:
            raise UsageError("--plot: needs the package python3-matplotlib") from None


def _rows(file: str | None, subset: str | None) -> list[Row]:
    """The rows asked for. Throws UsageError."""
    if file is not None:
        return rows.read(file)
    shipped = rows.read(places.folder("validation") / "rows.csv")
    if subset is None:
        return shipped
    subsets = _yaml("subsets.yaml")
    if subset not in subsets:
        raise UsageError(f"--subset {subset}: there are {', '.join(sorted(subsets))}")
    wanted = set(subsets[subset])
    return [row for row in shipped if row.id in wanted]


def _predict(
    chosen: Sequence[Row],
    predictor: Predictor,
    config: str | None,
    sets: Sequence[str],
    options: dict[str, Any],
) -> tuple[list[tuple[Row, Prediction]], list[tuple[Row, str]]]:
    """Predictions of the rows that can be predicted, and reasons for the others."""
    asked: dict[str, list[Request]] = {}
    reasons: dict[str, str] = {}
    for row in chosen:
        try:
            machine = methods.machine_for(row, config, sets)
            asked[row.id] = methods.requests_for(row, machine, options)
        except Unmatched as reason:
            reasons[row.id] = str(reason)
    answers = predictor.predict(request for requests in asked.values() for request in requests)
    predicted = []
    for row in chosen:
        if row.id in asked:
            try:
                of_row = [answers[request] for request in asked[row.id]]
                predicted.append((row, methods.combine(row, of_row)))
            except Unmatched as reason:
                reasons[row.id] = str(reason)
    return predicted, [(row, reasons[row.id]) for row in chosen if row.id in reasons]


def _scored(
    predicted: Sequence[tuple[Row, Prediction]], offsets: dict[str, float]
) -> list[score.Scored]:
    return [
        score.Scored(row, prediction, score.offset_for(row, offsets))
        for row, prediction in predicted
    ]


def _apart(
    predictor: Predictor, config: str | None, sets: Sequence[str], options: dict[str, Any]
) -> dict[str, Any]:
    """The five profiles, their instructions, and the measurements of Trainium1."""
    machine = predict.Machine(config or "trn2.3xlarge", "trn2", tuple(sets))
    replayed, failed = apart.replays(predictor.trn_sim, machine.config, sets)
    found: dict[str, Any] = {
        "replays": apart.profile_figures(replayed),
        "not_replayed": failed,
        "instructions": apart.instruction_figures(replayed, predictor, machine),
    }
    for name in ("profile", "trn1"):
        chosen = rows.read(places.folder("validation") / f"{name}_rows.csv")
        of_trn2 = sets if name == "profile" else ()
        predicted, unmatched = _predict(chosen, predictor, config, of_trn2, options)
        offsets = score.fit_offsets(predicted)
        found["profile_kernels" if name == "profile" else name] = report.figures(
            _scored(predicted, offsets), unmatched, offsets
        )
    return dict(report.rounded(found))


def _options(texts: Sequence[str]) -> dict[str, Any]:
    """Builder options as trn-trace takes them."""
    import trnsim
    from trnsim import cli, specs

    namespace = argparse.Namespace(option=list(texts), no_spill=False)
    try:
        return cli._options(namespace) if texts else {}
    except specs.SpecError as error:
        raise UsageError(str(error)) from None


def _cache(folder: str | None) -> Path:
    cache = Path(folder) if folder else predict.default_cache()
    try:
        cache.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"--cache {cache}: {error.strerror}") from None
    return cache


def _progress(given: argparse.Namespace) -> Any:
    terminal = sys.stderr.isatty()
    if given.quiet or not (terminal or given.progress):
        return None

    def show(done: int, of: int) -> None:
        start, end = ("\r\033[K", "") if terminal else ("", "\n")
        print(f"{start}{done} of {of} kernels", end=end, file=sys.stderr, flush=True)
        if terminal and done == of:
            print("\r\033[K", end="", file=sys.stderr, flush=True)

    return show


def _yaml(name: str) -> dict[str, Any]:
    import yaml

    file = places.folder("validation") / name
    return dict(yaml.safe_load(file.read_text(encoding="utf-8")) or {}) if file.is_file() else {}


def _stored_offsets() -> dict[str, float]:
    """Nanoseconds by offset_group, as fitted on the shipped rows."""
    return {group: 1e3 * us for group, us in _yaml("offsets.yaml").get("offsets_us", {}).items()}


def _write_offsets(offsets_us: dict[str, float]) -> None:
    lines = [
        "# What nki.benchmark reports over the device time, by offset_group. Fitted on all shipped",
        "# rows of the group and written by `trn-sim validate --write-offsets`; used for other rows.",
        "offsets_us:",
        *(f"  {group}: {offset:.1f}" for group, offset in sorted(offsets_us.items())),
    ]
    _write("offsets.yaml", "\n".join(lines) + "\n")


def _write(name: str, text: str) -> None:
    file = places.folder("validation") / name
    try:
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{file}: {error.strerror}") from None


def _print(found: dict[str, Any], given: argparse.Namespace) -> None:
    if given.plot:
        from trnsim.validation import pages

        pages.write(found, given.plot)
    if given.markdown:
        said = document.short(found)
    elif given.report == "json":
        said = json.dumps(found, indent=2) + "\n"
    else:
        said = report.text(found)
    if given.output:
        try:
            Path(given.output).write_text(said, encoding="utf-8")
        except OSError as error:
            raise UsageError(f"{given.output}: {error.strerror}") from None
    else:
        sys.stdout.write(said)
    if found.get("broken") and (given.output or given.markdown or given.report == "json"):
        for line in found["broken"]:
            print(f"trn-sim: limit broken: {line}", file=sys.stderr)
