"""Models: their numbers of parameters, against the papers' tables."""

from __future__ import annotations

import copy
import pickle
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import nn

from icy.core.errors import InvalidSettingError, UnknownNameError
from icy.core.registry import registry
from icy.languages.meanings import MeaningSpace
from icy.models import create_receiver, create_sender, creation
from icy.models.creation import create
from tests.models.helpers import CREATE
from tests.training.test_cuda_graphs import Watch

# Totals of the authors' program (E = 128, V = 4, w = 4) at 5x10 and at 3x10; the papers' tables agree where they print
# one.
SENDER_TOTALS = {
    "FC1L": (5_100, 1_860),
    "FC2L": (19_428, 11_708),
    "RNNZero:RNN": (40_069, 37_509),
    "RNNZero:GRU": (106_117, 103_557),
    "RNNZero:LSTM": (139_141, 136_581),
    "RNNZero:SRU": (56_709, 54_149),
    "RNNZero:dgsend": (105_349, 102_789),
    "RNNZero2L:RNN": (73_093, 70_533),
    "RNNZero2L:GRU": (205_189, 202_629),
    "RNNZero2L:LSTM": (271_237, 268_677),
    "RNNZero2L:SRU": (106_373, 103_813),
    "RNNZero2L:dgsend": (203_653, 201_093),
    "RNNAutoReg2L:RNN": (73_861, 71_301),
    "RNNAutoReg2L:GRU": (205_957, 203_397),
    "RNNAutoReg2L:LSTM": (272_005, 269_445),
    "RNNAutoReg2L:SRU": (107_141, 104_581),
    "RNNAutoReg2L:dgsend": (204_421, 201_861),
    "RNNAutoReg:dgrecv": (204_421, 201_861),
    "TransDecSoft": (272_389, 269_829),
    "TransDecSoft2L": (536_965, 534_405),
    "TransDecSampling": (272_261, 269_701),
    "HierZero:RNN": (40_710, 38_150),
    "HierZero:GRU": (107_782, 105_222),
    "HierZero:LSTM": (141_318, 138_758),
    "HierZero:dgsend": (138_758, 136_198),
    "HierAutoReg:RNN": (64_262, 59_142),
    "HierAutoReg:GRU": (163_846, 158_726),
    "HierAutoReg:LSTM": (213_638, 208_518),
    "HierAutoReg:dgsend": (178_566, 173_446),
    "RNNAutoReg:RNN": (40_837, 38_277),
    "RNNAutoReg:GRU": (106_885, 104_325),
    "RNNAutoReg:LSTM": (139_909, 137_349),
    "RNNAutoReg:SRU": (57_477, 54_917),
    "RNNAutoReg:dgsend": (106_117, 103_557),
    "RNNSampling:RNN": (40_709, 38_149),
    "RNNSampling:GRU": (106_757, 104_197),
    "RNNSampling:LSTM": (139_781, 137_221),
    "RNNSampling2L:GRU": (205_829, 203_269),
    "HierSampling:RNN": (64_134, 59_014),
    "HierSampling:GRU": (163_718, 158_598),
    "HierSampling:dgsend": (178_438, 173_318),
    "TransDecSampling2L": (536_837, 534_277),
    "Hashtable": (0, 0),
}
RECEIVER_TOTALS = {
    "FC1L": (5_000, 1_800),
    "FC2Lv2": (19_250, 11_550),
    "FC2L": (129_330, 47_390),
    "FC": (335_538, 201_886),
    "CNN": (161_970, 111_390),
    "RNN:RNN": (42_044, 38_948),
    "RNN:GRU": (108_092, 104_996),
    "RNN:LSTM": (141_116, 138_020),
    "RNN:SRU": (58_684, 55_588),
    "RNN:dgsend": (107_324, 104_228),
    "RNN:dgrecv": (205_628, 202_532),
    "RNN2L:RNN": (75_068, 71_972),
    "RNN2L:GRU": (207_164, 204_068),
    "RNN2L:LSTM": (273_212, 270_116),
    "RNN2L:SRU": (108_348, 105_252),
    "RNN2L:dgrecv": (402_236, 399_140),
    "Hier:RNN": (73_907, 71_327),
    "Hier:GRU": (206_003, 203_423),
    "Hier:LSTM": (272_051, 269_471),
    "Hier:dgsend": (204_467, 201_887),
    "Hier:dgrecv": (401_075, 398_495),
    "MeanEmbeddings": (7_474, 4_894),
    "Hashtable": (0, 0),
    "kNN": (0, 0),
}


