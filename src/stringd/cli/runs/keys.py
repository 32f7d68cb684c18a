"""`stringd keys`: the keys of model providers that the daemon keeps."""

import argparse
import json
import os
import sys
from collections.abc import Sequence
from difflib import get_close_matches

from msgspec import UNSET

from stringd.cli.runs.common import add_port, ask_daemon, fail, provider_infos
from stringd.cli.streams import visible
from stringd.client.daemon import UsageError
from stringd.wire.runs import messages as m
from stringd.wire.runs import requests as r
from stringd.wire.runs.catalog import ProviderInfo


def main(name: str, argv: Sequence[str]) -> int:
    """Run `stringd keys`."""
    parser = argparse.ArgumentParser(
        prog=f"stringd {name}",
        description="Keep, list and remove keys of model providers. The next run uses what was "
        "set; the daemon need not be restarted. No key is ever shown.",
    )
    commands = parser.add_subparsers(dest="command", metavar="command")
    listing = commands.add_parser("list", help="providers with a key (the default)")
    put = commands.add_parser(
        "set",
        help="keep a key; it is asked for without being shown, or read from standard input",
        description="Keep a key. In a terminal it is asked for and not shown; otherwise the "
        "first line of standard input is the key: stringd keys set openai < key.txt",
    )
    put.add_argument("--base-url", metavar="URL", help="address of a server of your own")
    put.add_argument(
        "--from-env", action="store_true", help="take the key from this shell's environment"
    )
    remove = commands.add_parser("remove", help="forget the key that is kept for a provider")
    for each in (put, remove):
        each.add_argument("provider", help="its id, as `stringd providers --all` lists it")
    # Taken only to be refused: argparse would print it.
    put.add_argument("on_the_command_line", nargs="*", help=argparse.SUPPRESS)
    for each in (listing, put, remove):
        each.add_argument("--json", action="store_true", help="print JSON")
        add_port(each)
    arguments = list(argv)
    if not arguments or (arguments[0].startswith("-") and arguments[0] not in ("-h", "--help")):
        arguments.insert(0, "list")
    args = parser.parse_args(arguments)
    try:
        return _WORK[args.command](args)
    except UsageError as error:
        return fail(error)


def came_from(info: ProviderInfo) -> str:
    """Where a provider's key comes from, for people."""
    match info.credential_source:
        case "environment":
            return f"{info.credential_variable} of the daemon's environment"
        case "strategy":
            return "kept for a strategy"
        case "stored":
            return "kept by stringd"
        case _:
            return "none"


def _list(args: argparse.Namespace) -> int:
    found = [each for each in provider_infos(args) if each.credential_source is not UNSET]
    if args.json:
        print(json.dumps([_facts(each) for each in found]))
        return 0
    if not found:
        print("no keys yet; to add one: stringd keys set <provider>")
    width = max((len(each.id) for each in found), default=0)
    for each in found:
        note = "" if each.usable else "  (its address is not known: set it with --base-url)"
        print(visible(f"{each.id:<{width}}  {came_from(each)}{note}"))
    return 0


def _facts(info: ProviderInfo) -> dict[str, object]:
    return {
        "provider": info.id,
        "source": info.credential_source,
        "variable": info.credential_variable or None,
        "usable": bool(info.usable),
    }


def _set(args: argparse.Namespace) -> int:
    if args.on_the_command_line:
        return fail(
            "a key on the command line can be read by others and stays in the shell's history: "
            "if it was one, replace it at the provider. "
            f"Type only: stringd keys set {args.provider}"
        )
    known = _known(args)
    key = _from_environment(known) if args.from_env else _typed(args.provider, bool(args.base_url))
    if args.base_url:
        data = {"baseURL": args.base_url, **({"apiKey": key} if key else {})}
        sent = r.SetCredential(
            provider_id=args.provider, credential_type="custom", custom_data=data
        )
    else:
        sent = r.SetCredential(provider_id=args.provider, credential_type="api", api_key=key)
    ask_daemon(args, sent)
    now = next(iter(provider_infos(args, only=args.provider)))
    if args.json:
        print(json.dumps(_facts(now)))
        return 0
    print(visible(f"kept the key of {args.provider}; the next run uses it"))
    if now.credential_source == "environment":
        print(
            visible(
                f"but {now.credential_variable} of the daemon's environment comes first: "
                f"unset it, then stringd down and stringd up"
            )
        )
    return 0


def _known(args: argparse.Namespace) -> ProviderInfo | None:
    """The provider that is meant. Raises `UsageError` when it has no address."""
    every = {each.id: each for each in provider_infos(args)}
    found = every.get(args.provider)
    if args.provider == "demo":
        raise UsageError("demo is built in and needs no key")
    if args.base_url:
        if not args.base_url.startswith(("http://", "https://")):
            raise UsageError(f"--base-url is an http:// or https:// address, not {args.base_url}")
    elif found is None:
        near = get_close_matches(args.provider, every, n=1)
        hint = f"did you mean {near[0]}? " if near else ""
        raise UsageError(
            f"{args.provider} is not a known provider; {hint}See stringd providers --all, "
            "or give the address of an OpenAI-compatible server with --base-url"
        )
    return found


def _from_environment(known: ProviderInfo | None) -> str:
    names = (known.key_variables or []) if known else []
    found = next((os.environ[name] for name in names if os.environ.get(name, "").strip()), None)
    if found is None:
        wanted = " or ".join(names) or "no variable of this provider"
        raise UsageError(f"--from-env: {wanted} is not set in this shell")
    return _checked(found)


def _typed(provider: str, optional: bool) -> str:
    """The key from the terminal, unseen, or from standard input. Raises `UsageError`."""
    if sys.stdin.isatty():
        import getpass

        try:
            text = getpass.getpass(f"Key of {provider} (not shown): ", stream=sys.stderr)
        except EOFError:
            text = ""
    else:
        text = sys.stdin.readline()
    if not text.strip() and optional:
        return ""
    return _checked(text)


def _checked(text: str) -> str:
    key = text.strip()
    if not key:
        raise UsageError("no key was given, nothing is changed")
    if not (key.isascii() and key.isprintable()):
        raise UsageError("that is not a key: it holds characters a request cannot carry")
    return key


def _remove(args: argparse.Namespace) -> int:
    answer = ask_daemon(args, r.RemoveCredential(provider_id=args.provider))
    removed = isinstance(answer, m.CredentialRemoved) and answer.removed
    left = next(iter(provider_infos(args, only=args.provider)), None)
    outside = left is not None and left.credential_source == "environment"
    if args.json:
        print(json.dumps({"provider": args.provider, "removed": removed}))
        return 0 if removed else 1
    if removed:
        print(visible(f"removed the key of {args.provider}"))
    else:
        fail(f"no key is kept for {args.provider}; see stringd keys list")
    if left is not None and outside:
        print(
            visible(
                f"{left.credential_variable} of the daemon's environment is still used: "
                "unset it, then stringd down and stringd up"
            ),
            file=sys.stderr,
        )
    return 0 if removed else 1


_WORK = {"list": _list, "set": _set, "remove": _remove}
