"""What an error of the S3 client means to Proctor: who has to act, and how. Pure.

Messages take a server's error code only: its texts and fields may hold keys and signatures.
"""

from __future__ import annotations

import ssl
from typing import TYPE_CHECKING, TypeGuard

from botocore import exceptions as boto

from proctor_grader.errors import NotStored, ProctorError, StoreError, StoreFull, UserError

if TYPE_CHECKING:
    from proctor_grader.store.place import S3Place

FAULTS = (boto.ClientError, boto.BotoCoreError)
"""What a call of the client may raise."""

_CREDENTIALS_REMEDY = "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE"
_PERMISSIONS = {
    "GetObject": "s3:GetObject",
    "HeadObject": "s3:GetObject and s3:ListBucket",
    "ListObjectsV2": "s3:ListBucket",
    "DeleteObject": "s3:DeleteObject",
}
_OUTAGE = frozenset(
    {
        "BadDigest",  # the bytes were damaged on their way
        "ConditionalRequestConflict",
        "IncompleteBody",
        "InternalError",
        "InvalidPart",
        "NoSuchUpload",  # a server forgot a multipart upload: it is begun anew
        "OperationAborted",
        "RequestTimeout",
        "ServiceUnavailable",
        "SlowDown",
        "Throttling",
        "ThrottlingException",
        "TooManyRequestsException",
        "XAmzContentChecksumMismatch",
        "XAmzContentSHA256Mismatch",
    }
)
_MISSING = frozenset({"NoSuchKey", "NoSuchVersion", "404"})
_CREDENTIALS = frozenset(
    {
        "AuthFailure",
        "ExpiredToken",
        "ExpiredTokenException",
        "InvalidAccessKeyId",
        "InvalidClientTokenId",
        "InvalidToken",
        "SignatureDoesNotMatch",
        "TokenRefreshRequired",
        "UnrecognizedClientException",
        "XAdminUserNotFound",
    }
)
_REGION = frozenset(
    {"AuthorizationHeaderMalformed", "IllegalLocationConstraintException", "PermanentRedirect"}
)
_FULL = frozenset({"InsufficientStorage", "QuotaExceeded", "StorageFull", "XMinioStorageFull"})
_OCCUPIED = frozenset({"ExistingObjectIsDirectory", "ObjectParentIsFile"})
_NO_CREDENTIALS = (
    boto.NoCredentialsError,
    boto.PartialCredentialsError,
    boto.ProfileNotFound,
    boto.ConfigParseError,
    boto.NoAuthTokenError,
    boto.TokenRetrievalError,
    boto.SSOError,
)
_UNREACHABLE = (
    boto.ConnectionError,
    boto.HTTPClientError,
    boto.IncompleteReadError,
    boto.CredentialRetrievalError,
    boto.MetadataRetrievalError,
)
_MISCONFIGURED = (
    boto.NoRegionError,
    boto.InvalidRegionError,
    boto.ParamValidationError,
    boto.InvalidDNSNameError,
    boto.EndpointProviderError,
    boto.UnsupportedS3ConfigurationError,
    ValueError,  # an endpoint that is no URL
)


def code_of(error: BaseException) -> str:
    """The server's error code, such as `NoSuchKey`; empty when no server answered."""
    return str(error.response.get("Error", {}).get("Code", "")) if _answered(error) else ""


def status_of(error: BaseException) -> int:
    """The HTTP status of the server's answer; 0 when no server answered."""
    if not _answered(error):
        return 0
    return int(error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))


def is_outage(error: BaseException) -> bool:
    """Whether the same request may succeed later without anybody changing anything."""
    if _answered(error):
        code, status = code_of(error), status_of(error)
        if code in _FULL or status in {501, 507}:
            return False
        return code in _OUTAGE or status >= 500 or status in {408, 429}
    if isinstance(error, boto.SSLError):
        return not _is_distrust(error)
    return isinstance(error, _UNREACHABLE)


def fault_of(error: BaseException, place: S3Place, key: str, endpoint: str) -> ProctorError:
    """Name what an error of the client means.

    Args:
        error: as the client raised it.
        place: of the store.
        key: of the object concerned, or a prefix.
        endpoint: the server's URL, without credentials.
    """
    where = f"{place.url}/{key}" if key else place.url
    if _answered(error):
        return _refusal(error, place, key, where)
    if isinstance(error, _NO_CREDENTIALS):
        kind = type(error).__name__
        return _user(f"no usable credentials were found ({kind})", where, _CREDENTIALS_REMEDY)
    if isinstance(error, boto.SSLError) and _is_distrust(error):
        what = f"the certificate of {endpoint} is not trusted"
        return _user(what, where, "set AWS_CA_BUNDLE to a file with the authority's certificate")
    if isinstance(error, _MISCONFIGURED):
        what = f"the place is not valid ({type(error).__name__})"
        return _user(what, where, "check bucket, region and endpoint")
    return StoreError(
        f"{endpoint} can't be reached ({type(error).__name__})",
        where=where,
        remedy="check the endpoint and the network",
    )


def _refusal(error: boto.ClientError, place: S3Place, key: str, where: str) -> ProctorError:
    code, status = code_of(error), status_of(error)
    if code in _MISSING and key:
        return NotStored(key)
    if code == "NoSuchBucket":
        remedy = "create it, or correct the store's URL or endpoint"
        return _user(f"bucket '{place.bucket}' does not exist", place.url, remedy, "InvalidStore")
    if code in _CREDENTIALS:
        remedy = f"{_CREDENTIALS_REMEDY} to a valid pair"
        return _user(f"the server refuses the credentials ({code})", where, remedy)
    if code == "RequestTimeTooSkewed":
        what = "the server refuses the time of this machine"
        return _user(what, where, "set the clock of this machine")
    if code == "InvalidBucketName":
        what = f"'{place.bucket}' is no bucket's name ({code})"
        return _user(what, place.url, "correct the store's URL", "InvalidStore")
    if code in _REGION or status == 301:
        what = f"bucket '{place.bucket}' lies in another region ({code})"
        return _user(what, where, "set AWS_REGION or ?region= to the bucket's", "InvalidStore")
    if code in _OCCUPIED:
        what = "an object is in the way of a folder, or the reverse"
        return _user(what, where, "remove what is in the way", "InvalidStore")
    if code in _FULL or status == 507:
        remedy = "free some space, or raise the quota"
        return StoreFull(f"there is no room left ({code})", where=where, remedy=remedy)
    if status == 403:
        permission = _PERMISSIONS.get(error.operation_name, "s3:PutObject")
        return _user(f"access is refused ({code})", where, f"grant {permission}")
    if status in {405, 501}:
        what = f"the server has no {error.operation_name} ({code})"
        return _user(what, where, "choose another server", "InvalidStore")
    return StoreError(f"{error.operation_name} fails ({code or status})", where=where)


def _user(what: str, where: str, remedy: str, reason: str = "AccessDenied") -> UserError:
    return UserError(what, where=where, remedy=remedy, reason=reason)


def _answered(error: BaseException) -> TypeGuard[boto.ClientError]:
    return isinstance(error, boto.ClientError)


def _is_distrust(error: boto.SSLError) -> bool:
    """Whether a certificate was refused; other failures may be those of a server that restarts."""
    causes: list[object] = [error.kwargs.get("error")]
    while causes:
        cause = causes.pop()
        if isinstance(cause, ssl.SSLCertVerificationError):
            return True
        if isinstance(cause, BaseException):
            causes += [cause.__cause__, *cause.args]
    return False
