from __future__ import annotations

import ssl

import pytest
from botocore import exceptions as boto

from proctor_grader.errors import NotStored, ProctorError, StoreError, StoreFull, UserError
from proctor_grader.store.place import S3Place
from proctor_grader.store.s3fault import fault_of, is_outage

PLACE = S3Place("bucket", "prefix/")
SECRET = "topsecretword"


def refusal(code: str, status: int, operation: str = "PutObject") -> boto.ClientError:
    said = {"Code": code, "Message": SECRET, "AWSAccessKeyId": SECRET, "StringToSign": SECRET}
    response = {"Error": said, "ResponseMetadata": {"HTTPStatusCode": status}}
    return boto.ClientError(response, operation)


DISTRUST = boto.SSLError(endpoint_url="u", error=OSError(ssl.SSLCertVerificationError("x")))


@pytest.mark.parametrize(
    ("error", "kind", "repeated", "words"),
    [
        (refusal("NoSuchKey", 404), NotStored, False, "not in the store"),
        (refusal("404", 404), NotStored, False, "not in the store"),
        (refusal("NoSuchBucket", 404), UserError, False, "'bucket' does not exist"),
        (refusal("InvalidBucketName", 400), UserError, False, "no bucket's name"),
        (refusal("InvalidAccessKeyId", 403), UserError, False, "AWS_SECRET_ACCESS_KEY"),
        (refusal("SignatureDoesNotMatch", 403), UserError, False, "AWS_SECRET_ACCESS_KEY"),
        (refusal("ExpiredToken", 400), UserError, False, "refuses the credentials"),
        (refusal("RequestTimeTooSkewed", 403), UserError, False, "clock"),
        (refusal("AccessDenied", 403), UserError, False, "grant s3:PutObject"),
        (refusal("403", 403, "HeadObject"), UserError, False, "grant s3:GetObject"),
        (refusal("AccessDenied", 403, "ListObjectsV2"), UserError, False, "grant s3:ListBucket"),
        (refusal("AccessDenied", 403, "UploadPart"), UserError, False, "grant s3:PutObject"),
        (refusal("PermanentRedirect", 301), UserError, False, "another region"),
        (refusal("AuthorizationHeaderMalformed", 400), UserError, False, "another region"),
        (refusal("ObjectParentIsFile", 409), UserError, False, "in the way"),
        (refusal("NotImplemented", 501), UserError, False, "has no PutObject"),
        (refusal("MethodNotAllowed", 405), UserError, False, "has no PutObject"),
        (refusal("XMinioStorageFull", 507), StoreFull, False, "no room"),
        (refusal("QuotaExceeded", 403), StoreFull, False, "no room"),
        (refusal("SomethingNew", 400), StoreError, False, "SomethingNew"),
        (refusal("InternalError", 500), StoreError, True, "InternalError"),
        (refusal("SlowDown", 503), StoreError, True, "SlowDown"),
        (refusal("", 429), StoreError, True, "429"),
        (refusal("RequestTimeout", 400), StoreError, True, "RequestTimeout"),
        (refusal("BadDigest", 400), StoreError, True, "BadDigest"),
        (refusal("ConditionalRequestConflict", 409), StoreError, True, "Conflict"),
        (refusal("NoSuchUpload", 404), StoreError, True, "NoSuchUpload"),
        (boto.NoCredentialsError(), UserError, False, "AWS_PROFILE"),
        (boto.ProfileNotFound(profile=SECRET), UserError, False, "ProfileNotFound"),
        (boto.PartialCredentialsError(provider="p", cred_var="v"), UserError, False, "AWS_PROFILE"),
        (boto.ParamValidationError(report=SECRET), UserError, False, "check bucket"),
        (ValueError(SECRET), UserError, False, "check bucket, region and endpoint"),
        (DISTRUST, UserError, False, "AWS_CA_BUNDLE"),
        (boto.SSLError(endpoint_url="u", error=OSError("EOF")), StoreError, True, "http://host:1"),
        (boto.EndpointConnectionError(endpoint_url=SECRET), StoreError, True, "http://host:1"),
        (boto.ReadTimeoutError(endpoint_url=SECRET), StoreError, True, "ReadTimeoutError"),
        (boto.ConnectionClosedError(endpoint_url=SECRET), StoreError, True, "can't be reached"),
        (
            boto.CredentialRetrievalError(provider="p", error_msg=SECRET),
            StoreError,
            True,
            "reached",
        ),
    ],
    ids=lambda value: (
        f"{value.operation_name}-{value.response['Error']['Code']}"
        if isinstance(value, boto.ClientError)
        else type(value).__name__
        if isinstance(value, Exception)
        else ""
    ),
)
def test_error_says_who_acts(
    error: Exception, kind: type[ProctorError], repeated: bool, words: str
) -> None:
    fault = fault_of(error, PLACE, "a/b", "http://host:1")
    assert type(fault) is kind
    assert is_outage(error) is repeated
    assert words in str(fault)
    assert SECRET not in str(fault)
    if kind is UserError:
        assert fault.remedy
        assert fault.where.startswith("s3://bucket/prefix")


def test_missing_key_is_named_without_the_stores_prefix() -> None:
    fault = fault_of(refusal("NoSuchKey", 404), PLACE, "a/b", "http://host:1")
    assert isinstance(fault, NotStored)
    assert fault.key == "a/b"
