"""Keys of model providers that Comma keeps."""

from collections.abc import Iterator
from typing import Final

from stringd.cli.comma.items import ImportItem, ImportPlan
from stringd.runs import Credentials, VaultError, vault_of
from stringd.system.safe_open import read_file

_MAX_FILE: Final = 1024 * 1024


def import_keys(plan: ImportPlan, *, use_keyring: bool) -> Iterator[ImportItem]:
    """What Comma keeps for every run and for single strategies. No key is ever shown."""
    file = plan.source / "credentials.json"
    if not file.is_file():
        return
    try:
        content = read_file(file.resolve(), _MAX_FILE).data
        keys = Credentials(vault_of(plan.data, use_keyring=use_keyring), {})
        found = keys.take_over(content, replace=plan.replace, dry=plan.dry)
    except (VaultError, OSError) as error:
        yield ImportItem("keys", "credentials.json", "refused", str(error))
        return
    for each in found:
        where = f" (for {each.scope})" if each.scope else ""
        name = f"{each.provider_id}{where}"
        if each.problem:
            yield ImportItem("keys", name, "refused", each.problem)
        elif each.taken:
            yield ImportItem("keys", name, "imported")
        elif each.same:
            yield ImportItem("keys", name, "present")
        else:
            yield ImportItem(
                "keys", name, "kept", "another key is kept here; --replace takes Comma's"
            )
