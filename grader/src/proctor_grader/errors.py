"""Exceptions by who has to act. Faults of a set are `Problem` values, not exceptions."""

from __future__ import annotations


class ProctorError(Exception):
    """Root of all errors that Proctor raises on purpose.

    Attributes:
        message: what is wrong; lower-case start, no full stop, never a secret.
        where: file, key, resource or option concerned; empty when the message says it.
        remedy: what to do; empty when there is nothing better than the message.
        reason: CamelCase word from a closed list, for conditions and results.
    """

    default_reason = "Error"

    def __init__(
        self, message: str, *, where: str = "", remedy: str = "", reason: str | None = None
    ) -> None:
        super().__init__(message)
        self.message = message
        self.where = where
        self.remedy = remedy
        self.reason = reason or self.default_reason

    def __str__(self) -> str:
        """Return `where: what is wrong: what to do`; the same words in CLI, condition and event."""
        return ": ".join(part for part in (self.where, self.message, self.remedy) if part)


class UserError(ProctorError):
    """The command or resource is wrong: the user must act, no retry helps. Exit code 2."""

    default_reason = "InvalidArgument"


class RunError(ProctorError):
    """The run can't be carried out: whoever operates it must act. Exit code 3."""

    default_reason = "RunFailed"


class TransientError(ProctorError):
    """Something outside is not there yet or no more: a retry may help."""

    default_reason = "Unavailable"

    def __init__(
        self,
        message: str,
        *,
        where: str = "",
        remedy: str = "",
        reason: str | None = None,
        retry_after_seconds: float = 1.0,
    ) -> None:
        super().__init__(message, where=where, remedy=remedy, reason=reason)
        self.retry_after_seconds = retry_after_seconds


class StoreError(TransientError):
    """The store can't be reached or refuses; nothing that was stored before is affected."""

    default_reason = "StoreUnavailable"


class StoreFull(StoreError):
    """There is no room left where the store (or the local state) lies."""

    default_reason = "StoreFull"


class AlreadyExists(ProctorError):
    """A write-once key is taken; attributes name it."""

    default_reason = "AlreadyExists"

    def __init__(self, key: str) -> None:
        super().__init__("is already stored and is never overwritten", where=key)
        self.key = key


class NotStored(ProctorError):
    """A key is not in the store."""

    default_reason = "NotFound"

    def __init__(self, key: str) -> None:
        super().__init__("is not in the store", where=key)
        self.key = key


class WarehouseError(TransientError):
    """The warehouse can't be reached, refuses Proctor's own role, or is out of resources.

    Never the fault of what an agent left on a branch: that is `QueryError`.
    """

    default_reason = "WarehouseUnavailable"


class BranchError(RunError):
    """A branch can't be made with the rights and the base at hand; retrying won't help."""

    default_reason = "BranchImpossible"


class BranchNotIsolated(BranchError):
    """The branch's role could reach another database."""

    default_reason = "BranchNotIsolated"


class BaseBusy(WarehouseError):
    """Somebody is connected to the base, so it can't be cloned just now."""

    default_reason = "BaseBusy"


class QueryError(ProctorError):
    """A query failed because of what is on the branch, or took too long."""

    default_reason = "QueryFailed"
