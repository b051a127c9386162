from .shape import Shape as Shape
from .thing import Thing as Thing
from .world import Bank as Bank
from .world import World as World
from .world import make_world as make_world