TOTALS = [
    pytest.param(side, name, space, total, id=f"{side}/{name}-{space}")
    for side, table in (("sender", SENDER_TOTALS), ("receiver", RECEIVER_TOTALS))
    for name, totals in table.items()
    for space, total in zip(("5x10", "3x10"), totals, strict=True)
]


@pytest.mark.parametrize(("side", "name", "space", "total"), TOTALS)
def test_published_totals(side: str, name: str, space: str, total: int) -> None:
    length = 4 * MeaningSpace.parse(space).attributes
    model = CREATE[side](name, space, message_length=length)
    assert model.parameter_count("published") == total
    assert 0 <= model.parameter_count("true") <= total


def test_published_totals_of_large_embeddings() -> None:
    with torch.device("meta"):  # nothing is allocated
        assert create_sender("RNNAutoReg:LSTM", "5x10", hidden_size=1280).parameter_count("published") == 13_195_525
        assert create_sender("FC2L", "5x10", hidden_size=1280).parameter_count("published") == 193_380


def test_the_true_count_is_the_number_of_parameters() -> None:
    model = create_sender("HierZero:GRU", "3x4", 6, 4, 16)
    assert model.parameter_count() == sum(p.numel() for p in model.parameters())
    assert model.parameter_count("published") - model.parameter_count() == 2 * 3 * 16  # input weights of both cells
    with pytest.raises(InvalidSettingError, match="'true' or 'published'"):
        model.parameter_count("both")


# -- making models by name, and mistakes in it -------------------------------------------------------------------------


def test_mistakes_are_answered_in_a_sentence() -> None:
    with pytest.raises(UnknownNameError, match="did you mean HierZero:GRU"):
        create_sender("HierZero:GRUU", "3x4")
    with pytest.raises(InvalidSettingError, match="hidden_size must be a whole number of at least 1, not 0"):
        create_sender("FC2L", "3x4", hidden_size=0)
    with pytest.raises(InvalidSettingError, match=r"has no option 'gate'; its options: .*shared_gate"):
        create_receiver("Hier:GRU", "3x4", gate=True)
    with pytest.raises(InvalidSettingError, match="has no option 'space'; its options: none"):
        create(registry.get("FC2L", "sender"), "3x4", 6, 4, 8, space=3)  # type: ignore[call-arg]
    with pytest.raises(UnknownNameError, match="representation"):
        create_sender("RNNAutoReg:GRU", "3x4", representation="sofd")


def test_a_model_without_feedback_takes_any_representation() -> None:
    create_sender("FC2L", "3x4", 6, 4, 8, representation="soft")
    with pytest.raises(UnknownNameError):
        create_sender("FC2L", "3x4", 6, 4, 8, representation="none such")


def test_a_factory_that_takes_anything_is_told_the_representation() -> None:
    told: list[Any] = []

    def factory(space: MeaningSpace, length: int, vocab: int, hidden: int, **more: Any) -> nn.Module:
        told.append(more["representation"].name)
        return nn.Linear(1, 1)

    entry = replace(registry.get("FC1L", "sender"), factory=factory)
    create(entry, "3x4", 6, 4, 8, representation="gumb")
    assert told == ["gumb"]


