"""`stringd providers` and `stringd models`: whom runs can ask, and for what."""

import argparse
import os
import sys
from collections.abc import Sequence
from difflib import get_close_matches

import msgspec
from msgspec import UNSET

from stringd.cli.runs.common import add_port, fail, provider_infos
from stringd.cli.runs.keys import came_from
from stringd.cli.streams import visible
from stringd.client.daemon import UsageError
from stringd.wire.runs.catalog import ModelInfo, ProviderInfo


def main(name: str, argv: Sequence[str]) -> int:
    """Run `stringd providers` or `stringd models`."""
    try:
        return _models(name, argv) if name == "models" else _providers(name, argv)
    except UsageError as error:
        return fail(error)


def _providers(name: str, argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(
        prog=f"stringd {name}",
        description="Say which model providers can be used, where their key comes from, and what "
        "to type for the others.",
    )
    parser.add_argument("provider", nargs="?", help="only this one")
    parser.add_argument("--all", action="store_true", help="those of the public catalog too")
    parser.add_argument("--json", action="store_true", help="print JSON; always all of them")
    add_port(parser)
    args = parser.parse_args(argv)
    every = provider_infos(args)
    found = [_named(args.provider, every)] if args.provider else every
    if args.json:
        print(msgspec.json.encode([_without_models(each) for each in found]).decode())
        return 0
    shown = [each for each in found if args.all or args.provider or _is_near(each)]
    width = max(len(each.id) for each in shown)
    for each in shown:
        mark = "ok" if each.usable else "--"
        print(visible(f"{mark:<2}  {each.id:<{width}}  {_state(each)}"))
    if len(shown) < len(found):
        print(f"\n{len(found) - len(shown)} more with: stringd providers --all")
    return 0


def _is_near(info: ProviderInfo) -> bool:
    """Whether it is used, about to be, or one that the daemon lists models of."""
    listed = bool(info.models) or info.credential_type in ("none", "oauth")
    has_key = info.credential_source is not UNSET or _only_here(info) is not None
    return listed or has_key


def _only_here(info: ProviderInfo) -> str | None:
    """A variable that this shell has and the daemon has not."""
    if info.credential_source is not UNSET:
        return None
    names = info.key_variables or []
    return next((name for name in names if os.environ.get(name, "").strip()), None)


def _state(info: ProviderInfo) -> str:
    if info.id == "demo":
        return "built in, needs nothing"
    if info.credential_source is not UNSET:
        lost = "" if info.usable else "; its address is not known, set it with --base-url"
        return f"key: {came_from(info)}{lost}"
    if info.credential_type == "none" or info.usable:
        return "needs no key, only its server: stringd models " + info.id + " --live asks it"
    here = _only_here(info)
    if here:
        return (
            f"the daemon does not have {here}, which this shell has: "
            f"stringd keys set {info.id} --from-env"
        )
    return f"no key: stringd keys set {info.id}"


def _without_models(info: ProviderInfo) -> dict[str, object]:
    facts: dict[str, object] = msgspec.to_builtins(info)
    return {**facts, "models": len(info.models), "setInThisShell": _only_here(info)}


def _models(name: str, argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(
        prog=f"stringd {name}",
        description="List models as an agent names them. Without a provider: those of every "
        "provider that can be used.",
    )
    parser.add_argument("provider", nargs="?", help="only those of this provider")
    parser.add_argument(
        "--live", action="store_true", help="ask the providers themselves, not the catalog"
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    add_port(parser)
    args = parser.parse_args(argv)
    every = provider_infos(args, live=args.live, only=args.provider)
    if args.provider and not every:
        _named(args.provider, provider_infos(args))
    found = every if args.provider else [each for each in every if each.usable]
    failed = [each for each in found if each.error]
    if args.json:
        rows = [
            {"provider": info.id, **msgspec.to_builtins(model)}
            for info in found
            for model in info.models
        ]
        errors = {info.id: info.error for info in failed}
        print(msgspec.json.encode({"models": rows, "errors": errors}).decode())
    else:
        _show(found, args)
    for info in failed:
        fail(f"{info.id} was not asked or did not answer: {info.error}")
    return int(bool(args.provider and failed))


def _show(found: Sequence[ProviderInfo], args: argparse.Namespace) -> None:
    rows = [(f"{info.id}/{model.id}", _facts(model)) for info in found for model in info.models]
    width = max((len(model) for model, _ in rows), default=0)
    for model, facts in rows:
        print(visible(f"{model:<{width}}  {facts}".rstrip()))
    if args.provider and not rows and not args.live:
        info = found[0]
        way = f"stringd models {info.id} --live" if info.usable else f"stringd keys set {info.id}"
        print(visible(f"the catalog lists no models of {info.id}; try: {way}"), file=sys.stderr)


def _facts(model: ModelInfo) -> str:
    parts = [f"{model.context_window // 1000}k context"] if model.context_window else []
    cost = model.cost or {}
    if "input" in cost and "output" in cost:
        parts.append(f"${cost['input']:g} in, ${cost['output']:g} out per million tokens")
    if model.status:
        parts.append(model.status)
    return ", ".join(parts)


def _named(wanted: str, every: Sequence[ProviderInfo]) -> ProviderInfo:
    """Raises `UsageError`."""
    known = {each.id: each for each in every}
    if wanted not in known:
        near = get_close_matches(wanted, known, n=1)
        hint = f"did you mean {near[0]}? " if near else ""
        raise UsageError(f"{wanted} is not a known provider; {hint}See stringd providers --all")
    return known[wanted]
