"""Operations of an update of a game."""

from __future__ import annotations

import pytest

from icy.games.jobs import game_jobs
from icy.games.spec import GamesSpec
from icy.training.work import Work


def counted(**given: object) -> Work:
    (job,) = game_jobs(GamesSpec.asked(seeds=[1], **given))
    work = job.work()
    assert work is not None
    return work


@pytest.mark.slow
def test_work_of_thing_equals_the_products_of_its_layers() -> None:
    """One word, 10 turns of 20 targets and 20 distractors of 270 numbers; by hand, two operations per weight."""
    perceived = 10 * (20 * (270 * 60 + 60 * 60) + 40 * (270 * 40 + 40 * 40))
    sender = 10 * (60 * 60 + 60 * 60 + 4 * 60 * (60 + 60) + 60 * 50)
    receiver = 10 * (50 * 40 + 4 * 40 * (40 + 40) + 40 * 40)
    assert counted(world="thing", channel="gs").flops == pytest.approx(2 * (perceived + sender + receiver), rel=0.15)


@pytest.mark.slow
def test_work_of_images_equals_their_convolutions() -> None:
    """Four blocks of 64 channels and kernels of 3x3, for 8 targets and 16 candidates of 10 turns, 64 x 64 pixels."""
    sides = (64, 32, 16, 8)
    one = sum(2 * 9 * 64 * inputs * side**2 for inputs, side in zip((3, 64, 64, 64), sides, strict=True))
    work = counted(world="shape", channel="qt", targets=8)
    assert work.flops == pytest.approx(10 * (8 + 16) * one, rel=0.01)
    small = counted(world="shape", channel="qt", targets=8, world_options={"canvas": 32})
    assert small.flops == pytest.approx(work.flops / 4, rel=0.02)
    assert small.kept < work.kept / 3