@pytest.mark.parametrize("hidden", [100_000_000, 2**31 - 1])
@pytest.mark.parametrize("model", ["FC2L", "RNNZero:GRU"])
def test_a_model_that_is_too_large_is_refused_before_it_is_made(model: str, hidden: int) -> None:
    with pytest.raises(
        InvalidSettingError, match=f"{model} with a hidden size of {hidden} .* take a smaller hidden size"
    ):
        create_sender(model, "3x4", 6, hidden_size=hidden)


def test_the_check_of_a_large_model_draws_no_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(1)
    plain = create_sender("RNNZero:GRU", "2x3", 4, hidden_size=8)
    monkeypatch.setattr(creation, "LARGE", 1)
    torch.manual_seed(1)
    checked = create_sender("RNNZero:GRU", "2x3", 4, hidden_size=8)
    assert all((a == b).all() for a, b in zip(plain.parameters(), checked.parameters(), strict=True))


# -- receivers of spaces whose attributes have different numbers of values ---------------------------------------------


SPACE = MeaningSpace.parse("5,2,3")


def receiver(name: str = "FC2L", space: MeaningSpace = SPACE) -> nn.Module:
    torch.manual_seed(1)
    return create_receiver(name, space, 6, 4, 8).eval()


@pytest.mark.parametrize(
    "name", ["FC1L", "FC2L", "RNN1L:GRU", "Hier:LSTM", "CNN", "Transformer", "MeanEmbeddings", "kNN"]
)
def test_values_that_an_attribute_lacks_have_no_probability(name: str) -> None:
    model, messages = receiver(name), torch.randint(4, (7, 6))
    if name == "kNN":
        model.observe(messages, torch.from_numpy(SPACE.meanings(torch.arange(7).numpy())))  # type: ignore[operator]
    probabilities = model(messages).softmax(-1)
    assert probabilities.shape == (7, 3, 5)
    existing = torch.from_numpy(SPACE.existing)
    assert (probabilities[:, ~existing] == 0).all()
    assert (probabilities[:, existing] > 0).all()
    torch.testing.assert_close(probabilities.sum(-1), torch.ones(7, 3))


def test_the_scores_of_other_values_are_those_of_a_grid() -> None:
    messages, existing = torch.randint(4, (7, 6)), torch.from_numpy(SPACE.existing)
    in_grid = receiver(space=MeaningSpace(3, 5))
    assert torch.equal(receiver()(messages)[:, existing], in_grid(messages)[:, existing])
    assert receiver().state_dict().keys() == in_grid.state_dict().keys()


def test_copies_and_pickles_keep_the_rule() -> None:
    model, messages = receiver(), torch.randint(4, (7, 6))
    for other in (copy.deepcopy(model), pickle.loads(pickle.dumps(model)), receiver().double().float()):
        assert torch.equal(other(messages), model(messages))
    half = model.to(torch.bfloat16)(messages)
    assert half.isfinite().all()
    assert (half.softmax(-1)[:, ~torch.from_numpy(SPACE.existing)] == 0).all()


def test_no_gradient_goes_to_missing_values() -> None:
    model = create(registry.get("FC1L", "receiver"), SPACE, 6, 4, 8)
    scores = model(torch.randint(4, (9, 6)))
    nn.functional.cross_entropy(scores.flatten(0, 1), torch.zeros(27, dtype=torch.long)).backward()
    (table,) = model.parameters()
    assert table.grad is not None
    assert (table.grad.view(-1, 3, 5)[:, ~torch.from_numpy(SPACE.existing)] == 0).all()


def test_nothing_is_copied_from_the_host_after_the_first_batch() -> None:
    """A captured update cannot contain such a copy; "meta" replaces the GPU."""
    model, messages = receiver().to("meta"), torch.zeros(7, 6, dtype=torch.long, device="meta")
    model(messages)
    with Watch() as watch:
        model(messages)
    assert not watch.found
