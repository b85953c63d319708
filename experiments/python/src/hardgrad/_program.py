"""The program `hardgrad`, which the package brings along. What takes long, it does in a process of its own."""
from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from ._core import Bug, Error, InputError, UsageError

#: Within the package, so that both are of one version.
PROGRAM = Path(__file__).parent / "bin" / "hardgrad"
_OWN = "hardgrad: "  # how its sentences begin; other lines are progress


@dataclass(frozen=True)
class Said:
    """What the program left: its exit status (0; 1 if something failed that was asked for; 4 if it waits for the other shards) and standard
    output."""
    status: int
    output: str

    def json(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.output)
        return found


def call(arguments: Sequence[str], progress: bool) -> Said:
    """Runs `hardgrad ARGUMENTS`. Its warnings and, with `progress`, how far it is go to sys.stderr, wherever that leads. Raises its
    errors by their exit status, each with the program's sentence.

    Ctrl-C reaches the program as in a terminal: once, it saves what it is at, and KeyboardInterrupt follows; once more, it is killed.
    """
    relay = _Relay(progress)
    interrupts = 0
    with tempfile.TemporaryFile("w+", encoding="utf-8") as output:
        # In a process group of its own, so that a terminal's Ctrl-C comes by way of us, and only once.
        with subprocess.Popen([str(PROGRAM), *arguments], stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.PIPE, text=True,
                              encoding="utf-8", errors="replace", process_group=0) as process:
            assert process.stderr is not None
            try:
                while True:
                    try:
                        for line in process.stderr:
                            relay.tell(line)
                        process.wait()
                        break
                    except KeyboardInterrupt:
                        interrupts += 1
                        relay.hold = False
                        process.send_signal(signal.SIGINT if interrupts == 1 else signal.SIGKILL)
            except BaseException:  # nobody is left to read it
                process.kill()
                raise
        if process.returncode not in (0, 1, 4) and not interrupts:
            _fail(process.returncode, relay.last)
        relay.end()
        if interrupts:
            raise KeyboardInterrupt
        output.seek(0)
        return Said(process.returncode, output.read())


class _Relay:
    """What the program says on stderr, on its way to ours. Its last sentence is held back: if it fails, that is the exception's. (Not
    once it is interrupted, when it says what happens now.)"""

    def __init__(self, progress: bool):
        self.hold = True
        self.last = ""
        self._progress, self._behind = progress, False

    def tell(self, line: str) -> None:
        if line.startswith(_OWN):
            self.end()
            self.last = line.removeprefix(_OWN).strip()
            if not self.hold:
                self.end()
        elif self._progress and line.strip():
            live = sys.stderr is not None and sys.stderr.isatty()
            self._put(f"\r\x1b[K{line.strip()}" if live else line)  # on a terminal it stays on one line
            self._behind = live

    def end(self) -> None:
        if self._behind:
            self._put("\n")
        if self.last:
            self._put(f"{_OWN}{self.last}\n")
        self.last, self._behind = "", False

    @staticmethod
    def _put(text: str) -> None:
        if sys.stderr is not None:
            sys.stderr.write(text)
            sys.stderr.flush()


def _fail(status: int, sentence: str) -> NoReturn:
    if status < 0:
        raise Error(f"the program was ended by signal {-status} ({signal.Signals(-status).name})")
    raise {2: UsageError, 3: InputError, 70: Bug}.get(status, Error)(sentence or f"the program ended with status {status}")


def main() -> NoReturn:
    """The command `hardgrad`, where pip has installed the package."""
    os.execv(PROGRAM, ["hardgrad", *sys.argv[1:]])
