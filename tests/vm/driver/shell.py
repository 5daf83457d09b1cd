"""Running host commands: quiet when they succeed, complete when they fail."""

import subprocess
from pathlib import Path


class CommandFailed(Exception):
    """A host command exited non-zero; the message carries its output."""


def run(*command, cwd: Path | None = None, env: dict | None = None, timeout: int = 900) -> str:
    """Run one command to its end and return its standard output.

    Every command has a time limit: a build that hangs must not hang the test run.
    """
    words = [str(word) for word in command]
    done = subprocess.run(
        words, cwd=cwd, env=env, timeout=timeout, text=True,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )
    if done.returncode != 0:
        tail = (done.stdout + done.stderr)[-4000:]
        raise CommandFailed(f"{' '.join(words)}: exit status {done.returncode}\n{tail}")
    return done.stdout


def say(text: str) -> None:
    """Tell the person at the terminal what takes time now."""
    print(text, flush=True)
