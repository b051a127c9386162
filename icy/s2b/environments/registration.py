"""Register the environments with Gymnasium and PettingZoo under versioned names."""

import gymnasium
from pettingzoo.env_registry.registration import parallel_registry
from pettingzoo.env_registry.registration import register as register_parallel

HERE = __package__


def register() -> None:
    """Register the environments; safe to call more than once."""
    if "S2B/Listener-v0" in gymnasium.registry:
        return
    gymnasium.register(
        "S2B/Listener-v0",
        entry_point=f"{HERE}.listener:ListenerEnv",
        vector_entry_point=f"{HERE}.listener:ListenerVectorEnv",
    )
    gymnasium.register(
        "S2B/Recall-v0",
        entry_point=f"{HERE}.recall:RecallEnv",
        vector_entry_point=f"{HERE}.recall:RecallVectorEnv",
    )
    if "s2b/meta_referential_game-v0" not in parallel_registry:
        where = f"{HERE}.parallel:parallel_env"
        register_parallel("parallel", "s2b/meta_referential_game-v0", where)
        register_parallel("parallel", "s2b/referential_game-v0", where, kwargs={"kind": "common"})
