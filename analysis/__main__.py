"""Command line: `python3 -m analysis answer|report|draw|site|restarts|look|compare|align
...`; see `--help`."""

from __future__ import annotations

import argparse
import io
import json
import re
import shutil
import sys
import warnings
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from .alignments import align
from .answer import MANY, answer, unranked
from .answer_words import format_answer
from .compare import as_json, compare, format_comparison
from .drawing import MOST_PANELS, SIZES, sized
from .errors import InputError, OutputError, Unverified
from .figures import FIGURES, METRICS, MOST_LINES, draw_all
from .frames import select
from .groups import runs_of
from .latex import latex_table
from .load import load, load_tuning
from .output import complain, finish, require_place, write
from .program import absent_values, program
from .report import report
from .restarts import TRAINING_LOSS, restart_table
from .result import Result
from .saving import FORMATS, saved
from .site import REFERENCE, build, own_result
from .site.remake import chosen as chosen_studies
from .site.remake import declared, overview, redrawn, remake
from .table import MOST_SETTINGS, format_table, keys_of, table
from .tried import chosen
from .views import MOST_EXAMPLES, load_attention, view_of_several, views_of


def _folder(arguments: argparse.Namespace) -> Path:
    """The folder for pictures; created if missing."""
    folder = Path(arguments.out or Path(arguments.result).with_suffix(""))
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(f"{folder}: the folder cannot be created: {error.strerror}") from error
    return folder


def _save(
    figure: Figure, folder: Path, name: str, formats: Iterable[str] = ("png", "svg")
) -> list[Path]:
    """Saves the figure in these formats; returns the paths."""
    paths = []
    for kind in formats:
        paths.append(folder / f"{name}.{kind}")
        write(paths[-1], saved(figure, kind))
    return paths


def _draw(arguments: argparse.Namespace) -> int:
    data = load(arguments.result, arguments.unverified)
    whole = Result(data)
    result, pages = (
        Result(select(data, estimator=arguments.estimator)) if arguments.estimator else whole
    ).page(arguments.page, MOST_PANELS)
    frame = _rows_of(whole, result, arguments.at)
    folder = _folder(arguments)
    paths, status = [], 0
    formats = arguments.format or ["png", "svg"]
    if "latex" in formats:
        paths.append(folder / "table.tex")
        write(paths[-1], latex_table(frame).encode())
    pictures = [one for one in formats if one != "latex"]
    suffix = f"_page{arguments.page}" if pages > 1 else ""
    named = result.count if arguments.estimator else None  # all that were asked for
    with sized(SIZES[arguments.size]):
        for name, figure in (
            draw_all(
                result,
                arguments.at,
                arguments.figure,
                arguments.metric,
                arguments.settings or named,
            )
            if pictures
            else ()
        ):
            if isinstance(figure, InputError):
                complain(f"{name}: not drawn: {figure}")
                status = (
                    3 if arguments.figure or arguments.metric and name in METRICS else status
                )  # it was asked for
                continue
            paths += _save(figure, folder, name + suffix, pictures)
    print(format_table(frame))
    print()
    for path in paths:
        print(path)
    if pages > 1:
        print(
            f"page {arguments.page} of {pages}, {MOST_PANELS} networks each; use --page N "
            "for another"
        )
    return status


def _rows_of(whole: Result, result: Result, at: str) -> pd.DataFrame:
    """The table's rows of the runs in `result`. Ranks and letters are those among all estimators of
    their networks in `whole`."""
    part = whole.of_runs(
        np.concatenate(
            [runs_of(members) for panel, members in whole.panels.items() if panel in result.panels]
        )
    )
    shown = set(result.values("run").tolist())
    kept = {
        (*group.panel, group.label)
        for group in part.groups
        if shown & set(part.values("run")[group.runs].tolist())
    }
    frame = table(part, at)
    return frame[[key in kept for key in keys_of(part, frame)]]


def _report(arguments: argparse.Namespace) -> None:
    data = load(arguments.result, arguments.unverified)
    out = Path(arguments.out or Path(arguments.result).with_suffix(".html"))
    require_place(out)
    write(out, report(data, arguments.at, load_tuning(data), arguments.settings).encode())
    print(out)


def _answer(arguments: argparse.Namespace) -> int:
    result = Result(load(arguments.result, arguments.unverified))
    answers = answer(result, arguments.by, arguments.baseline, arguments.matters)
    trials = load_tuning(result.data)
    searched = chosen(result, None if trials is None else Result(trials))
    missing = unranked(result, answers) if arguments.baseline is None else []
    if arguments.json:
        for line in missing:
            complain(line)
    print(
        answers.to_json(orient="records", indent=2)
        if arguments.json
        else format_answer(answers, searched, arguments.matters, missing)
    )
    return 1 if missing else 0


