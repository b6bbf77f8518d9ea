"""The command line's commands, as typer has them."""

from typer.main import get_command

from hierindex.cli.app import app

PROGRAM = get_command(app)
COMMANDS = PROGRAM.commands
