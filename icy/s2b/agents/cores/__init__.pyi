from .core import Core as Core
from .core import Parts as Parts
from .core import SequenceCore as SequenceCore
from .core import State as State
from .core import make_core as make_core
