"""What all streams of a client share."""

from msgspec import Struct

from farhand.client.approvals import Approvals
from farhand.client.events import Events
from farhand.client.hands import OnApproval
from farhand.client.pool import Pool
from farhand.client.toolbox import Toolbox
from farhand.client.wire import Wire


class Kit(Struct, frozen=True):
    """The parts of one client."""

    id: str
    wire: Wire
    events: Events
    toolbox: Toolbox
    pool: Pool
    approvals: Approvals
    on_approval: OnApproval | None
    max_tool_rounds: int
