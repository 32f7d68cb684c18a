"""`/exec`: one command in a fresh shell."""

import os

from stringd.runtime.commands.bash import prepared_walls, reply_result
from stringd.runtime.editing.paths import standing_directory
from stringd.runtime.errors import CommandError
from stringd.runtime.shell.errors import ShellUnavailableError, UnusableInputError
from stringd.runtime.shell.once import OneShot
from stringd.runtime.topics.call import Call
from stringd.system.sandbox import Level
from stringd.wire.result import Result


async def exec_(call: Call) -> Result:
    """Run the argument, and the body below it, where the topic is."""
    command = call.argument if call.body is None else f"{call.argument}\n{call.body}"
    if not command.strip():
        raise CommandError("COMMAND_UNSUPPORTED", "Usage: /exec <command>")
    session = call.session
    if call.caller.permission is not None:
        await call.caller.permission.command(command)
    settings = call.services.settings
    walls = await prepared_walls(settings, Level(settings.bash_sandbox))
    try:
        running = OneShot(
            command,
            home=session.user.home,
            cwd=str(standing_directory(call)),
            base=os.environ,
            variables=session.variables,
            walls=walls,
            caller=call.caller.environment,
        )
    except ShellUnavailableError as error:
        raise CommandError("INTERNAL_ERROR", f"Bash error: {error}") from error
    except UnusableInputError as error:
        raise CommandError("INVALID_PAYLOAD", str(error)) from error
    with session.holding(running):
        return reply_result(await running.reply(call.caller.limit or settings.bash_timeout))
