"""Serve a model and call it as clients of LibreTranslate do: python examples/serve.py MODEL."""

import json
import subprocess
import sys
import urllib.request


def main(model: str) -> None:
    """Start the server at a free port, translate one sentence over HTTP, and stop it."""
    command = [sys.executable, "-m", "dragoman", "serve", model, "--port", "0"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as server:
        lines = iter(server.stdout.readline, "")
        address = next(line.strip() for line in lines if line.startswith("http://"))
        asked = {"q": "Jane visite l’Afrique en septembre.", "source": "fr", "target": "en"}
        request = urllib.request.Request(  # the same call works for any client
            address.rstrip("/") + "/translate",
            data=json.dumps(asked).encode(),
            headers={"Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request) as answer:
            print(json.load(answer)["translatedText"])
        server.terminate()


if __name__ == "__main__":
    main(sys.argv[1])
