"""A token server of the tests' own: gives signed tokens for a client's secret, over HTTPS (OAuth 2.0, client credentials)."""

from __future__ import annotations

import base64
import json
import ssl
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs

import jwt
from cryptography.hazmat.primitives.asymmetric import rsa

from tests.support.kafka.certificates import Signed

ISSUER = "https://tokens.test"
AUDIENCE = "kafka"
_KEY_ID = "test"
_TOKEN_SECONDS = 3600


class TokenServer:
    """Listens on the loopback, in threads of its own. The broker verifies its tokens by the keys in ``jwks``."""

    def __init__(self, folder: Path, clients: dict[str, str], certificate: Signed) -> None:
        """Start it.

        Args:
            folder: Where the file of public keys is written.
            clients: Secret of each client.
            certificate: Of the server.
        """
        self.clients = clients
        self.asked: list[dict[str, str]] = []
        self.status: int | None = None
        self._key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        self.jwks = folder / "jwks.json"
        self.jwks.write_text(json.dumps({"keys": [self._public_key()]}))
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()
                status, answer = outer._answer(self.headers.get("Authorization") or "", body)
                content = json.dumps(answer).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, format: str, *args: object) -> None:
                """Say nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate.certificate, certificate.key)
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        self.url = f"https://127.0.0.1:{self._server.server_address[1]}/token"
        threading.Thread(target=self._server.serve_forever, name="token server", daemon=True).start()

    def end(self) -> None:
        """End it."""
        self._server.shutdown()
        self._server.server_close()

    def _answer(self, authorization: str, body: str) -> tuple[int, dict[str, object]]:
        form = {name: values[0] for name, values in parse_qs(body).items()}
        client, _, secret = base64.b64decode(authorization.removeprefix("Basic ")).decode().partition(":")
        self.asked.append({"client": client, **form})
        if self.status is not None:
            return self.status, {"error": "temporarily_unavailable"}
        if self.clients.get(client) != secret or form.get("grant_type") != "client_credentials":
            return 401, {"error": "invalid_client", "error_description": "the secret is wrong"}
        now = int(time.time())
        claims = {
            "iss": ISSUER,
            "aud": AUDIENCE,
            "sub": client,
            "iat": now,
            "exp": now + _TOKEN_SECONDS,
            "scope": form.get("scope", ""),
        }
        token = jwt.encode(claims, self._key, algorithm="RS256", headers={"kid": _KEY_ID})
        return 200, {"access_token": token, "token_type": "Bearer", "expires_in": _TOKEN_SECONDS}

    def _public_key(self) -> dict[str, str]:
        numbers = self._key.public_key().public_numbers()
        return {
            "kty": "RSA",
            "use": "sig",
            "alg": "RS256",
            "kid": _KEY_ID,
            "n": _base64url(numbers.n),
            "e": _base64url(numbers.e),
        }


def _base64url(number: int) -> str:
    data = number.to_bytes((number.bit_length() + 7) // 8, "big")
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()
