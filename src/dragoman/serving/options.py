"""Options of the server."""

from dataclasses import dataclass

from dragoman.options import option, require

_COUNTS = (
    "queue_tokens",
    "max_characters",
    "max_texts",
    "max_beam_size",
    "max_body_bytes",
    "max_file_bytes",
    "max_connections",
)


@dataclass(frozen=True, kw_only=True)
class ServeOptions:
    """Options of “dragoman serve”."""

    host: str = option("127.0.0.1", "address to listen at; 0.0.0.0 lets other machines in")
    port: int = option(5000, "port to listen at; 0 takes a free one")
    processes: int | None = option(
        None,
        "processes that translate with each model, 0 for the server's own (default: as many as "
        "there are cores, up to 4; on a GPU 0)",
    )
    batch_tokens: int | None = option(
        None, "source subwords translated together at most (default: 1024 on a CPU, else 8192)"
    )
    wait_milliseconds: float = option(
        4.0, "how long sentences wait for others to be translated with, where there are others"
    )
    queue_tokens: int = option(
        65_536, "source subwords that may wait for a model; more are refused with status 429"
    )
    queue_seconds: float = option(
        5.0, "how long, by its present speed, what waits for a model may take; likewise"
    )
    cache_characters: int = option(
        4_000_000, "characters of translated sentences that are remembered; 0: none"
    )
    max_characters: int = option(20_000, "longest request, all its texts together")
    max_texts: int = option(128, "most texts of a request")
    max_beam_size: int = option(16, "widest beam, and so the most translations, a client may ask")
    max_body_bytes: int = option(1 << 20, "largest request that is not a file, in bytes")
    max_file_bytes: int = option(10 << 20, "largest file to be translated, in bytes")
    max_connections: int = option(1024, "requests in progress; more are refused")
    client_seconds: float = option(
        15.0, "how long a client may take to send a request or to read the next of an answer"
    )
    stop_seconds: float = option(
        60.0, "how long requests in progress may take when the server is stopped"
    )
    requests_per_minute: int | None = option(None, "for each address of clients without a key")
    allow_origin: str | None = option(
        "*", "web pages of which origin may use the protocols (CORS), * for any"
    )
    proxy: str | None = option(
        None, "address of a proxy whose X-Forwarded-For says where clients are"
    )

    def __post_init__(self) -> None:
        require(0 <= self.port < 1 << 16, "port", self.port, "must be from 0 to 65535")
        for name in _COUNTS:
            value = getattr(self, name)
            require(value >= 1, name, value, "must be at least 1")
        for name in ("wait_milliseconds", "cache_characters", "stop_seconds"):
            value = getattr(self, name)
            require(value >= 0, name, value, "must not be negative")
        for name in ("client_seconds", "queue_seconds"):
            value = getattr(self, name)
            require(value > 0, name, value, "must be above 0")
        number = self.processes
        require(number is None or number >= 0, "processes", number, "must not be negative")
        size = self.batch_tokens
        require(size is None or size >= 1, "batch_tokens", size, "must be at least 1")
        rate = self.requests_per_minute
        require(rate is None or rate >= 1, "requests_per_minute", rate, "must be at least 1")
