"""Between the rows of the contract and those of SQLite, which knows no truth values and gives tuples."""

from typing import Any, TypeAlias, TypeVar

from msgspec import Struct, structs

from farhand.stores.base import CallRow, MemoryRow

Found: TypeAlias = tuple[Any, ...]
StructT = TypeVar("StructT", bound=Struct)

TRUTHS = {"awaited", "allow", "closing"}


def read(kind: type[StructT], found: Found) -> StructT:
    """A row of a kind without truth values, from its columns in the order of its fields."""
    return kind(**dict(zip(kind.__struct_fields__, found, strict=True)))


def read_call(found: Found) -> CallRow:
    """A call."""
    return CallRow(**named(CallRow, found))


def read_memory(found: Found) -> MemoryRow:
    """A lasting decision."""
    return MemoryRow(**named(MemoryRow, found))


def named(kind: type[Struct] | None, found: Found, names: tuple[str, ...] = ()) -> dict[str, Any]:
    """Columns by the names of the fields, or by names of their own."""
    columns = kind.__struct_fields__ if kind is not None else names
    return {column: bool(value) if column in TRUTHS else value for column, value in zip(columns, found, strict=True)}


columns = structs.astuple
"""The columns of a row; SQLite takes a truth value for a number."""
