"""Over TLS the connection goes to the checked address, and the certificate must be that of the name."""

import ssl
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from media.web import FILE, NAME, PUBLIC, Web, redirect
from tertulia.errors import MediaUnavailable

OTHER = "other.example"  # has the same address, and no certificate


def contexts(folder: Path, name: str) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """The settings of a server with a certificate for *name*, and of a client that trusts it."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder(subject, subject, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, SHA256())
    ).public_bytes(Encoding.PEM)
    file = folder / "both.pem"
    file.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()) + certificate)
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(file)
    client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    client.load_verify_locations(cadata=certificate.decode())
    return server, client


@pytest.fixture
async def web(tmp_path: Path) -> AsyncIterator[Web]:
    async with Web(tls=contexts(tmp_path, NAME)) as opened:
        opened.names[OTHER] = [PUBLIC[:1]]
        yield opened


async def test_certificate_of_the_name_is_accepted_at_the_pinned_address(web: Web) -> None:
    fetched = await web.fetcher().fetch(f"https://{NAME}./cat.png", limit=100)

    assert (fetched.data, web.connected, web.public.requests[0][1]) == (FILE, [PUBLIC[0]], f"host: {NAME}")


@pytest.mark.parametrize("host", [OTHER, PUBLIC[0]])
async def test_certificate_of_another_name_is_refused(web: Web, host: str) -> None:
    with pytest.raises(MediaUnavailable, match="cannot be reached"):
        await web.fetcher().fetch(f"https://{host}/", limit=100)

    assert web.public.requests == []


async def test_redirect_to_an_unencrypted_address_is_not_followed(web: Web) -> None:
    web.public.answers["/"] = redirect(f"http://{NAME}/")

    with pytest.raises(MediaUnavailable, match=f"{NAME} redirects to an unencrypted address"):
        await web.fetcher().fetch(f"https://{NAME}/", limit=100)


async def test_certificate_is_checked_for_the_name_of_each_redirect(web: Web) -> None:
    web.public.answers["/"] = redirect(f"https://{OTHER}/")

    with pytest.raises(MediaUnavailable, match=f"{OTHER} cannot be reached"):
        await web.fetcher().fetch(f"https://{NAME}/", limit=100)
    assert len(web.public.requests) == 1
