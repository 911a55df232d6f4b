"""The program `shoal` without its start-up time: a process with all imports is forked for every command.

Pages run some fifty commands, and a start takes longer than what most of them do. A command has a process, a folder,
an environment and standard streams of its own, as it has when started by itself; the pages of the slow tests do that.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import pkgutil
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

HERE = Path(__file__).resolve()
# how often it is looked whether the command has ended
SECONDS = 0.01

CLIENT = """#!{python} -IS
import json, os, socket, sys
if sys.argv[1:2] == ["serve"]:  # lasts as long as the page's shell, and belongs to it
    os.execv({program!r}, [{program!r}, *sys.argv[1:]])
with socket.socket(socket.AF_UNIX) as line:
    line.connect({address!r})
    asked = json.dumps([sys.argv[1:], os.getcwd(), dict(os.environ)]).encode()
    socket.send_fds(line, [len(asked).to_bytes(4, "big")], [0, 1, 2])
    line.sendall(asked)
    status = line.recv(1)
sys.exit(status[0] if status else 70)
"""


@contextlib.contextmanager
def warm_program(folder: Path) -> Iterator[Path]:
    """A folder with a program `shoal` to put before the others in PATH; it works until the end of the block."""
    address = folder / "socket"
    client = folder / "bin" / "shoal"
    client.parent.mkdir(parents=True)
    program = Path(sys.executable).with_name("shoal")
    client.write_text(CLIENT.format(python=sys.executable, program=str(program), address=str(address)))
    client.chmod(0o755)
    environment = os.environ | {"PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(
        [sys.executable, str(HERE), str(address)], env=environment, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        try:
            yield client.parent
        finally:
            process.kill()


def serve(address: str) -> None:
    import pandas  # noqa: F401

    import shoal

    for module in pkgutil.walk_packages(shoal.__path__, "shoal."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for those who attend to commands
    with socket.socket(socket.AF_UNIX) as door:
        door.bind(address)
        door.listen()
        print("ready", flush=True)
        while True:
            line, _ = door.accept()
            if os.fork() == 0:
                door.close()
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                attend(line)
                os._exit(0)
            line.close()


def attend(line: socket.socket) -> None:
    """Run one command and tell its status; it ends with whoever asked for it."""
    size, streams, _, _ = socket.recv_fds(line, 4, 3)
    asked = b""
    while len(asked) < int.from_bytes(size, "big"):
        asked += line.recv(1 << 16)
    child = os.fork()
    if child == 0:
        command(*json.loads(asked), streams)
    ended, status = 0, 0
    while not ended:
        gone, _, _ = select.select([line], [], [], SECONDS)
        if gone:
            os.kill(child, signal.SIGKILL)
        ended, status = os.waitpid(child, 0 if gone else os.WNOHANG)
    with contextlib.suppress(OSError):
        line.sendall(bytes([os.waitstatus_to_exitcode(status) & 0xFF]))


def command(arguments: list[str], folder: str, environment: dict[str, str], streams: list[int]) -> None:
    status = 70
    try:
        for number, stream in enumerate(streams):
            os.dup2(stream, number)
        os.chdir(folder)
        os.environ.clear()
        os.environ.update(environment)
        sys.argv = ["shoal", *arguments]
        from shoal.cli import main

        main()
        status = 0
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else int(end.code is not None)
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


if __name__ == "__main__":
    serve(sys.argv[1])
