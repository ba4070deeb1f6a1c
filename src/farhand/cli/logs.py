"""Where the log of a server goes that the command line starts: to the standard error, for people or for programs."""

import logging
import sys
from datetime import UTC, datetime

from msgspec import json


class JsonLines(logging.Formatter):
    """One JSON object a line."""

    def format(self, record: logging.LogRecord) -> str:
        """The record as it is written."""
        said = {
            "at": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info:
            said["error"] = self.formatException(record.exc_info)
        return json.encode(said).decode()


def begin_logs(style: str, *, quiet: bool) -> None:
    """Write the log from now on."""
    out = logging.StreamHandler(sys.stderr)
    plain = logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s", "%H:%M:%S")
    out.setFormatter(JsonLines() if style == "json" else plain)
    logging.basicConfig(handlers=[out], level=logging.ERROR if quiet else logging.WARNING)
    if not quiet:
        logging.getLogger("farhand").setLevel(logging.INFO)
