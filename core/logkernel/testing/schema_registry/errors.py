"""Why a registry refuses a request: an HTTP status and Confluent's error code, whose first three digits it is."""

from __future__ import annotations

from logkernel.errors import LogkernelError


class RegistryError(LogkernelError):
    """A refusal. `code` has three digits (the status itself) or five."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message

    @property
    def status(self) -> int:
        return self.code if self.code < 1000 else self.code // 100


def subject_not_found(subject: str) -> RegistryError:
    return RegistryError(40401, f"Subject '{subject}' not found.")


def version_not_found(version: int) -> RegistryError:
    return RegistryError(40402, f"Version {version} not found.")


def schema_not_found(which: object = "") -> RegistryError:
    return RegistryError(40403, f"Schema {which} not found" if which != "" else "Schema not found")


def subject_soft_deleted(subject: str) -> RegistryError:
    return RegistryError(40404, f"Subject '{subject}' was soft deleted. Set permanent=true to delete permanently")


def subject_not_soft_deleted(subject: str) -> RegistryError:
    return RegistryError(
        40405,
        f"Subject '{subject}' was not deleted first before being permanently deleted; delete it without permanent",
    )


def version_soft_deleted(subject: str, version: int) -> RegistryError:
    return RegistryError(
        40406, f"Subject '{subject}' Version {version} was soft deleted. Set permanent=true to delete permanently"
    )


def version_not_soft_deleted(subject: str, version: int) -> RegistryError:
    return RegistryError(
        40407,
        f"Subject '{subject}' Version {version} was not deleted first before being permanently deleted;"
        " delete it without permanent",
    )


def no_compatibility(subject: str) -> RegistryError:
    return RegistryError(40408, f"Subject '{subject}' does not have subject-level compatibility configured")


def no_mode(subject: str) -> RegistryError:
    return RegistryError(40409, f"Subject '{subject}' does not have subject-level mode configured")


def incompatible(subject: str, reasons: list[str]) -> RegistryError:
    return RegistryError(
        409,
        f'Schema being registered is incompatible with an earlier schema for subject "{subject}",'
        f" details: [{', '.join(reasons)}]",
    )


def unprocessable(message: str) -> RegistryError:
    """A body that is no request."""
    return RegistryError(422, message)


def invalid_schema(message: str) -> RegistryError:
    return RegistryError(42201, message)


def invalid_version(version: str) -> RegistryError:
    return RegistryError(
        42202,
        f"The specified version '{version}' is not a valid version id. Allowed values are between [1, 2^31-1] and the"
        ' string "latest"',
    )


def invalid_compatibility() -> RegistryError:
    return RegistryError(
        42203,
        "Invalid compatibility level. Valid values are none, backward, forward, full, backward_transitive,"
        " forward_transitive, and full_transitive",
    )


def invalid_mode() -> RegistryError:
    return RegistryError(42204, "Invalid mode. Valid values are READWRITE, READONLY, and IMPORT")


def not_permitted(message: str) -> RegistryError:
    return RegistryError(42205, message)


def reference_exists(subject: str, version: int) -> RegistryError:
    return RegistryError(
        42206, f"One or more references exist to subject '{subject}' version {version}; delete what refers to it first"
    )


def invalid_subject(subject: str) -> RegistryError:
    return RegistryError(42208, f"The specified subject '{subject[:100]}' is not a valid subject.")


def store_failed(message: str) -> RegistryError:
    return RegistryError(50001, f"Error while writing to the Kafka store: {message}")


def too_large(message: str) -> RegistryError:
    return RegistryError(42209, message)
