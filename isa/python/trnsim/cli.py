"""The trn-trace command: a kernel's file becomes a trace."""

from __future__ import annotations

import argparse
import os
import re
import sys
import traceback
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TextIO

if TYPE_CHECKING:
    from trnsim import jit, loader

DONE, BAD_INPUT, DOES_NOT_FIT, OUR_FAULT = 0, 2, 4, 70

EXAMPLE = """\
example:
  trn-trace matmul.py:tiled --arg lhsT=bf16[4096,4096] --arg rhs=bf16[4096,4096] -o t.bin
  trn-sim --config trn2.3xlarge t.bin

argument specs:
"""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> Any:
        raise _Usage(message)


class _Usage(Exception):
    pass


class _Help(argparse.Action):
    """--help; the scheduling options are known to the compiled module only."""

    def __init__(self, option_strings: Sequence[str], dest: str, **_: Any) -> None:
        super().__init__(option_strings, dest, nargs=0, help="this text")

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
        from trnsim import specs

        parser.epilog = EXAMPLE + specs.FORMS + "\n\n" + _options_text()
        parser.print_help()
        raise SystemExit(DONE)


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command; gives its exit code."""
    argv = sys.argv[1:] if argv is None else list(argv)
    try:
        return _main(argv)
    except _Usage as error:
        return _fail(f"{error}\ntry: trn-trace --help", BAD_INPUT)
    except SystemExit as error:
        return error.code if isinstance(error.code, int) else DONE
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return DONE
    except Exception as error:
        return _our_fault(error, argv)


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="trn-trace",
        description="Traces an NKI kernel, of either API generation, into a trace for trn-sim.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        add_help=False,
        allow_abbrev=False,
    )
    add = parser.add_argument
    add("kernel", metavar="FILE.py:KERNEL", nargs="?", help="the kernel; with --list only the file")
    add("--arg", action="append", default=[], metavar="NAME=SPEC", help="an argument, see below")
    add("--grid", metavar="N[,M...]", help="launch grid; 2: both cores of a logical core (LNC)")
    add("--target", default="trn2", help="the machine's generation: trn1 or trn2")
    add("--search", action="append", default=[], metavar="DIR", help="a folder for imports")
    add("-o", "--output", metavar="TRACE", help="where the trace goes")
    add("--work", action="append", default=[], metavar="AMOUNT:UNIT", help="of a run: 32:token")
    add("--option", action="append", default=[], metavar="NAME=VALUE", help="scheduling, see below")
    add("--no-spill", action="store_true", help="refuse what does not fit in SBUF")
    add("--skip-unsupported", action="store_true", help="leave such calls out, and count them")
    add("--explain", action="store_true", help="print what was recognised")
    add("--list", action="store_true", help="print the kernels of the file")
    add("--quiet", action="store_true", help="no line about what was written, no warnings")
    add("--version", action="store_true", help="print the version")
    add("--help", "-h", action=_Help)
    return parser


def _main(argv: list[str]) -> int:
    given = _parser().parse_args(argv)
    if given.version:
        import trnsim

        print(f"trn-trace {trnsim.__version__}")
        return DONE
    if given.kernel is None:
        raise _Usage("which kernel? expected FILE.py:KERNEL")
    path, name = _split(given.kernel)
    if name is None and not given.list:
        raise _Usage(f"{given.kernel}: expected FILE.py:KERNEL; --list shows a file's kernels")
    if not given.list and not given.output and not given.explain:
        raise _Usage("expected -o TRACE, --explain or --list")

    import trnsim

    try:
        trnsim.native()
    except ImportError as error:
        return _fail(str(error), OUR_FAULT)
    trnsim.activate()
    from trnsim import loader, session, specs

    try:
        loaded = loader.load(path, given.search)
        if given.list:
            return _list(loaded)
        return _trace(given, loaded, name)
    except (loader.LoadError, specs.SpecError) as error:
        return _fail(str(error), BAD_INPUT)
    except session.capacity_type() as error:
        return _fail(str(error), DOES_NOT_FIT)
    except session.error_type() as error:
        return _fail(_with_frames(str(error), error), BAD_INPUT)


def _split(text: str) -> tuple[str, str | None]:
    """FILE.py:KERNEL, where the file's name may have colons too."""
    path, colon, name = text.rpartition(":")
    if colon and all(part.isidentifier() for part in name.split(".")) and not os.path.exists(text):
        return path, name
    return text, None


def _list(loaded: loader.Loaded) -> int:
    from trnsim import loader

    found = loader.kernels(loaded)
    for kernel in found:
        how = "" if kernel.decorated else "  (not decorated)"
        how = "  (makes a kernel)" if kernel.makes else how
        print(f"{kernel.name}{kernel.signature}  line {kernel.line}{how}")
    _notes(loaded)
    if not found:
        return _fail(f"{loaded.path}: no kernels", BAD_INPUT)
    return DONE


