#!/usr/bin/env python3
"""A weather service that makes it up, the same way every time: `python3 server.py [port]`."""

import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

CITIES = {
    "Seoul": ("South Korea", 21, "clear"),
    "Oslo": ("Norway", 4, "snow"),
    "Lima": ("Peru", 18, "mist"),
    "Los Angeles": ("USA", 27, "sun"),
}


class Weather(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        asked = {name: values[0] for name, values in parse_qs(parts.query).items()}
        answers = {"/cities": self.cities, "/now": self.now, "/forecast": self.forecast}
        answer = answers[parts.path](asked) if parts.path in answers else None
        body = json.dumps(answer if answer is not None else {"error": "unknown"}).encode()
        self.send_response(404 if answer is None else 200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def cities(self, asked: dict[str, str]) -> object:
        wanted = asked.get("q", "").lower()
        found = {name: about for name, about in CITIES.items() if wanted in name.lower()}
        return [{"name": name, "country": about[0]} for name, about in found.items()]

    def now(self, asked: dict[str, str]) -> object:
        about = CITIES.get(asked.get("city", ""))
        return about and {"temperature": about[1], "sky": about[2]}

    def forecast(self, asked: dict[str, str]) -> object:
        about = CITIES.get(asked.get("city", ""))
        days = range(1, int(asked.get("days", "3")) + 1)
        return about and {
            "days": [{"day": n, "low": about[1] - n, "high": about[1] + n} for n in days]
        }

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Quiet: the daemon keeps the log."""


if __name__ == "__main__":
    port = int(sys.argv[1]) if len(sys.argv) > 1 else 8765
    with ThreadingHTTPServer(("127.0.0.1", port), Weather) as server:
        print(f"weather on http://127.0.0.1:{server.server_address[1]}", flush=True)
        server.serve_forever()
