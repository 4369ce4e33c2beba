"""Our signatures are botocore's."""

from __future__ import annotations

import datetime as dt
from typing import NamedTuple

from botocore import auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import ReadOnlyCredentials
from hypothesis import given
from hypothesis import strategies as st

from snavio.aws.lean.sigv4 import Signer


class Case(NamedTuple):
    service: str
    region: str
    host: str
    path: str
    target: str


cases = st.builds(
    Case,
    st.sampled_from(["sqs", "dynamodb"]),
    st.sampled_from(["eu-central-1", "us-gov-west-1"]),
    st.sampled_from(["sqs.eu-central-1.amazonaws.com", "127.0.0.1:4566", "[::1]:8000"]),
    st.sampled_from(["/", "/a/path with space/"]),
    st.sampled_from(["AmazonSQS.SendMessageBatch", "DynamoDB_20120810.BatchWriteItem"]),
)
words = st.text("abcXYZ019+/=", min_size=1, max_size=40)
times = st.integers(1_500_000_000, 2_500_000_000)


def _by_botocore(case, keys, body, now, monkeypatch_to):
    request = AWSRequest(
        method="POST",
        url=f"https://{case.host}{case.path}",
        data=body,
        headers={
            "Host": case.host,
            "Content-Type": "application/x-amz-json-1.0",
            "X-Amz-Target": case.target,
        },
    )
    signer = auth.SigV4Auth(keys, case.service, case.region)
    monkeypatch_to(dt.datetime.fromtimestamp(now, dt.UTC))
    signer.add_auth(request)
    return request.headers


@given(
    cases,
    st.builds(ReadOnlyCredentials, words, words, st.one_of(st.none(), words)),
    st.binary(max_size=100),
    st.lists(times, min_size=1, max_size=3),
)
def test_a_signature_is_the_one_botocore_makes(case, keys, body, moments):
    signer = Signer(
        service=case.service,
        region=case.region,
        host=case.host,
        path=case.path,
        content_type="application/x-amz-json-1.0",
    )
    original = auth.get_current_datetime
    try:
        # One signer for several moments and keys, so that what it keeps is put to the test.
        for now in moments:
            for each in (keys, ReadOnlyCredentials("other", "secret", None), keys):

                def set_now(moment):
                    auth.get_current_datetime = lambda *_, **__: moment.replace(tzinfo=None)

                expected = _by_botocore(case, each, body, now, set_now)
                head = signer.head(each, target=case.target, body=body, now=now).decode()
                ours = dict(line.split(":", 1) for line in head.split("\r\n")[1:-2])
                assert ours["authorization"] == expected["Authorization"]
                assert ours["x-amz-date"] == expected["X-Amz-Date"]
                assert ours.get("x-amz-security-token") == expected.get("X-Amz-Security-Token")
                assert ours["content-length"] == str(len(body))
    finally:
        auth.get_current_datetime = original
