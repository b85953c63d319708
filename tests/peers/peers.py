"""The processes that run the peers: one per Python, library and malloc. They stay for all rows, so a library is imported once."""

from __future__ import annotations

import json
import os
import select
import subprocess
from dataclasses import dataclass
from pathlib import Path

import expert
import mkl

HERE = Path(__file__).resolve().parent
FORMS = {
    "torch": ("plain", "compiled", "tuned"),
    "jax": ("jit", "tuned jit"),
    "pyro": ("Trace_ELBO", "TraceGraph_ELBO"),
    "numpyro": ("TraceGraph_ELBO",),
}
COMPILES = ("compiled", "jit", "tuned jit")  # and all of NumPyro
TUNED = ("translator", "glimpse_reader")  # and only with choices among options


class Failed(Exception):
    pass


def environment(cache: str = "") -> dict[str, str]:
    """One thread everywhere. `cache`: a folder that keeps compiled code between runs; compile times are then those of a warm cache."""
    made = {k: v for k, v in os.environ.items() if k != "OPENBLAS_CORETYPE"}
    made |= {f"{library}_NUM_THREADS": "1" for library in ("OMP", "OPENBLAS", "MKL")}
    made |= {
        "PYTHONDONTWRITEBYTECODE": "1",
        "TORCHINDUCTOR_COMPILE_THREADS": "1",
        "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false",
        "JAX_PLATFORMS": "cpu",
        "TF_CPP_MIN_LOG_LEVEL": "3",
    }
    with open("/proc/cpuinfo") as info:
        if "avx512bw" in info.read():  # PyTorch uses AVX2 by default
            made["ATEN_CPU_CAPABILITY"] = "avx512"
    if cache:
        made |= {
            "TORCHINDUCTOR_CACHE_DIR": f"{cache}/torch",
            "JAX_COMPILATION_CACHE_DIR": f"{cache}/jax",
            "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        }
    return made


class Worker:
    def __init__(self, python: str, library: str, keeps_memory: bool, environment: dict[str, str]):
        if keeps_memory:  # malloc keeps its memory, in large pages
            environment = environment | {
                "MALLOC_MMAP_THRESHOLD_": str(1 << 33),
                "MALLOC_TRIM_THRESHOLD_": str(1 << 33),
                "MALLOC_TOP_PAD_": str(1 << 26),
                "GLIBC_TUNABLES": "glibc.malloc.hugetlb=1",
            }
        self.command, self.environment, self.process = [python, str(HERE / "worker.py"), library], environment, None

    def start(self):
        """-> the library's version and kernels, or {"missing": its name}."""
        self.process = subprocess.Popen(
            self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=self.environment
        )
        return self.read()

    def read(self, limit: float | None = None):
        ready, _, _ = select.select([self.process.stdout], [], [], limit)
        line = self.process.stdout.readline() if ready else ""
        if not line:
            self.process.kill()
            self.process.wait()
            self.process = None
            raise Failed(f"{self.command[2]} {'ended' if ready else f'did not compile in {limit:.0f} s'}")
        return json.loads(line)

    def ask(self, what, limit: float | None = None):
        if self.process is None:
            self.start()
        self.process.stdin.write(json.dumps(what) + "\n")
        self.process.stdin.flush()
        return self.read(limit)

    def close(self):
        if self.process:
            self.process.stdin.close()
            self.process.wait()


@dataclass(eq=False)
class Form:
    name: str  # in the table: "torch 2.13 compiled"
    library: str
    form: str
    worker: Worker
    about: dict

    def has(self, row) -> bool:
        model = row.model.split("[")[0]
        if "ELBO" in self.form:
            return model == "belief_network" and row.estimator == "reinforce"
        if expert.has(model) or not self.form.startswith("tuned"):
            return True
        return self.library == "torch" and model in TUNED and "policy" not in row.model and not row.training

    def load(self, row, paths: list[str], limit: float):
        compiles = self.form in COMPILES or self.library == "numpyro"
        return self.worker.ask(
            {
                "load": {
                    "form": self.form,
                    "compiles": compiles,
                    "model": row.model.split("[")[0],
                    "estimator": row.estimator,
                    "samples": row.samples,
                    "noise": row.noise,
                    "training": row.batch if row.training else 0,
                    "paths": paths,
                }
            },
            limit if compiles else None,
        )

    def time(self, n: int) -> list[float]:
        return self.worker.ask({"time": n, "form": self.form})

    def drop(self):
        """Frees the row's memory."""
        self.worker.ask({"drop": self.form})


def with_mkl(python: str, library: str, environment: dict[str, str], before: dict, folder: Path):
    """-> a worker whose MKL has its fast path, its environment, its versions, and a note on both speeds."""
    preloaded = mkl.build(folder)
    variables = environment | ({"LD_PRELOAD": str(preloaded)} if preloaded else {})
    worker = Worker(python, library, False, variables)
    after = worker.start()
    return worker, variables, after, mkl.told(f"{library} {after['version']}", before, after if preloaded else None)


def forms(pythons: list[str], environment: dict[str, str], wanted, folder: Path) -> tuple[list[Form], list[str]]:
    """The forms that these Pythons have and whose names match the regular expression `wanted`, and notes for the head of the table.
    `folder` lasts as long as the forms."""
    found, notes, missing = [], [], set(FORMS)
    cpuinfo = Path("/proc/cpuinfo").read_text()
    for python in pythons:
        for library, names in FORMS.items():
            worker = Worker(python, library, False, environment)
            about = worker.start()
            if "missing" in about:
                worker.close()
                continue
            missing.discard(library)
            variables = environment
            if mkl.needed(about, cpuinfo):
                worker.close()
                worker, variables, about, note = with_mkl(python, library, environment, about, folder)
                notes.append(note)
            kept = Worker(python, library, True, variables) if library == "torch" else worker
            version = ".".join(about["version"].split(".")[:2])
            for form in names:
                name = f"{library} {version} {form}"
                if wanted.search(name) and not (form == "compiled" and version.startswith("1.")):
                    found.append(Form(name, library, form, kept if form in ("compiled", "tuned") else worker, about))
            if not any(form.worker is worker for form in found):
                worker.close()
    return found, notes + [f"{library}: not installed in {', '.join(pythons)}" for library in FORMS if library in missing]