def _trace(given: argparse.Namespace, loaded: loader.Loaded, name: str | None) -> int:
    from trnsim import jit, loader, session, specs

    assert name is not None
    kernel = loader.find_kernel(loaded, name)
    arguments: dict[str, Any] = {}
    for text in given.arg:
        key, value = specs.parse(text, loaded.scope)
        if key in arguments:
            raise specs.SpecError(f"--arg {text}: {key} is given twice")
        arguments[key] = value
    if loader.made_inside(loaded, kernel):
        kernel = loader.make(loaded, kernel, name, arguments)
        name = jit.name_of(kernel)
    args, kwargs = specs.bind(kernel, name, arguments)
    options = _options(given)
    try:
        made = jit.trace(
            kernel,
            args,
            kwargs,
            grid=_grid(given.grid),
            target=jit.canonical_target(given.target),
            options=options,
            work=[_work(text) for text in given.work],
            skip_unsupported=given.skip_unsupported,
        )
    except (specs.SpecError, session.error_type()):
        _notes(loaded)
        raise
    except Exception as error:
        _notes(loaded)
        return _kernel_failed(error)
    if given.output:
        try:
            with open(given.output, "wb") as file:
                file.write(made.data)
        except OSError as error:
            return _fail(f"{given.output}: {error.strerror}", BAD_INPUT)
    if not given.quiet:
        _notes(loaded)
        for warning in made.warnings:
            print(f"warning: {warning}", file=sys.stderr)
    if given.explain:
        explain(made, loaded, sys.stdout)
    if given.output and not given.quiet:
        print(
            f"{given.output}: {made.name}, {_sizes(made)}, {_bytes(len(made.data))}, "
            f"traced in {made.seconds:.2f} s"
        )
    return DONE


def _grid(text: str | None) -> Any:
    if text is None:
        return None
    from trnsim import session, specs

    dims: list[Any] = []
    for part in text.split(","):
        number = part.strip()
        spread = number.startswith("nc(") and number.endswith(")")
        number = number[3:-1] if spread else number
        if not number.isdigit() or int(number) < 1:
            raise specs.SpecError(f"--grid {text}: expected N, N,M or nc(2),M; got {part!r}")
        dims.append(session.nc(int(number)) if spread else int(number))
    return tuple(dims)


def _work(text: str) -> tuple[float, str]:
    from trnsim import specs

    amount, colon, unit = text.partition(":")
    try:
        number = float(amount)
    except ValueError:
        number = -1.0
    if not colon or not unit or number <= 0:
        raise specs.SpecError(f"--work {text}: expected AMOUNT:UNIT, such as 32:token")
    return number, unit


def _options(given: argparse.Namespace) -> dict[str, Any]:
    import trnsim
    from trnsim import specs

    known = trnsim.native().options()
    options: dict[str, Any] = {}
    for text in given.option:
        name, equals, value = text.partition("=")
        if not equals:
            raise specs.SpecError(f"--option {text}: expected NAME=VALUE")
        if name not in known:
            raise specs.SpecError(f"--option {name}: no such option{specs.near(name, list(known))}")
        options[name] = _option_value(text, value, known[name][0])
    if given.no_spill:
        options["spill"] = False
    return options


def _option_value(text: str, value: str, default: Any) -> Any:
    from trnsim import specs

    try:
        if isinstance(default, bool):
            return {"true": True, "1": True, "on": True, "false": False, "0": False, "off": False}[
                value.lower()
            ]
        return type(default)(value)
    except (KeyError, ValueError):
        kind = "true or false" if isinstance(default, bool) else f"a value like {default}"
        raise specs.SpecError(f"--option {text}: expected {kind}") from None


def _options_text() -> str:
    import trnsim

    try:
        known = trnsim.native().options()
    except ImportError as error:
        return f"scheduling options: {error}"
    lines = ["scheduling options (NAME=VALUE; docs/concepts/scheduling.md):"]
    for name, (default, unit, meaning) in known.items():
        value = str(default).lower() if isinstance(default, bool) else default
        lines.append(f"  {name}={value}{' ' + unit if unit else ''}\n      {meaning}")
    return "\n".join(lines)


def explain(made: jit.Trace, loaded: loader.Loaded | None, out: TextIO) -> None:
    """Prints what was recognised in a kernel."""
    names = {"old": "neuronxcc.nki (results by value)", "new": "nki (dst first)"}
    used = [names.get(generation, generation) for generation in made.generations]
    print(f"kernel        {made.name}, {made.grid}", file=out)
    print(f"API           {' and '.join(used) or 'not told'}", file=out)
    if loaded is not None and loaded.stand_ins:
        print(f"stood in for  {', '.join(loaded.stand_ins)}", file=out)
    calls = Counter(made.calls)
    for summary in made.summaries:
        calls.update(summary.get("calls", {}))
    _table("calls", calls, out)
    for key, title in (("instructions", "instructions"), ("tiles", "tiles")):
        counts: Counter[str] = Counter()
        for summary in made.summaries:
            counts.update(_counts(summary.get(key, {})))
        _table(title, counts, out)
    if made.skipped:
        _table("skipped, not supported", made.skipped, out)
    print(f"loads left out: {made.finished.get('loads_left_out', 0)}", file=out)
    lines = _loops(made.loops)
    print(f"loops kept rolled: {len(lines)}", file=out)
    for line in lines:
        print(f"  {line}", file=out)


