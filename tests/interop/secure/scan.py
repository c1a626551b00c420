"""Scan TLS listeners with sslyze, and print what each accepts, as JSON: `scan.py HOST:PORT …`. Runs where sslyze is."""

from __future__ import annotations

import json
import sys
from typing import Any

from sslyze import (
    ScanCommand,
    Scanner,
    ServerNetworkConfiguration,
    ServerNetworkLocation,
    ServerScanRequest,
    ServerScanResult,
)

VERSIONS = ("ssl_2_0", "ssl_3_0", "tls_1_0", "tls_1_1", "tls_1_2", "tls_1_3")
COMMANDS = {
    *(ScanCommand(f"{version}_cipher_suites") for version in VERSIONS),
    ScanCommand.TLS_COMPRESSION,
    ScanCommand.TLS_FALLBACK_SCSV,
    ScanCommand.HEARTBLEED,
    ScanCommand.ROBOT,
    ScanCommand.OPENSSL_CCS_INJECTION,
    ScanCommand.SESSION_RENEGOTIATION,
    ScanCommand.ELLIPTIC_CURVES,
}


def facts(result: ServerScanResult) -> dict[str, Any]:
    """Of one listener: what it accepts, and for each flaw whether it has it, or why that was not found out."""
    found = result.scan_result
    assert found is not None, result.connectivity_error_trace

    def of(name: str, read: Any) -> Any:
        attempt = getattr(found, name)
        return read(attempt.result) if attempt.result is not None else f"{attempt.error_reason}: {attempt.error_trace}"

    suites = {
        version: of(
            f"{version}_cipher_suites",
            lambda one: sorted(each.cipher_suite.name for each in one.accepted_cipher_suites),
        )
        for version in VERSIONS
    }
    return {
        "suites": suites,
        "curves": of("elliptic_curves", lambda one: sorted(each.name for each in one.supported_curves or ())),
        "flaws": {
            "compression": of("tls_compression", lambda one: one.supports_compression),
            "no fallback SCSV": of("tls_fallback_scsv", lambda one: not one.supports_fallback_scsv),
            "Heartbleed": of("heartbleed", lambda one: one.is_vulnerable_to_heartbleed),
            "ROBOT": of("robot", lambda one: not one.robot_result.name.startswith("NOT_VULNERABLE")),
            "CCS injection": of("openssl_ccs_injection", lambda one: one.is_vulnerable_to_ccs_injection),
            "insecure renegotiation": of("session_renegotiation", lambda one: not one.supports_secure_renegotiation),
            "renegotiation by the client": of(
                "session_renegotiation", lambda one: one.is_vulnerable_to_client_renegotiation_dos
            ),
        },
    }


def main(addresses: list[str]) -> None:
    scanner = Scanner()
    places = [ServerNetworkLocation(host, int(port)) for host, _, port in (one.rpartition(":") for one in addresses)]
    scanner.queue_scans(
        [
            ServerScanRequest(place, ServerNetworkConfiguration(place.hostname), scan_commands=COMMANDS)
            for place in places
        ]
    )
    found = {f"{one.server_location.hostname}:{one.server_location.port}": facts(one) for one in scanner.get_results()}
    json.dump(found, sys.stdout)


main(sys.argv[1:])