def _restarts(arguments: argparse.Namespace) -> None:
    _print(
        restart_table(load(arguments.result, arguments.unverified), arguments.by),
        arguments,
        "{:.4g}",
    )


def _look(arguments: argparse.Namespace) -> None:
    paths = [arguments.result, *arguments.more]
    networks = [load_attention(path, arguments.unverified) for path in paths]
    try:
        if arguments.examples:
            if len(arguments.examples) > MOST_EXAMPLES:
                raise InputError(
                    f"--examples: at most {MOST_EXAMPLES} are drawn at once, "
                    f"{len(arguments.examples)} are given; call it again for the others"
                )
            networks = [network.of(arguments.examples) for network in networks]
        views: Iterable[Callable[..., Figure]] = views_of(networks[0].model)
        if arguments.more:
            views = [view_of_several(*networks)]
        figures = {draw.__name__: draw(*networks) for draw in views}
    except InputError as error:
        raise InputError(f"{', '.join(paths)}: {error}") from error
    folder = _folder(arguments)
    for name, figure in figures.items():
        print(*_save(figure, folder, name), sep="\n")


def _compare(arguments: argparse.Namespace) -> None:
    first, second = (
        load(path, arguments.unverified) for path in (arguments.result, arguments.second)
    )
    absent = absent_values(arguments.hardgrad) if arguments.hardgrad else {}
    comparison = compare(first, second, arguments.at, absent=absent)
    print(
        json.dumps(as_json(comparison), indent=2)
        if arguments.json
        else format_comparison(comparison)
    )


def _align(arguments: argparse.Namespace) -> None:
    links = align(
        arguments.folder, arguments.train, arguments.iterations, arguments.agreed, arguments.reverse
    )
    if links.attrs["pairs"] < links.attrs["all_pairs"]:
        print(
            f"{links.attrs['pairs']} of {links.attrs['all_pairs']} pairs are in both folders",
            file=sys.stderr,
        )
    _print(links, arguments, "{:.3f}")


def _site(arguments: argparse.Namespace) -> None:
    own = (
        own_result(
            Path(arguments.own),
            Path(arguments.test) if arguments.test else None,
            arguments.hardgrad,
        )
        if arguments.own
        else None
    )
    print(build(Path(arguments.out), arguments.hardgrad, own, url=arguments.url))


def _tables(arguments: argparse.Namespace) -> None:
    for line in redrawn(Path(arguments.folder)):
        print(line)


def _remake(arguments: argparse.Namespace) -> None:
    studies = chosen_studies(declared(REFERENCE), arguments.only)
    if arguments.list:
        print(overview(studies))
        return
    for line in remake(
        studies, arguments.hours, arguments.jobs, arguments.hardgrad, REFERENCE, arguments.again
    ):
        print(line, flush=True)


def _print(found: pd.DataFrame, arguments: argparse.Namespace, numbers: str) -> None:
    print(
        found.to_json(orient="records", indent=2)
        if arguments.json
        else found.to_string(index=False, float_format=numbers.format)
    )


def _positive(text: str) -> float:
    value = float(text)
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"{text}: give a positive number")
    return value


def _address(text: str) -> str:
    if not re.fullmatch(r"https?://[^\s<>\"]+", text):
        raise argparse.ArgumentTypeError(f"{text}: give an address that begins with https://")
    return text


def _count(text: str) -> int:
    count = int(text)
    if count < 1:
        raise argparse.ArgumentTypeError(f"{text}: give 1 or more")
    return count


Add = Callable[..., argparse.ArgumentParser]  # name of a verb, its function, description, json


_DRAWN = f"{MOST_LINES} drawn, {MOST_SETTINGS} where each has a row"