def _counts(given: Any) -> dict[str, int]:
    if isinstance(given, dict):
        return {str(key): int(count) for key, count in given.items()}
    counts: Counter[str] = Counter()
    for entry in given:
        counts[str(entry[0])] += int(entry[1])
    return counts


def _table(title: str, counts: Counter[str], out: TextIO) -> None:
    if not counts:
        return
    print(f"{title}:", file=out)
    width = max(len(str(count)) for count in counts.values())
    for name, count in sorted(counts.items(), key=lambda entry: (-entry[1], entry[0])):
        print(f"  {count:{width}} {name}", file=out)


def _loops(given: Sequence[dict[str, Any]]) -> list[str]:
    """One line a loop of the kernel; each engine that takes part keeps a loop of its own."""
    engines: dict[tuple[Any, ...], list[str]] = {}
    for loop in given:
        key = (loop["at"], loop["iterations"], loop.get("depth", 1), loop.get("program", 0))
        engines.setdefault(key, []).append(f"{loop['engine']} {loop['instructions']}")
    return [
        f"{at}: {iterations} iterations, depth {depth}; instructions: {', '.join(names)}"
        for (at, iterations, depth, _), names in engines.items()
    ]


def _sizes(made: jit.Trace) -> str:
    """Instructions that run, and those in the file, where loops stand once."""
    runs = _count(_instructions(made), "instruction")
    loops = len(_loops(made.loops))
    if not loops:
        return runs
    written = f"{int(made.finished['written']):,}".replace(",", " ")
    return f"{runs}, written as {written} with {_count(loops, 'loop')}"


def _instructions(made: jit.Trace) -> int:
    return int(made.finished.get("instructions", 0))


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}".replace(",", " ")


def _bytes(number: float) -> str:
    for unit in ("B", "KiB", "MiB"):
        if number < 1024:
            break
        number /= 1024
    else:
        unit = "GiB"
    return f"{number:.0f} {unit}" if unit == "B" else f"{number:.1f} {unit}"


def _notes(loaded: loader.Loaded) -> None:
    """Top-level statements of the file that failed; the kernel may need what they make."""
    for failure in loaded.failures:
        print(f"note: {failure} (this statement of the file failed; the rest ran)", file=sys.stderr)
    loaded.failures.clear()


def _kernel_failed(error: Exception) -> int:
    """An exception that the kernel's code raised, or our fault."""
    from trnsim import loader, session

    frames = traceback.extract_tb(error.__traceback__)
    inside = [frame for frame in frames if not session.is_python(frame.filename)]
    if inside and session.is_ours(inside[-1].filename) and not _misuses_a_call(error):
        # We raise what is the user's fault; what happens to our code, or below it, is ours.
        if inside[-1] is not frames[-1] or not str(frames[-1].line).lstrip().startswith("raise"):
            raise error
    place = ""
    for frame in reversed(inside):
        if not session.is_ours(frame.filename):
            place = f"{frame.filename}:{frame.lineno}: "
            break
    if not place:
        # Nothing of the kernel ran: the arguments do not suit it.
        return _fail(loader.describe(error), BAD_INPUT)
    return _fail(_with_frames(place + loader.describe(error), error), BAD_INPUT)


def _misuses_a_call(error: Exception) -> bool:
    """Whether Python refused the arguments of a call of the API, which passes them on."""
    from trnsim import packages

    found = re.match(r"(\w+)\(\) (?:missing|got|takes) ", str(error))
    if not isinstance(error, TypeError) or found is None:
        return False
    return found[1] in packages.ISA_OLD or found[1] in packages.LANGUAGE


def _with_frames(message: str, error: BaseException) -> str:
    """A message, and below it how the kernel came there, when it took more than one call."""
    from trnsim import loader

    lines = loader.user_lines(error)
    if len(lines) == 1 and message.startswith(lines[0].partition(": in ")[0]):
        return message
    if len(lines) > 12:
        lines[3:-8] = [f"... {len(lines) - 11} more calls"]
    return "\n  ".join([message, *lines])


def _fail(message: str, code: int) -> int:
    sys.stdout.flush()
    print(f"trn-trace: {message}", file=sys.stderr)
    return code


def _our_fault(error: Exception, argv: Sequence[str]) -> int:
    import shlex

    from trnsim import loader

    sys.stdout.flush()
    print(
        "trn-trace: a fault of ours: please report it with the kernel's file and this text\n"
        f"  command: trn-trace {shlex.join(argv)}",
        file=sys.stderr,
    )
    for line in loader.user_lines(error):
        print(f"  kernel: {line}", file=sys.stderr)
    print("".join(traceback.format_exception(error)).rstrip(), file=sys.stderr)
    return OUR_FAULT
