"""The commands and how they are found. Each is a function in a file of its own."""

from cyclopts import App

from farhand.cli.demo import demo
from farhand.cli.store import store
from farhand.cli.tools import tools

app = App(name="farhand", help="AI agents whose tools are defined once and run where they belong.")
app.command(demo)
app.command(tools)
app.command(store)
