"""A Kerberos of a test's own: MIT's KDC on 127.0.0.1, with principals and keytabs; and a second one that it trusts."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

from attrs import define, field
from outside_tools import missing
from zookeepers import free_ports

REALM, OTHER_REALM = "TEST.LOCAL", "OTHER.LOCAL"
TRIES = 5
"""To start on a port that was free a moment ago."""
_CLOCK = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>
static long shift(void) { return atol(getenv("SHIFT_S")); }
time_t time(time_t *at) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  if (at) *at = now.tv_sec;
  return now.tv_sec;
}
int gettimeofday(struct timeval *restrict at, void *restrict zone) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  at->tv_sec = now.tv_sec;
  at->tv_usec = now.tv_nsec / 1000;
  return 0;
}
int clock_gettime(clockid_t clock, struct timespec *at) {
  int (*real)(clockid_t, struct timespec *) = dlsym(RTLD_NEXT, "clock_gettime");
  int failed = real(clock, at);
  if (clock == CLOCK_REALTIME) at->tv_sec += shift();
  return failed;
}
"""
"""The clock of a KDC that is wrong by SHIFT_S."""
_PATH = os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/sbin"])


@define
class Kdc:
    """`environment` has what programs that use it need; the JVM takes `java_option`."""

    folder: Path
    port: int
    realm: str = REALM
    process: subprocess.Popen[str] | None = field(default=None, repr=False)

    @property
    def krb5_conf(self) -> Path:
        return self.folder / "krb5.conf"

    @property
    def java_option(self) -> str:
        return f"-Djava.security.krb5.conf={self.krb5_conf}"

    @property
    def environment(self) -> dict[str, str]:
        return {
            "KRB5_CONFIG": str(self.krb5_conf),
            "KRB5_KDC_PROFILE": str(self.folder / "kdc.conf"),
            "KRB5CCNAME": f"FILE:{self.folder / 'default.ccache'}",
            "KRB5RCACHENAME": f"file2:{self.folder / 'replays'}",
            "JAVA_TOOL_OPTIONS": self.java_option,
        }

    def keytab(self, *principals: str, name: str = "", options: str = "") -> Path:
        """Make principals, with new keys, and give the file that has those. `options` are those of addprinc."""
        path = self.folder / f"{name or principals[0].replace('/', '_')}.keytab"
        commands = []
        for principal in principals:
            commands += [f"addprinc -randkey {options} {principal}", f"ktadd -k {path} {principal}"]
        self.run("kadmin.local", "-r", self.realm, text="\n".join([*commands, ""]))
        assert path.exists()
        return path

    def start(self, shift_s: int = 0) -> None:
        """With a clock that is fast by `shift_s`."""
        command = [_found("krb5kdc"), "-n", "-r", self.realm]
        clock = {"LD_PRELOAD": str(self._clock()), "SHIFT_S": str(shift_s)} if shift_s else {}
        self.process = subprocess.Popen(
            command, env=os.environ | self.environment | clock, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE,
            text=True,
        )  # fmt: skip
        assert self.process.stderr is not None
        said = []
        for line in self.process.stderr:
            said.append(line)
            if "starting" in line:
                return
        self.stop()
        raise AssertionError(f"krb5kdc did not start: {said}")

    def stop(self) -> None:
        if self.process is not None:
            self.process.terminate()
            self.process.wait(120)
            assert self.process.stderr is not None
            self.process.stderr.close()
            self.process = None

    def trust(self, other: Kdc) -> None:
        """Principals of the other realm may have tickets for services of this one; programs find both."""
        for kdc in (self, other):
            kdc.run("kadmin.local", "-r", kdc.realm, text=f"addprinc -pw shared krbtgt/{self.realm}@{other.realm}\n")
        self.krb5_conf.write_text(
            self.krb5_conf.read_text() + f" {other.realm} = {{\n  kdc = 127.0.0.1:{other.port}\n }}\n"
            f"[domain_realm]\n localhost = {self.realm}\n"
        )

    def _clock(self) -> Path:
        """A library for the KDC, by which it has another time."""
        library = self.folder / "clock.so"
        if not library.exists():
            (self.folder / "clock.c").write_text(_CLOCK)
            self.run("cc", "-shared", "-fPIC", "-o", str(library), str(self.folder / "clock.c"), "-ldl")
        return library

    def run(self, program: str, *arguments: str, text: str = "") -> None:
        command = [_found(program), *arguments]
        done = subprocess.run(
            command, env=os.environ | self.environment, input=text, capture_output=True, text=True, timeout=300
        )
        assert done.returncode == 0, done.stderr

    def write(self) -> None:
        """Its files and database."""
        self.krb5_conf.write_text(
            f"[libdefaults]\n default_realm = {self.realm}\n dns_lookup_kdc = false\n dns_lookup_realm = false\n"
            " rdns = false\n dns_canonicalize_hostname = false\n udp_preference_limit = 1\n"
            f"[realms]\n {self.realm} = {{\n  kdc = 127.0.0.1:{self.port}\n }}\n"
        )
        (self.folder / "kdc.conf").write_text(
            f'[kdcdefaults]\n kdc_listen = ""\n kdc_tcp_listen = 127.0.0.1:{self.port}\n'
            f"[realms]\n {self.realm} = {{\n  database_name = {self.folder}/principals\n"
            f"  key_stash_file = {self.folder}/stash\n  acl_file = {self.folder}/acl\n  max_life = 1h\n"
            "  supported_enctypes = aes256-cts-hmac-sha1-96:normal aes128-cts-hmac-sha1-96:normal\n }\n"
            f"[logging]\n kdc = FILE:{self.folder}/kdc.log\n"
        )
        if not (self.folder / "stash").exists():
            self.run("kdb5_util", "create", "-s", "-r", self.realm, "-P", "master")


def _found(program: str) -> str:
    path = shutil.which(program, path=_PATH)
    if path is None:
        missing(f"{program} is not installed (Debian: krb5-kdc, krb5-admin-server)")
    return path


@contextmanager
def serving(folder: Path, realm: str = REALM) -> Iterator[Kdc]:
    """A KDC that answers. Skips the test where it, or the package gssapi, is missing."""
    if find_spec("gssapi") is None:
        missing("the package gssapi is not installed (the extra `kerberos`)")
    for program in ("krb5kdc", "kdb5_util", "kadmin.local"):
        _found(program)
    for tries_left in reversed(range(TRIES)):
        kdc = Kdc(folder, free_ports(1)[0], realm)
        kdc.write()
        try:
            kdc.start()
        except AssertionError:
            if not tries_left:
                raise
            continue
        break
    try:
        yield kdc
    finally:
        kdc.stop()