def _add_pages(add: Add) -> None:
    for name, run, text, out in (
        (
            "report",
            _report,
            "write one self-contained HTML page",
            "file (default: beside the result)",
        ),
        (
            "draw",
            _draw,
            "write figures as pictures, print the table",
            "folder (default: the result's name)",
        ),
    ):
        verb = add(name, run, text)
        verb.add_argument("result", metavar="RESULT.h5", help="merged result")
        verb.add_argument("--out", help=out)
        verb.add_argument(
            "--at",
            default="half",
            help="step whose bias and variance are shown: first, half, last or a number (default: "
            "half, the measured step "
            "nearest to half of the training, where baselines are trained)",
        )
        if name == "report":
            verb.add_argument(
                "--settings",
                type=_count,
                metavar="N",
                help="number of settings per network to list in full, and of settings to draw, "
                f"best first (default: {MOST_SETTINGS} listed, {_DRAWN})",
            )
        else:
            verb.add_argument(
                "--figure",
                action="append",
                choices=FIGURES,
                metavar="NAME",
                help="draw this figure; may be repeated (default: all that apply to the result): "
                f"{', '.join(FIGURES)}",
            )
            verb.add_argument(
                "--metric",
                metavar="NAME",
                help="metric of the metric figures, such as metric_exact_match (default: the "
                "first of "
                "each task)",
            )
            verb.add_argument(
                "--estimator",
                action="append",
                metavar="NAME",
                help="draw this estimator only, by name or as given in the sweep; may be repeated "
                "(default: all). Ranks and letters of the table stay those among all "
                "estimators",
            )
            verb.add_argument(
                "--settings",
                type=_count,
                metavar="N",
                help="number of settings in each figure, best first (default: those of "
                f"--estimator, or {_DRAWN})",
            )
            verb.add_argument(
                "--size",
                choices=SIZES,
                default="screen",
                help="paper: panels fit a column of a two-column page; talk: two fill a slide; "
                "poster: legible from two metres "
                "(default: screen)",
            )
            verb.add_argument(
                "--format",
                action="append",
                choices=[*FORMATS, "latex"],
                help="of the figures, or latex: the table, in table.tex; may be repeated "
                "(default: png and svg)",
            )
            verb.add_argument(
                "--page",
                type=int,
                default=1,
                metavar="N",
                help=f"page to draw, with {MOST_PANELS} networks each (default: 1)",
            )


def _add_rankings(add: Add) -> None:
    verb = add(
        "answer",
        _answer,
        "rank the estimators: each at its best settings, at equal cost, with the uncertainty",
        json=True,
    )
    verb.add_argument("result", metavar="RESULT.h5", help="merged result")
    verb.add_argument(
        "--by",
        metavar="QUANTITY",
        help="a loss or metric of the evaluations, such as heldout_expected_loss (default: the "
        "task's metric, or its loss)",
    )
    verb.add_argument(
        "--baseline",
        metavar="NAME",
        help="compare every estimator with this one, instead of with the best (default, of more "
        f"than {MANY} estimators: leave-one-out)",
    )
    verb.add_argument(
        "--matters",
        type=_positive,
        default=0.0,
        metavar="D",
        help="smallest difference that matters, in the unit of the quantity (of shares: 0.02 is 2 "
        "points); smaller ones count as none (default: 0)",
    )
    verb = add(
        "restarts",
        _restarts,
        "choose the run that trained best among runs that differ only in their seed",
        json=True,
    )
    verb.add_argument("result", metavar="RESULT.h5", help="merged result")
    verb.add_argument(
        "--by",
        default=TRAINING_LOSS,
        metavar="QUANTITY",
        help="criterion for the choice; use a training quantity to keep held-out ones for "
        "evaluation (default: the last training losses)",
    )


