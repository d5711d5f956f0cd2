from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from os import PathLike
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Literal, Protocol, TypeAlias, final

__version__: str

class _Readable(Protocol):
    def read(self, size: int, /) -> bytes: ...

_Input: TypeAlias = str | PathLike[str] | bytes | bytearray | memoryview | BinaryIO | _Readable
_Source: TypeAlias = _Input | list[_Input] | tuple[_Input, ...] | list[str] | list[bytes]
_Strings: TypeAlias = str | Sequence[str] | set[str]
_Ints: TypeAlias = int | Sequence[int] | set[int]
_Processes: TypeAlias = int | str | Sequence[int | str] | set[int | str]
_Moment: TypeAlias = float | datetime
_Progress: TypeAlias = Callable[[int, int], object]

class TraceError(Exception):
    """A trace cannot be read, or a scenario cannot be simulated."""

    file: str
    message: str
    offset: int | None
    hint: str | None

@final
class Event:
    """An event of a trace. Each attribute is decoded when it is read."""

    @property
    def time(self) -> datetime | None: ...
    @property
    def filetime(self) -> int: ...
    @property
    def timestamp(self) -> int: ...
    @property
    def trace(self) -> str: ...
    @property
    def kind(self) -> str: ...
    @property
    def cpu(self) -> int: ...
    @property
    def pid(self) -> int | None: ...
    @property
    def tid(self) -> int | None: ...
    @property
    def process(self) -> str | None: ...
    @property
    def thread(self) -> str | None: ...
    @property
    def provider(self) -> str | None: ...
    @property
    def provider_guid(self) -> str | None: ...
    @property
    def name(self) -> str: ...
    @property
    def id(self) -> int | None: ...
    @property
    def version(self) -> int | None: ...
    @property
    def opcode(self) -> int | None: ...
    @property
    def task(self) -> int | None: ...
    @property
    def level(self) -> int | None: ...
    @property
    def keyword(self) -> int | None: ...
    @property
    def activity(self) -> str | None: ...
    @property
    def related_activity(self) -> str | None: ...
    @property
    def stack(self) -> list[int]: ...
    @property
    def payload(self) -> bytes: ...
    @property
    def fields(self) -> dict[str, Any]: ...
    @property
    def message(self) -> str | None: ...
    def json(self) -> str: ...
    def to_dict(self) -> dict[str, Any]: ...

@final
class Events:
    """The selected events of a trace, one after the other."""

    def __iter__(self) -> Iterator[Event]: ...
    def __next__(self) -> Event: ...

@final
class Table:
    """A table of traces as an Arrow stream."""

    @property
    def name(self) -> str: ...
    @property
    def columns(self) -> list[str]: ...
    def __arrow_c_schema__(self) -> object: ...
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...

@final
class Trace:
    """Opened traces, read as one recording."""

    @property
    def names(self) -> list[str]: ...
    def info(self, *, progress: _Progress | None = None) -> Any: ...
    def verify(
        self,
        *,
        allow: _Strings | None = None,
        deny: _Strings | None = None,
        enable: _Strings | None = None,
        process: _Processes | None = None,
        config: str | PathLike[str] | None = None,
        stale: bool = False,
        progress: _Progress | None = None,
    ) -> dict[str, Any]: ...
    def events(
        self,
        *,
        provider: _Strings | None = None,
        event: _Strings | None = None,
        process: _Processes | None = None,
        id: _Ints | None = None,
        opcode: _Ints | None = None,
        level: int = 0,
        keyword: int = 0,
        thread: _Ints | None = None,
        start: _Moment | None = None,
        end: _Moment | None = None,
        where: _Strings | None = None,
        grep: str | None = None,
        names: bool = False,
        stale: bool = False,
        order: Literal["time", "file"] = "time",
        progress: _Progress | None = None,
    ) -> Events: ...
    def table(
        self,
        name: str = "events",
        *,
        columns: Sequence[str] | None = None,
        provider: _Strings | None = None,
        event: _Strings | None = None,
        process: _Processes | None = None,
        id: _Ints | None = None,
        level: int = 0,
        keyword: int = 0,
        start: _Moment | None = None,
        end: _Moment | None = None,
        names: bool = True,
        batch_rows: int = 65536,
    ) -> Table: ...
    def close(self) -> None: ...
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...
    def __enter__(self) -> Trace: ...
    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
        /,
    ) -> None: ...

def open(
    source: _Source,
    *,
    member: str | None = None,
    max_unpacked: int | None = None,
    max_memory: int | None = None,
    mmap: bool = True,
    threads: int | None = None,
) -> Trace: ...
def info(source: _Source, *, progress: _Progress | None = None) -> Any: ...
def verify(source: _Source, **options: Any) -> dict[str, Any]: ...
def synth(
    script: str | PathLike[str],
    out: str | PathLike[str],
    *,
    seed: int | None = None,
    parameters: Mapping[str, str] | None = None,
    truth: bool = True,
    force: bool = False,
) -> list[Path]: ...
def tables() -> dict[str, str]: ...

__all__ = [
    "Event",
    "Events",
    "Table",
    "Trace",
    "TraceError",
    "__version__",
    "info",
    "open",
    "synth",
    "tables",
    "verify",
]
