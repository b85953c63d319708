#!/usr/bin/python3
"""Mutation tests: changes one arithmetic detail at a time in estimators/ and core/estimator/, and tests the result. Run by hand.

    tests/mutations.py --build build/develop --count 40 --seed 1 [--only 'estimators/re*'] [--all-tests] --out mutations.jsonl

`hardgrad test` judges the mutants. All mutants of an estimator are in one plugin; each mutant of a shared file is built into a separate
program, which needs a build by file (preset `develop`). With --all-tests, survivors are also linked into the estimators' tests. The tree
and the build do not change. The same seed draws the same mutants; those that are already in --out are not built again.
"""

import argparse
import fnmatch
import json
import random
import re
import subprocess
import sys
import tempfile
from functools import lru_cache
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "support"))
from mutants import ROOT, judged, name_of, plugin, side_by_side, verdicts  # noqa: E402
from relinked import includes, relinked  # noqa: E402

SWAPS = {
    " + ": " - ",
    " - ": " + ",
    " * ": " / ",
    " / ": " * ",
    " += ": " -= ",
    " -= ": " += ",
    " *= ": " /= ",
    " /= ": " *= ",
    " < ": " <= ",
    " > ": " >= ",
    " <= ": " < ",
    " >= ": " > ",
}
WORDS = {
    "std::max(": "std::min(",
    "std::min(": "std::max(",
    "add(": "subtract(",
    "subtract(": "add(",
    "log1p(": "log(",
    "expm1(": "exp(",
}
# Estimators that are slow to test: the last to judge a shared file.
SLOW = {"gumbel_rao", "rebar", "relax", "arsm", "carms", "arms", "ars"}
# Simple estimators that represent their target: the first to judge a shared file.
PLAIN = {"rloo", "vimco"}


def code_of(line):
    """The line with its comment and strings replaced by blanks of the same length."""
    line = re.sub(r'"(\\.|[^"\\])*"', lambda m: " " * len(m[0]), line)
    return re.sub(r"//.*", lambda m: " " * len(m[0]), line)


def mutations(path):
    """(line number, column, old, new) of all possible changes in a file. Excluded are declarations, loops, strings, template arguments,
    registry entries and the expected values of promises."""
    found, skipping = [], None
    for number, line in enumerate((ROOT / path).read_text().splitlines()):
        if line.startswith("const EstimatorEntry"):
            break
        if re.match(r"(SmallChoice::Vector expected|Promise::Losses advantages)\(", line):
            skipping = "}" if not line.rstrip().endswith("}") else None
            continue
        if skipping:
            skipping = None if line.startswith(skipping) else skipping
            continue
        code = code_of(line)
        if re.match(r"\s*(#|for \(|template|static constexpr std|using|explicit)", code) or "assert(" in code:
            continue
        for old, new in SWAPS.items():
            found += [
                (number, m.start(), old, new)
                for m in re.finditer(re.escape(old), code)
                if not re.search(r"\b(auto|int|double|class|typename)\s*$", code[: m.start()])
            ]
        for old, new in WORDS.items():
            found += [
                (number, m.start(), old, new)
                for m in re.finditer(r"(?<![\w:])" + re.escape(old), code)
                if not re.search(r"(void|AtLogits|Var<T>|auto|double)\s+$", code[: m.start()])
            ]
        for m in re.finditer(r"(?<=[(,=?:{] )-(?=[\w(])|(?<=\()-(?=[\w(])|(?<=return )-(?=[\w(])", code):
            found.append((number, m.start(), "-", ""))
        for m in re.finditer(r"(?<![\w.<>\[])\d+(\.\d+)?(?![\w.>\]])", code):
            old = m[0]
            new = {"0": "1", "1": "2", "0.0": "1.0"}.get(old, str(2 * float(old)) if "." in old else str(int(old) + 1))
            found.append((number, m.start(), old, new))
    return found


def apply(path, mutation):
    number, column, old, new = mutation
    lines = (ROOT / path).read_text().split("\n")
    line = lines[number]
    assert line[column : column + len(old)] == old
    lines[number] = line[:column] + new + line[column + len(old) :]
    return "\n".join(lines), line.strip(), lines[number].strip()


