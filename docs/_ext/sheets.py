"""Sample sheets of the worlds of the multi-target games, and of turns in them."""

from __future__ import annotations

import numpy as np
import torch
from matplotlib.figure import Figure

from icy.analysis.plots.worlds import plot_looks, plot_turns_of_images, plot_turns_of_values, plot_vectors
from icy.core.noise import counter_hash
from icy.core.streams import stream, stream_key
from icy.games import Turns, TurnSettings, World, make_world

SEED = 123
LOOKS = 10  # number of images of each kind of object
SHOWN_TURNS = (1, 2, 4)  # lengths of the rules to show


def sheets() -> dict[str, Figure]:
    """Return the sample sheets by their names."""
    shape, published, thing = make_world("shape"), make_world("shape", sizes="published"), make_world("thing")
    return {
        "world-shape": sheet_of_shape(shape),
        "world-shape-published": sheet_of_shape(published),
        "world-thing": sheet_of_thing(thing),
        "turns-shape": turns_of_shape(shape),
        "turns-thing": turns_of_thing(thing),
    }


def sheet_of_shape(world: World) -> Figure:
    """Draw several images of each shape, in random colors and places."""
    shapes = world.values[0]
    objects = _draw_objects(world, len(shapes), LOOKS)
    objects[..., 0] = torch.arange(len(shapes))[:, None]
    keys = counter_hash(torch.tensor(stream_key(SEED, "sheet")), torch.arange(len(shapes) * LOOKS))
    return plot_looks(world.observe(objects, keys.view(len(shapes), LOOKS)).numpy(), shapes)


def sheet_of_thing(world: World) -> Figure:
    """Draw the vectors of three objects."""
    objects = _draw_objects(world, 3)
    names = [" ".join(names[v] for names, v in zip(world.values, values, strict=True)) for values in objects.tolist()]
    return plot_vectors(world.observe(objects, torch.zeros(3, dtype=torch.long)).numpy(), len(world.sizes), names)


def turns_of_shape(world: World) -> Figure:
    """Draw a turn of rules of one, two and four concepts, with 8 targets and 8 distractors, as in CBM24 figure 3."""
    images, names = [], []
    for length in SHOWN_TURNS:
        turns = Turns(world, TurnSettings(length, targets=8, distractors=8), [SEED])
        drawn = turns.batch("training", first=length, count=1, size=1)
        images.append(world.observe(drawn.objects, drawn.keys)[0, 0, 0].numpy())
        names.append(turns.rules.name(int(drawn.numbers)))
    return plot_turns_of_images(np.stack(images), names, 8)


def turns_of_thing(world: World) -> Figure:
    """Draw a turn of rules of one, two and four concepts, with 8 targets and 8 distractors."""
    objects, demanded, names = [], [], []
    for length in SHOWN_TURNS:
        turns = Turns(world, TurnSettings(length, targets=8, distractors=8), [SEED])
        drawn = turns.batch("training", first=length, count=1, size=1)
        objects.append(drawn.objects[0, 0, 0].numpy())
        demanded.append(drawn.rules[0, 0, 0].numpy())
        names.append(turns.rules.name(int(drawn.numbers)))
    return plot_turns_of_values(np.stack(objects), np.stack(demanded), names, world.attributes, 8)


def _draw_objects(world: World, *shape: int) -> torch.Tensor:
    """Draw objects."""
    return torch.from_numpy(stream(SEED, "sheet").integers(world.sizes, size=(*shape, len(world.sizes))))
