"""From a model string to a model, at call time."""

from collections.abc import Mapping
from functools import partial
from pathlib import Path

from stringd.runs.errors import ModelError
from stringd.runs.models.demo import DemoProvider
from stringd.runs.models.directory import ProviderDirectory
from stringd.runs.models.port import Model, ModelSetup, Provider
from stringd.runs.strategy.definition import LlmAgent


class Models:
    """Exact names first (tests and embedders register doubles), then `provider/model`."""

    def __init__(
        self,
        providers: Mapping[str, Provider] | None = None,
        directory: ProviderDirectory | None = None,
    ) -> None:
        self.directory = directory
        self._exact: dict[str, Model] = {}
        self._providers: dict[str, Provider] = {"demo": DemoProvider(), **(providers or {})}

    def register(self, name: str, model: Model) -> None:
        """Answer for exactly this model string with `model`."""
        self._exact[name.strip()] = model

    @property
    def provider_ids(self) -> tuple[str, ...]:
        return tuple(sorted(self._providers))

    def resolve(self, name: str, agent: LlmAgent) -> Model:
        """The model this string names for this agent. Raises `ModelError`."""
        name = name.strip()
        if not name:
            raise ModelError("The model string is empty.")
        if name in self._exact:
            return self._exact[name]
        provider_id, slash, model_id = name.partition("/")
        if slash and not (provider_id and model_id):
            raise ModelError(f'Model "{name}" needs both parts of "providerID/modelID".')
        provider = self._providers.get(provider_id) if slash else None
        if provider is not None:
            return provider.model(_setup(agent, provider_id, model_id))
        if self.directory is None:
            raise ModelError(
                f'No credential found for provider "{provider_id}". '
                f"Providers ready to use: {', '.join(self.provider_ids)}."
            )
        return self.directory.model(name, partial(_setup, agent))


def _setup(agent: LlmAgent, provider_id: str, model_id: str) -> ModelSetup:
    options = agent.provider_options.get(provider_id, {})
    base = agent.base_dir if agent.base_dir.parts else Path.cwd()
    return ModelSetup(model_id, agent.name, options, base)