@lru_cache(maxsize=None)
def users(path, most, slow=False):
    """Up to `most` estimators that use a shared file: first the closest ones (fewest includes between), then an even selection of the
    others, fast ones first. With `slow`, also all slow ones. Also one estimator of each target that uses the file: enumeration is the
    reference for estimators, and an estimator that does not enumerate detects an error in it."""
    header = str(Path(path).with_suffix(".hpp"))
    estimators = sorted((ROOT / "estimators").glob("*.cpp"), key=lambda e: (e.stem in SLOW, e.stem not in PLAIN, e.stem))
    far = {e: includes(e.relative_to(ROOT)).get(header) for e in estimators}
    using = [e for e in estimators if far[e]]
    least = min((far[e] for e in using), default=0)
    nearest = [e for e in using if far[e] == least]
    rest = [e for e in using if e not in nearest and e.stem not in SLOW]
    left = max(0, most - len(nearest))
    found = (nearest + [rest[i * len(rest) // left] for i in range(min(left, len(rest)))])[:most]
    found += [e for e in using if slow and e.stem in SLOW and e not in found]
    targets = {name_of(t.read_text()) for t in (ROOT / "core/targets").glob("*.cpp") if header in includes(t.relative_to(ROOT))}
    for e in estimators:
        target = re.search(r'\.target = "(\w+)', e.read_text())[1]
        if target in targets:
            targets.remove(target)
            found += [e] if e not in found else []
    return [str(e.relative_to(ROOT)) for e in found]


def shared_verdicts(build, path, text, folder, most):
    """The verdicts of `most` estimators that use a shared file, with a mutant of it in the program. If all pass, three times as many
    estimators judge it."""
    found, tried = [], []
    for by in (users(path, most), users(path, 3 * most, slow=True)):
        judges = [estimator for estimator in by if estimator not in tried]
        if judges:
            program = relinked(
                build, "hardgrad", path, text, folder, lambda s, by=by: s.startswith("estimators/") and s not in by
            )
        for estimator in judges:
            found = verdicts(program, name_of((ROOT / estimator).read_text()))
            if not found or not found[0]["passed"]:
                return found
        tried += judges
    return found


def together(build, path, texts, folder):
    """A library of an estimator's mutants {suffix: text}, and the mutants in it, without those that do not compile."""
    left = dict(texts)
    while left:
        try:
            return plugin(build, Path(folder) / "plugin", {path: side_by_side(path, left)}), left
        except subprocess.CalledProcessError as error:
            wrong = {m for m in re.findall(r"(m\d+)/" + re.escape(path) + r":\d+:\d+: error", error.stderr)}
            if not wrong:
                raise
            left = {suffix: text for suffix, text in left.items() if suffix not in wrong}
    return None, {}


def outcome_of(found):
    if found is None:
        return {"outcome": "died"}
    failed = sorted({c["check"] for v in found for c in v["checks"] if c["outcome"] == "failed"})
    return {"outcome": "survived" if all(v["passed"] for v in found) else "caught", "by": failed}


def seen_by_tests(build, path, text):
    """Whether the estimators' own tests, linked with the mutant, fail."""
    for target in ("tests/estimators/test_estimators", "tests/estimators/test_couplings_and_controls"):
        with tempfile.TemporaryDirectory(prefix="mutant") as folder:
            program = relinked(build, target, path, text, folder)
            try:
                if (
                    subprocess.run([str(program), "--abort-after=1"], capture_output=True, cwd=folder, timeout=3600).returncode
                    != 0
                ):
                    return True
            except subprocess.TimeoutExpired:
                return True
    return False


def same():
    """(file, line before, line after) of the known equivalent mutants: tests/same_mutants.txt."""
    found, path, before = set(), "", ""
    for line in (ROOT / "tests/same_mutants.txt").read_text().splitlines():
        if line.startswith("- "):
            before = line[2:]
        elif line.startswith("+ "):
            found.add((path, before, line[2:]))
        elif line.endswith("pp"):
            path = line
    return found


def alive(known):
    """The survivors that are not equivalent."""
    nothing = same()
    return [k for k in known if k["outcome"] == "survived" and (k["file"], k["before"], k["after"]) not in nothing]


def by_all_tests(build, known, out):
    """Runs all tests on the survivors not yet judged by them, and records the results."""
    for k in alive(known):
        if "all_tests" in k:
            continue
        text, before, _ = apply(k["file"], (k["line"] - 1, k["column"], k["old"], k["new"]))
        assert before == k["before"], f"{k['file']}:{k['line']} has changed: use a new --out"
        k["all_tests"] = seen_by_tests(build, k["file"], text)
        out.write_text("".join(json.dumps(record) + "\n" for record in known))
        print(f"{'caught' if k['all_tests'] else 'alive':16} {k['file']}:{k['line']}: {before}  ->  {k['after']}", flush=True)


def summary(known):
    live = alive(known)
    judged_ones = sum(k["outcome"] in ("caught", "died", "survived") for k in known)
    survived = sum(k["outcome"] == "survived" for k in known)
    changing = judged_ones - survived + len(live)
    others = {o: sum(k["outcome"] == o for k in known) for o in ("does not compile", "no estimator uses it")}
    return (
        f"{len(known)} mutants: {others}, {survived - len(live)} equivalent. Of the {changing} others `hardgrad test` alone caught "
        f"{changing - len(live)}, and all tests {sum(k.get('all_tests') is True for k in live)} of the {len(live)} survivors"
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build/develop")
    parser.add_argument("--count", type=int, default=20, help="mutants drawn; 0: all")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="*", help="a pattern of paths")
    parser.add_argument(
        "--users",
        type=int,
        default=6,
        help="number of estimators that judge a mutant of a shared file; if all pass, three times as many",
    )
    parser.add_argument(
        "--all-tests", action="store_true", help="also link the survivors into the estimators' tests and run them"
    )
    parser.add_argument("--out", required=True, help="file to which one JSON line per mutant is appended")
    options = parser.parse_args()
    files = [
        str(p.relative_to(ROOT)) for folder in ("estimators", "core/estimator") for p in sorted((ROOT / folder).rglob("*.?pp"))
    ]
    every = [
        (f, m)
        for f in files
        if fnmatch.fnmatch(f, options.only) and "promises" not in f and "relaxed_mean" not in f
        for m in mutations(f)
    ]
    drawn = random.Random(options.seed).sample(every, min(options.count or len(every), len(every)))
    out = Path(options.out)
    known = [json.loads(line) for line in out.read_text().splitlines()] if out.exists() else []
    done = {(k["file"], k["line"], k["column"], k["new"]) for k in known}
    print(f"{len(every)} mutations in {len(files)} files; {len(drawn)} drawn with seed {options.seed}", flush=True)

    def note(path, mutation, found):
        number, column, old, new = mutation
        _, before, after = apply(path, mutation)
        record = {
            "file": path,
            "line": number + 1,
            "column": column,
            "old": old,
            "new": new,
            "before": before,
            "after": after,
            **found,
        }
        known.append(record)
        with out.open("a") as to:
            to.write(json.dumps(record) + "\n")
        print(f"{record['outcome']:16} {path}:{number + 1}: {before}  ->  {after}", flush=True)

    todo = {}
    for path, mutation in drawn:
        if (path, mutation[0] + 1, mutation[1], mutation[3]) not in done:
            todo.setdefault(path, []).append(mutation)
    for path, mutations_of_file in todo.items():
        if path.startswith("estimators/"):
            name = name_of((ROOT / path).read_text())
            with tempfile.TemporaryDirectory(prefix="mutant") as folder:
                library, left = together(
                    options.build, path, {f"m{i}": apply(path, m)[0] for i, m in enumerate(mutations_of_file)}, folder
                )
                for i, m in enumerate(mutations_of_file):
                    note(
                        path,
                        m,
                        outcome_of(judged(options.build, library, f"{name}_m{i}"))
                        if f"m{i}" in left
                        else {"outcome": "does not compile"},
                    )
            continue
        for m in mutations_of_file:
            with tempfile.TemporaryDirectory(prefix="mutant") as folder:
                try:
                    found = (
                        outcome_of(shared_verdicts(options.build, path, apply(path, m)[0], folder, options.users))
                        if users(path, options.users)
                        else {"outcome": "no estimator uses it"}
                    )
                except subprocess.CalledProcessError:
                    found = {"outcome": "does not compile"}
                note(path, m, found)
    if options.all_tests:
        by_all_tests(options.build, known, out)
    print(summary(known))


if __name__ == "__main__":
    main()
