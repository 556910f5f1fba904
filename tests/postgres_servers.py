"""Runs a command on Debian's PostgreSQL 15, and once more behind its PgBouncer in transaction mode.

    .venv/bin/python tests/postgres_servers.py pytest tests/store/postgres

The command finds the server in TERTULIA_TEST_SERVER. Packages that are missing are installed with apt-get.
"""

import os
import pwd
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from socket import create_connection, create_server

BINARIES = Path("/usr/lib/postgresql/15/bin")
PGBOUNCER = """[databases]
* = host=127.0.0.1 port={port}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {listen}
auth_type = trust
auth_file = {folder}/users
pool_mode = transaction
max_client_conn = 500
default_pool_size = 20
server_idle_timeout = 5
ignore_startup_parameters = extra_float_digits
unix_socket_dir =
"""


def install() -> str | None:
    """Install what is missing; return what could not be."""
    packages = {"postgresql-15": BINARIES / "postgres", "pgbouncer": Path("/usr/sbin/pgbouncer")}
    missing = [package for package, file in packages.items() if not file.exists()]
    if missing and shutil.which("apt-get"):
        subprocess.run(["apt-get", "install", "-y", "-q", *missing], stdout=sys.stderr, check=False)
    return " and ".join(package for package in missing if not packages[package].exists()) or None


def free_port() -> int:
    with create_server(("127.0.0.1", 0)) as listening:
        port: int = listening.getsockname()[1]
        return port


def as_postgres() -> None:
    """Become another user: no server of PostgreSQL runs as root."""
    if os.getuid() == 0:
        user = pwd.getpwnam("postgres")
        os.setgid(user.pw_gid)
        os.setuid(user.pw_uid)


@contextmanager
def running(port: int, *command: str | Path) -> Iterator[None]:
    """Run a server until the block ends."""
    process = subprocess.Popen(command, preexec_fn=as_postgres, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        wait(lambda: create_connection(("127.0.0.1", port)).close())
        yield
    finally:
        process.terminate()
        process.wait()


def wait(connect: Callable[[], None]) -> None:
    for _ in range(100):
        try:
            return connect()
        except OSError:
            time.sleep(0.1)
    return connect()


@contextmanager
def servers() -> Iterator[list[str]]:
    """Start both servers; yield their URLs."""
    with tempfile.TemporaryDirectory(prefix="tertulia-servers-") as name:
        folder, port, listen = Path(name), free_port(), free_port()
        if os.getuid() == 0:
            shutil.chown(folder, "postgres")
        (folder / "users").write_text('"postgres" ""\n')
        (folder / "pgbouncer.ini").write_text(PGBOUNCER.format(port=port, listen=listen, folder=folder))
        data = folder / "data"
        made = [
            str(BINARIES / "initdb"),
            "-D",
            str(data),
            "-U",
            "postgres",
            "-A",
            "trust",
            "-E",
            "UTF8",
            "--no-locale",
            "-N",
        ]
        subprocess.run(made, preexec_fn=as_postgres, stdout=subprocess.DEVNULL, check=True)
        options = ["-D", str(data), "-p", str(port), "-k", "", "-h", "127.0.0.1", "-c", "max_connections=200"]
        with (
            running(port, BINARIES / "postgres", *options),
            running(listen, "/usr/sbin/pgbouncer", folder / "pgbouncer.ini"),
        ):
            yield [f"postgresql://postgres@127.0.0.1:{number}/postgres?sslmode=disable" for number in (port, listen)]


def main(command: list[str]) -> int:
    if missing := install():
        print(f"{missing} cannot be installed: install it, or run the tests on Debian 12", file=sys.stderr)
        return 1
    with servers() as urls:
        for name, url in zip(("PostgreSQL 15", "PgBouncer in transaction mode"), urls, strict=True):
            print(f"on {name}", flush=True)
            environment = {**os.environ, "TERTULIA_TEST_SERVER": url, "TERTULIA_TEST_STORE": "postgres"}
            if code := subprocess.run(command, env=environment, check=False).returncode:
                return code
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
