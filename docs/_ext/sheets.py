"""Sample sheets of the worlds of the multi-target games, and of turns in them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from numpy.typing import NDArray

from icy.analysis import style
from icy.analysis.plots.games import (
    GAP,
    draw_grid,
    draw_images,
    plot_turns_of_images,
    plot_turns_of_values,
)
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


@style.own_settings()
def plot_looks(images: NDArray[np.floating[Any]], rows: Sequence[str]) -> Figure:
    """Draw images of objects, from 0 to 1, [row, column, channel, y, x], with a name per row."""
    down, across = images.shape[:2]
    room = 0.25 + max(style.text_size(name, style.MEDIUM)[0] for name in rows) / 72
    figure = style.figure(style.WIDTH, (style.WIDTH - room) / across * down)
    axes = figure.subplots()
    draw_images(axes, images)
    step = images.shape[-1] + GAP
    axes.set(xticks=[])
    axes.set_yticks(np.arange(down) * step + step / 2, rows, fontsize=style.MEDIUM)
    axes.tick_params(length=0)
    return figure


@style.own_settings()
def plot_vectors(vectors: NDArray[np.floating[Any]], blocks: int, names: Sequence[str]) -> Figure:
    """Draw one-hot vectors of objects, [object, width]: a panel per object, with a row per block of its vector."""
    width = vectors.shape[-1] // blocks
    each = style.WIDTH * 0.95 * blocks / width + 0.3  # inches; the last are for the name
    figure, panels = style.panels(names, (style.WIDTH, each * len(vectors) + 0.22))
    for axes, vector, name in zip(panels, vectors, names, strict=True):
        draw_grid(axes, vector.reshape(blocks, width), ListedColormap(["white", style.COLORS[0]]), 1)
        axes.set_title(name, fontsize=style.MEDIUM, loc="left", pad=2)
        axes.set_yticks(np.arange(blocks) + 0.5, [str(block + 1) for block in range(blocks)], fontsize=style.SMALL)
    panels[len(panels) // 2].set_ylabel("attribute", fontsize=style.MEDIUM)
    panels[-1].set_xlabel("entry of the attribute's block", fontsize=style.MEDIUM)
    panels[-1].set_xticks(np.arange(9.5, width, 10), np.arange(10, width + 1, 10), fontsize=style.SMALL)
    return figure


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
