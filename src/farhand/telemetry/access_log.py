"""One line for every request: which endpoint, by whom, how it was answered and how long that took."""

import logging

from farhand.runner.activity import Activity, Answering
from farhand.runner.observer import Observer
from farhand.telemetry.logs import ABOUT
from farhand.telemetry.metrics import NO_ENDPOINT

logger = logging.getLogger("farhand.requests")

FIELDS = {
    "endpoint": f"Its name, as in the OpenAPI description; `{NO_ENDPOINT}` for an address where nothing is.",
    "method": "`_OTHER` if it is none of those that there are.",
    "status": "Of the answer. 499: whoever asked hung up first.",
    "ms": "Milliseconds until the answer, or the head of a stream, was on its way.",
    "principal": "Who asked, once that was known.",
    "code": "Of the problem that was answered with.",
}


class AccessLog(Observer):
    """Writes a line when a request has been answered. No path, no query, no header."""

    kinds = (Answering,)

    def ended(self, activity: Activity, error: BaseException | None) -> None:
        """A request is answered."""
        if not isinstance(activity, Answering) or not logger.isEnabledFor(logging.INFO):
            return
        endpoint = activity.endpoint or NO_ENDPOINT
        said: dict[str, object] = {
            "endpoint": endpoint,
            "method": activity.method,
            "status": activity.status,
            "ms": round(activity.took * 1000, 1),
            "request": activity.id,
        }
        if activity.principal:
            said["principal"] = activity.principal
        if activity.code:
            said["code"] = activity.code
        logger.info("answered %s with %d", endpoint, activity.status, extra={ABOUT: said})
