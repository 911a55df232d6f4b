"""Run commands one after another in bash, and capture the output and exit status of each."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import uuid
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType

from shoal.journal import PLACE


class Shell:
    """One bash for a whole page: variables, folders and jobs in the background last from block to block.

    Whatever it started is ended with it.
    """

    def __init__(
        self,
        folder: Path,
        environment: Mapping[str, str],
        patience: float = 600.0,
        programs: Path | None = None,
    ) -> None:
        """Start bash.

        Args:
            folder: where it begins.
            environment: variables beside those of this process.
            patience: seconds after which a command is ended.
            programs: a folder whose programs come first.
        """
        folders = [*([] if programs is None else [programs]), Path(sys.executable).parent]
        own_programs = os.pathsep.join(map(str, folders))
        kept = (name for name in os.environ if name == PLACE or not name.startswith("SHOAL_"))
        settings = {name: os.environ[name] for name in kept}
        settings |= {
            "PATH": f"{own_programs}{os.pathsep}{settings.get('PATH', '')}",
            # what a program prints arrives in the order in which a terminal would show it
            "PYTHONUNBUFFERED": "1",
            "COLUMNS": "200",
            **environment,
        }
        self._script = folder.with_name(f"{folder.name}-command.sh")
        self._patience = patience
        self._status = 0
        self._process = subprocess.Popen(
            ["bash", "--noprofile", "--norc", "-o", "pipefail"],
            cwd=folder,
            env=settings,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            encoding="utf-8",
            start_new_session=True,
        )

    def __enter__(self) -> Shell:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                stream.close()

    def _end(self) -> None:
        """The shell is the leader of a group of its own: its servers go with it."""
        try:
            os.killpg(self._process.pid, signal.SIGKILL)
        except ProcessLookupError:
            return

    def run(self, command: str) -> tuple[int, str]:
        """The exit status and everything that was printed; a command that hangs is ended with the shell."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        mark = f"<{uuid.uuid4().hex}>"
        self._script.write_text(command + "\n", "utf-8")
        # sourced with a standard input of its own, so that no command can read the next one's text
        self._process.stdin.write(
            f"(exit {self._status}); . '{self._script}' < /dev/null; printf '%s %s\\n' '{mark}' $?\n"
        )
        self._process.stdin.flush()
        guard = threading.Timer(self._patience, self._end)
        guard.start()
        printed: list[str] = []
        try:
            for line in self._process.stdout:
                # what does not end with a new line stands before the mark
                text, found, status = line.partition(mark)
                printed.append(text)
                if found:
                    self._status = int(status)
                    return self._status, "".join(printed)
        finally:
            guard.cancel()
        raise AssertionError(f"the shell ended, or was ended, during '{command}': {''.join(printed)}")
