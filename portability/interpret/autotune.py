"""Autotuned kernels without a device to time on."""

from __future__ import annotations

from typing import Any, Protocol


class Tuning(Protocol):
    """What of a session tuning needs."""

    configs: str
    config: str


def tuned(session: Tuning, tuner: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Run an autotuned kernel with the first configuration that pruning leaves, or with all and then the first.

    "all" does what tuning does on a device: each configuration runs on the caller's tensors between `pre_hook` (which
    resets `reset_to_zero` and keeps `restore_value`) and `post_hook`, so that a kernel that adds to its output without
    them is wrong here as well.
    """
    tuner.nargs = dict(zip(tuner.arg_names, args, strict=False))
    try:
        configs = list(tuner.prune_configs(kwargs))
        if session.configs == "all" and len(configs) > 1:
            for config in configs:
                _trial(session, tuner, args, kwargs, config)
            tuner.pre_hook({**tuner.nargs, **kwargs, **configs[0].all_kwargs()}, reset_only=True)
        best = tuner.best_config = configs[0]
        if best.pre_hook is not None:
            best.pre_hook({**tuner.nargs, **kwargs, **best.all_kwargs()})
        return _run(session, tuner, args, kwargs, best)
    finally:
        tuner.nargs = None


def _trial(session: Tuning, tuner: Any, args: tuple[Any, ...], kwargs: dict[str, Any], config: Any) -> None:
    given = {**tuner.nargs, **kwargs, **config.all_kwargs()}
    if config.pre_hook:
        config.pre_hook(given)
    tuner.pre_hook(given)
    try:
        _run(session, tuner, args, kwargs, config)
    except Exception as error:
        tuner.post_hook(given, exception=error)
        raise
    tuner.post_hook(given, exception=None)


def _run(session: Tuning, tuner: Any, args: tuple[Any, ...], kwargs: dict[str, Any], config: Any) -> Any:
    before, session.config = session.config, str(config)
    try:
        return tuner.fn.run(*args, **kwargs, **config.all_kwargs())
    finally:
        session.config = before
