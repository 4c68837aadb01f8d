# terminal.py: a program on a pseudo-terminal, and the screen that a person would see of it.
# SPDX-License-Identifier: Apache-2.0
import fcntl
import os
import pty
import re
import select
import signal
import struct
import termios
import time

ESCAPE = re.compile(r"\x1b(?:\[([?>=]?[0-9;]*)([@-~])|\]([^\x07]*)\x07|[=>()][A-Z0-9]?)")


class Screen:
    """Enough of a terminal for line editing: lines that grow downwards, a cursor, erasing. Colours are kept apart."""

    def __init__(self, columns):
        self.columns = columns
        self.lines = [[]]
        self.row = self.column = 0
        self.colours = 0
        self.pending = ""

    def put(self, c):
        if self.column == self.columns:
            self.row, self.column = self.row + 1, 0
        while self.row >= len(self.lines):
            self.lines.append([])
        line = self.lines[self.row]
        line.extend(" " * (self.column - len(line)))
        line[self.column:self.column + 1] = [c]
        self.column += 1

    def escape(self, numbers, letter):
        n = int(numbers.split(";")[0]) if numbers and numbers[0].isdigit() else None
        line = self.lines[self.row] if self.row < len(self.lines) else []
        if letter == "A":
            self.row = max(0, self.row - (n or 1))
        elif letter == "B":
            self.row += n or 1
        elif letter == "C":
            self.column = min(self.columns - 1, self.column + (n or 1))
        elif letter == "D":
            self.column = max(0, self.column - (n or 1))
        elif letter == "G":
            self.column = (n or 1) - 1
        elif letter == "K" and not n:
            del line[self.column:]
        elif letter == "J" and not n:
            del line[self.column:]
            del self.lines[self.row + 1:]
        elif letter == "P":
            del line[self.column:self.column + (n or 1)]
        elif letter == "@":
            line[self.column:self.column] = [" "] * (n or 1)
        elif letter == "m":
            self.colours += 1

    def feed(self, text):
        text = self.pending + text
        self.pending = ""
        i = 0
        while i < len(text):
            c = text[i]
            if c == "\x1b":
                m = ESCAPE.match(text, i)
                if not m:
                    if len(text) - i < 32:
                        self.pending = text[i:]
                        return
                    i += 1
                    continue
                if m[2]:
                    self.escape(m[1], m[2])
                i = m.end()
                continue
            if c == "\r":
                self.column = 0
            elif c == "\n":
                self.row += 1
                while self.row >= len(self.lines):
                    self.lines.append([])
            elif c == "\b":
                self.column = max(0, self.column - 1)
            elif c >= " ":
                self.put(c)
            i += 1

    def text(self):
        return "\n".join("".join(line).rstrip() for line in self.lines).rstrip("\n")


class Timeout(Exception):
    pass


class Terminal:
    """A command with its three streams on a terminal of this size."""

    def __init__(self, command, env, cwd, columns=80, rows=50, seconds=60):
        self.screen = Screen(columns)
        self.seconds = seconds
        self.status = None
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            try:
                os.chdir(cwd)
                os.execve(command[0], command, env)
            finally:
                os._exit(127)
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def read(self, wait):
        """Takes in what is there; false when the program has closed its side."""
        ready, _, _ = select.select([self.fd], [], [], wait)
        if not ready:
            return True
        try:
            data = os.read(self.fd, 65536)
        except OSError:
            return False
        self.screen.feed(data.decode("utf-8", "replace"))
        return bool(data)

    def wait_for(self, found, what):
        until = time.monotonic() + self.seconds
        while not found(self.screen):
            if not self.read(0.2) or time.monotonic() > until:
                if found(self.screen):
                    return
                raise Timeout(f"{what} did not come:\n{self.screen.text()}")

    def send(self, text):
        os.write(self.fd, text.encode())

    def size(self, columns, rows):
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        self.screen.columns = columns

    def finish(self):
        """Waits for the end; the exit status, negative for a signal."""
        until = time.monotonic() + self.seconds
        while self.status is None:
            alive = self.read(0.05)
            pid, status = os.waitpid(self.pid, 0 if not alive else os.WNOHANG)
            if pid:
                self.status = os.waitstatus_to_exitcode(status)
            elif time.monotonic() > until:
                raise Timeout(f"it did not end:\n{self.screen.text()}")
        while self.read(0.05) and select.select([self.fd], [], [], 0)[0]:
            pass
        return self.status

    def close(self):
        if self.status is None:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
            self.status = -9
        os.close(self.fd)