def _add_others(add: Add) -> None:
    def add_program(verb: argparse.ArgumentParser) -> None:
        verb.add_argument(
            "--hardgrad",
            metavar="PROGRAM",
            default=program(),
            help="the program (default: on the path, or in build/release)",
        )

    verb = add("look", _look, "draw a network's attention: alignments, hops, glimpses, entropy")
    verb.add_argument("result", metavar="GRADIENT.h5", help="file of `hardgrad gradient --out`")
    verb.add_argument(
        "more",
        metavar="MORE.h5",
        nargs="*",
        help="the same of other networks, for the same examples: captioners, translators and "
        "glimpse readers are drawn one below the other",
    )
    verb.add_argument(
        "--examples",
        type=int,
        nargs="+",
        metavar="N",
        help=f"those drawn, from 0, at most {MOST_EXAMPLES} (default: the first {MOST_EXAMPLES})",
    )
    verb.add_argument("--out", help="folder (default: the file's name)")
    verb = add("compare", _compare, "list changes between two results beyond noise", json=True)
    verb.add_argument("result", metavar="FIRST.h5", help="merged result")
    verb.add_argument(
        "second",
        metavar="SECOND.h5",
        help="the same sweep run again, or one that shares cells with it",
    )
    verb.add_argument(
        "--at",
        default="first",
        help="step whose bias and variance are compared: first, half, last or a number (default: "
        "first)",
    )
    verb.add_argument(
        "--hardgrad",
        metavar="PROGRAM",
        default=shutil.which(program()),
        help="the program, which knows what programs without a setting did (default: on the path, "
        "or in build/release, if there)",
    )
    verb = add(
        "site", _site, "write a static site of the committed results, and of a result of your own"
    )
    verb.add_argument("--out", default="results/site", help="folder (default: results/site)")
    verb.add_argument(
        "--with",
        dest="own",
        metavar="RESULT.h5",
        help="a merged result of your own; `hardgrad check` must find it whole",
    )
    verb.add_argument(
        "--url",
        type=_address,
        help="address where the folder will be: writes sitemap.xml (default: none)",
    )
    verb.add_argument(
        "--test", metavar="FILE", help="output of `hardgrad test NAME --json` for its estimator"
    )
    add_program(verb)
    verb = add(
        "tables",
        _tables,
        "make the tables of the reference pages anew from their files; print the pages that "
        "changed",
    )
    verb.add_argument(
        "folder",
        nargs="?",
        default=str(REFERENCE),
        metavar="DIR",
        help="folder of the pages, data/ and tables.toml (default: results/reference)",
    )
    verb = add(
        "remake",
        _remake,
        "run the studies of the reference pages (results/reference/studies.toml) from where they "
        "stopped, pack them, and make tables and figures anew",
    )
    verb.add_argument(
        "--only",
        action="append",
        default=[],
        metavar="STUDY",
        help="this study; may be repeated (default: all, those that decide most per core-hour "
        "first)",
    )
    verb.add_argument(
        "--hours",
        type=_positive,
        metavar="H",
        help="stop after so many core-hours; the same command goes on (default: no limit)",
    )
    verb.add_argument(
        "--jobs", type=_count, default=1, metavar="N", help="parallel cells (default: 1)"
    )
    verb.add_argument(
        "--again", action="store_true", help="also run studies whose file is of the same plan"
    )
    verb.add_argument(
        "--list", action="store_true", help="list the studies: price, state, tables; run nothing"
    )
    add_program(verb)


def _add_alignments(add: Add) -> None:
    verb = add(
        "align",
        _align,
        "evaluate a network's attention as a word alignment, beside IBM Models 1 and 2",
        json=True,
    )
    verb.add_argument(
        "folder",
        metavar="FOLDER",
        help="folder of `hardgrad evaluate --alignments`, with gold links",
    )
    verb.add_argument(
        "--agreed",
        action="store_true",
        help="without gold links: evaluate against the links on which the IBM models agree",
    )
    verb.add_argument(
        "--train",
        metavar="FOLDER",
        help="another such folder; the IBM models train on its pairs, too",
    )
    verb.add_argument(
        "--reverse",
        metavar="FOLDER",
        help="the same sentences by a network of the other direction: links of both, and of either",
    )
    verb.add_argument(
        "--iterations",
        type=int,
        default=5,
        metavar="N",
        choices=range(1, 1001),
        help="iterations of expectation-maximisation for each model (default: 5)",
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python3 -m analysis", description="Tables, figures and reports of a result."
    )
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB")

    def add(
        name: str, run: Callable[[argparse.Namespace], int | None], text: str, json: bool = False
    ) -> argparse.ArgumentParser:
        verb = verbs.add_parser(name, help=text, description=text)
        verb.set_defaults(run=run)
        if json:
            verb.add_argument("--json", action="store_true", help="print JSON")
        return verb

    for group in (_add_pages, _add_rankings, _add_others, _add_alignments):
        group(add)
    for verb in verbs.choices.values():
        verb.add_argument(
            "--unverified",
            action="store_true",
            help="also read files that another program has changed; their integrity is not checked",
        )
    return parser


def main(arguments: list[str] | None = None) -> int:
    """Runs a command; returns the exit status: 0, 1 (all runs of a network failed), 2 (bad usage or
    output place) or 3 (bad input)."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # file names may not be UTF-8
    parsed = _parser().parse_args(arguments)
    warnings.simplefilter("ignore")  # library warnings are not actionable for a user
    warnings.simplefilter("always", Unverified)
    warnings.showwarning = lambda message, *_: complain(f"warning: {message}")
    status = 0
    try:
        status = parsed.run(parsed) or 0
    except InputError as error:
        complain(str(error))
        status = 3
    except OutputError as error:
        complain(str(error))
        status = 2
    except OSError as error:  # stdout only: errors of files are raised as one of the above
        return finish(0, error)
    return finish(status)


if __name__ == "__main__":
    sys.exit(main())
