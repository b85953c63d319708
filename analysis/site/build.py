"""A static site made of result files: `python3 -m analysis site`."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Iterable, Iterator
from html import escape
from pathlib import Path

from matplotlib.figure import Figure

from ..errors import OutputError
from ..findings import findings
from ..output import file_name, write, writing
from ..page import SCRIPT, STYLE, link, rows_table
from ..program import TREE, asked, entries, head_of
from ..report import counted
from ..saving import small_svg
from .claims import Tested, claim_page, claimed, overview, stated, tested
from .own import Own, own_page
from .pages import Site, document, estimator_page, explorer, network_page
from .studies import committed, slug

REFERENCE = TREE / "results/reference"
_PAGES = (
    "index.html",
    "data",
    "estimators",
    "networks",
    "claims",
    "figures",
)  # of an earlier site, removed first


def build(
    out: Path,
    hardgrad: str,
    own: Own | None = None,
    reference: Path = REFERENCE,
    url: str | None = None,
) -> Path:
    """Writes the site into a folder, which it replaces if it holds an earlier site; returns its
    first page. `hardgrad`: the program, which describes its estimators. `own`: a user's result,
    shown beside those committed ones that have a network of it. `url`: the address where the
    folder will be, for `sitemap.xml`; links are relative."""
    if out.exists() and (
        not out.is_dir() or any(out.iterdir()) and not (out / "index.html").exists()
    ):
        raise OutputError(f"{out}: holds other files; name an empty folder or an earlier site")
    studies = (
        [*committed(reference / "data", own.study.result, own.absent), own.study]
        if own
        else committed(reference / "data")
    )
    site = Site.of(studies, entries(hardgrad))
    claims = [
        tested(claim, studies)
        for claim in claimed(reference / "claims.toml")
        if not own or stated(claim, studies)
    ]
    with writing(out):
        for name in _PAGES:
            shutil.rmtree(out / name, ignore_errors=True)
        for name in _PAGES[1:]:
            (out / name).mkdir(parents=True, exist_ok=True)
    write(out / "style.css", STYLE.encode())
    write(out / "script.js", SCRIPT.encode())
    for study in studies:
        write(out / "data" / study.path.name, study.path.read_bytes())
    names = []
    for name, text in _pages(site, claims, hardgrad, own, out):
        write(out / name, text.encode())
        names.append(name)
    if url:
        write(out / "sitemap.xml", sitemap(url, names).encode())
    return out / "index.html"


def sitemap(url: str, names: Iterable[str]) -> str:
    """The addresses of pages for search engines (sitemaps.org)."""
    url = url.rstrip("/")
    pages = "".join(f"<url><loc>{escape(url)}/{escape(name)}</loc></url>\n" for name in names)
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        f'<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">\n{pages}</urlset>\n'
    )


def _pages(
    site: Site, claims: list[Tested], hardgrad: str, own: Own | None, out: Path
) -> Iterator[tuple[str, str]]:
    """Name and text of every page; writes the figures of the networks."""
    yield "index.html", _index(site, claims, own)
    yield "explorer.html", explorer(site)
    measured = {
        str(one).split("[")[0] for frame in site.rows.values() for one in frame["estimator"]
    }
    known = site.catalogue["estimators"]
    yield (
        "estimators.html",
        _list(
            site,
            "Estimators",
            [
                (
                    name,
                    known[name]["summary"] if name in known else "yours",
                    known[name]["paper"] if name in known else "",
                    name in measured,
                )
                for name in dict.fromkeys([*known, *sorted(measured)])
            ],
        ),
    )
    for name in dict.fromkeys([*known, *sorted(measured)]):
        described = asked(hardgrad, "describe", name) if name in known else ""
        yield (
            f"estimators/{file_name(name)}.html",
            estimator_page(
                site, name, described, head_of(TREE / f"estimators/{file_name(name)}.cpp")
            ),
        )
    yield "networks.html", _networks(site)
    for network in site.networks:

        def put(figure: Figure, words: str, name: str = slug(network)) -> str:
            file = f"{name}-{len(list((out / 'figures').glob(name + '-*')))}.svg"
            write(out / "figures" / file, small_svg(figure))
            return (
                f'<figure><img alt="{escape(words)}" src="../figures/{file}" style="min-width: '
                '20rem"></figure>'
            )

        yield f"networks/{slug(network)}.html", network_page(site, network, put)
    yield (
        "claims.html",
        document(
            "Published claims",
            [
                f"<p>{_counts(claims)} Each claim is an order of numbers, or a bound, tested "
                "on a committed file.</p>",
                overview(claims),
            ],
        ),
    )
    for one in claims:
        yield f"claims/{file_name(one.claim['name'])}.html", claim_page(site, one)
    if own:
        yield "yours.html", own_page(site, own)


def _counts(claims: list[Tested]) -> str:
    counts = Counter(one.verdict for one in claims)
    return (
        f"Of {counted(len(claims), 'published claim')}: "
        + ", ".join(
            f"{counts[word]} {word}"
            for word in ("reproduced", "not reproduced", "undecided")
            if counts[word]
        )
        + "."
    )


def _index(site: Site, claims: list[Tested], own: Own | None) -> str:
    runs = sum(study.result.count for study in site.studies)
    kinds = {str(one).split("[")[0] for frame in site.rows.values() for one in frame["estimator"]}
    parts = [
        "<p>Hardgrad compares gradient estimators for hard attention: their bias, their "
        "variance, and how well networks learn with them. Here are "
        f"{counted(len(kinds), 'estimator')} on {counted(len(site.networks), 'network')}, "
        f"{runs:,} runs. Every number comes from a result file that "
        "can be downloaded, with the command that makes it again.</p>"
    ]
    if own:
        parts.append(
            '<p class="warn">This site has a result of your own: '
            f"{link('yours.html', own.study.name)}. Of the committed files it has the networks of "
            "this one; <code>python3 -m analysis site</code> has all.</p>"
        )
    parts.append('<h2 id="findings">Findings</h2>')
    for study in site.studies:
        said, about = findings(study.result), study.result.texts.get("description", "")
        head = f"<strong>{escape(study.name)}</strong>" + (f": {escape(about)}" if about else "")
        opened = " open" if said and study is site.studies[0] else ""
        parts.append(
            f"<details{opened}><summary>{head}</summary>"
            f'<ul class="found">{"".join(f"<li>{escape(one)}</li>" for one in said)}</ul></details>'
        )
    parts += [
        '<h2 id="claims">Published claims</h2>',
        f"<p>{_counts(claims)}</p>",
        overview(claims),
        '<h2 id="files">Files</h2>',
        _files(site),
        '<h2 id="add">A result of your own</h2>',
        "<p>Run one of the sweeps with your estimator added to its list, merge it, and build "
        "the site again. The estimator may come from a plugin. "
        "The file must pass <code>hardgrad check</code>.</p>"
        f"<pre>{escape(_ADD)}</pre><p>The site then compares each of your numbers with the "
        "committed ones and lists the differences beyond noise.</p>",
    ]
    return document("Gradient estimators for hard attention, measured", parts)


_ADD = """hardgrad run experiments/configs/every_estimator.toml --out mine-run --set 'grid.estimator=["mine", "rloo"]'
hardgrad merge mine-run --out mine.h5
hardgrad test mine --json > mine.json
python3 -m analysis site --with mine.h5 --test mine.json"""  # noqa: E501


def _files(site: Site) -> str:
    rows = []
    for study in site.studies:
        result, made = study.result, study.result.data.attrs
        changed = ", changed" if str(made.get("git_dirty")) == "true" else ""
        rows.append(
            [
                link(f"data/{study.path.name}", study.path.name),
                result.count,
                len(set(result.values("seed").tolist())),
                "tuned" if study.tuned else "fixed",
                str(made.get("git_commit", ""))[:8] + changed,
                made.get("cpu", "–"),
                made.get("blas_kernel", "–"),
                f"{study.path.stat().st_size / 1024:.0f} kB",
            ]
        )
    return rows_table(
        rows, ["file", "runs", "seeds", "settings", "commit", "processor", "BLAS kernel", "size"]
    )


def _list(site: Site, title: str, rows: list[tuple[str, str, str, bool]]) -> str:
    cells = [
        [link(f"estimators/{file_name(name)}.html", name), summary, paper, "yes" if here else "–"]
        for name, summary, paper, here in rows
    ]
    return document(
        title,
        [
            rows_table(
                cells,
                ["estimator", "in a sentence", "source", "measured here"],
                wrap=("in a sentence", "source"),
            )
        ],
    )


_FIRSTS = ("first of each target at equal steps", "at equal rows")


def _networks(site: Site) -> str:
    rows = []
    for network, title in site.networks.items():
        files = [
            study.name
            for study in site.studies
            if (
                (site.rows[study.name]["task"] == network[0])
                & (site.rows[study.name]["model"] == network[1])
            ).any()
        ]
        best = [
            "; ".join(
                row["estimator"]
                + (f" ({row['target'].replace('_', ' ')})" if row["target"] else "")
                for name in files
                for _, row in _best(site, name, network, budget)
            )
            or "–"
            for budget in ("steps", "rows")
        ]
        rows.append(
            [
                link(f"networks/{slug(network)}.html", title),
                ", ".join(files),
                *best,
            ]
        )
    return document(
        "Networks",
        [
            rows_table(
                rows,
                ["task and model", "files", *_FIRSTS],
                wrap=("task and model", *_FIRSTS),
            )
        ],
    )


def _best(site: Site, name: str, network: tuple[str, str], budget: str):
    """The first of every target."""
    found = site.answers[name]
    return (
        found[
            (found["task"] == network[0])
            & (found["model"] == network[1])
            & (found["budget"] == budget)
            & (found["rank"] == 1)
        ].iterrows()
        if len(found)
        else []
    )
