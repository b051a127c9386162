from .base import Core as Core
from .base import Parts as Parts
from .base import SequenceCore as SequenceCore
from .base import State as State
from .factory import make_core as make_core
