from .bank import Bank as Bank
from .factory import make_world as make_world
from .shape import Shape as Shape
from .thing import Thing as Thing
from .world import World as World
