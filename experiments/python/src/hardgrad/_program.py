"""The program `hardgrad`, which is part of the package. Long computations run in its process."""
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

#: Within the package, so that both have the same version.
PROGRAM = Path(__file__).parent / "bin" / "hardgrad"
_OWN = "hardgrad: "  # prefix of its messages; other lines are progress


@dataclass(frozen=True)
class Said:
    """The program's result: exit status (0; 1 if a requested part failed; 4 if it waits for the other shards) and standard
    output."""
    status: int
    output: str

    def json(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.output)
        return found


def call(arguments: Sequence[str], progress: bool) -> Said:
    """Runs `hardgrad ARGUMENTS`. Its warnings and, with `progress`, its progress go to sys.stderr, also if that is redirected. Raises
    its errors by exit status, with the program's message.

    Ctrl-C reaches the program as in a terminal: the first one lets it save cells at work, and KeyboardInterrupt follows; the second
    one kills it.
    """
    relay = _Relay(progress)
    interrupts = 0
    with tempfile.TemporaryFile("w+", encoding="utf-8") as output:
        # In a separate session, so that a terminal's Ctrl-C reaches it only through this process, and only once.
        with subprocess.Popen([str(PROGRAM), *arguments], stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.PIPE, text=True,
                              encoding="utf-8", errors="replace", start_new_session=True) as process:
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
            except BaseException:  # its output is no longer read
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
    """Copies the program's stderr to ours. The last message is held back: if the program fails, the exception carries it. After an
    interrupt no message is held back."""

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
    """The command `hardgrad` of an installation by pip."""
    os.execv(PROGRAM, ["hardgrad", *sys.argv[1:]])
