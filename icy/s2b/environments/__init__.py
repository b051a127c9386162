"""The game as environments of Gymnasium and PettingZoo, registered under versioned names."""

import gymnasium
from pettingzoo.env_registry.registration import parallel_registry
from pettingzoo.env_registry.registration import register as register_parallel

if "S2B/Listener-v0" not in gymnasium.registry:
    for _name in ("Listener", "Recall"):
        _class = f"{__name__}.single_agent:{_name}"
        gymnasium.register(f"S2B/{_name}-v0", f"{_class}Env", vector_entry_point=f"{_class}VectorEnv")
if "s2b/meta_referential_game-v0" not in parallel_registry:
    _place = f"{__name__}.parallel:parallel_env"
    register_parallel("parallel", "s2b/meta_referential_game-v0", _place)
    register_parallel("parallel", "s2b/referential_game-v0", _place, kwargs={"kind": "common"})
