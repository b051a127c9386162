"""Attention and transformers, against PyTorch's layers."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from icy.core.errors import IncompatibleError, InvalidSettingError
from icy.core.noise import Noise, drawing_from
from icy.core.representations import one_hot
from icy.models import create_receiver, create_sender
from icy.models.attention import Cache, DecoderLayer, sinusoids
from tests.models.helpers import BATCH, SPACE, A, E, K, L, V, some_meanings, some_messages

# -- the library's pre-norm layers with the weights of icy's -----------------------------------------------------------


def shaken(model: nn.Module) -> None:
    """No parameter stays at zero or one, so that each is seen to do its work."""
    generator = torch.Generator().manual_seed(7)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.1 * torch.randn(parameter.shape, generator=generator, dtype=parameter.dtype))


def position_waves() -> Tensor:
    waves = torch.empty(L, E).double()
    for t in range(L):
        for i in range(0, E, 2):
            waves[t, i] = math.sin(t / 10000 ** (i / E))
            waves[t, i + 1] = math.cos(t / 10000 ** (i / E))
    return waves


def assert_same(found: Tensor, expected: Tensor, model: nn.Module) -> None:
    """Equal scores, and equal gradients of every parameter for some loss of them."""
    torch.testing.assert_close(found, expected, atol=1e-9, rtol=0)
    weight = torch.randn(found.shape, generator=torch.Generator().manual_seed(3), dtype=found.dtype)
    mine = torch.autograd.grad((weight * found).sum(), list(model.parameters()), retain_graph=True)
    plain = torch.autograd.grad((weight * expected).sum(), list(model.parameters()))
    for a, b in zip(mine, plain, strict=True):
        assert b.any()
        torch.testing.assert_close(a, b, atol=1e-9, rtol=1e-7)


def plain_pre_norm(layers: Any, x: Tensor, causal: bool) -> Tensor:
    """nn.TransformerEncoder with the weights of ours."""
    length, heads = x.shape[1], layers[0].attention.heads
    layer = nn.TransformerEncoderLayer(E, heads, 4 * E, 0, "gelu", batch_first=True, norm_first=True).double()
    encoder = nn.TransformerEncoder(layer, len(layers), enable_nested_tensor=False)
    state = {}
    for i, layer in enumerate(layers):
        by_head = layer.attention.project.weight.view(heads, 3, E // heads, E)
        state |= {
            f"layers.{i}.self_attn.in_proj_weight": by_head.transpose(0, 1).reshape(3 * E, E),
            f"layers.{i}.self_attn.in_proj_bias": torch.zeros(3 * E).double(),
        }
        for theirs, mine in {
            "self_attn.out_proj": layer.attention.out,
            "linear1": layer.widen,
            "linear2": layer.narrow,
            "norm1": layer.norm1,
            "norm2": layer.norm2,
        }.items():
            state |= {f"layers.{i}.{theirs}.weight": mine.weight, f"layers.{i}.{theirs}.bias": mine.bias}
    mask = nn.Transformer.generate_square_subsequent_mask(length, dtype=torch.float64) if causal else None
    return torch.func.functional_call(encoder, state, (x,), {"mask": mask})


# -- attention: the cache, and the waves of positions ------------------------------------------------------------------


def test_positions_are_the_waves() -> None:
    torch.testing.assert_close(sinusoids(L, torch.empty(E).double()), position_waves())
    assert sinusoids(3, torch.empty(5)).shape == (3, 5)


@pytest.mark.parametrize("width", [4, 8])
def test_the_cache_is_attention_over_stacked_rows(width: int) -> None:
    torch.manual_seed(0)
    queries = torch.randn(L, 3, 4, dtype=torch.float64, requires_grad=True)
    rows = torch.randn(L, 3, width, dtype=torch.float64, requires_grad=True)
    cache, found, expected = Cache(L), [], []
    for t in range(L):
        found.append(cache.attend(queries[t], rows[t]))
        keys, values = rows[: t + 1, :, :4], rows[: t + 1, :, -4:]
        weights = (keys * queries[t]).sum(-1).softmax(0)
        expected.append((weights.unsqueeze(-1) * values).sum(0))
    for of in (range(L), range(L - 2), [1, 4]):  # some steps' results may not be used
        losses = [sum(((t + 1) * steps[t]).sin().sum() for t in of) for steps in (found, expected)]
        for leaf in (queries, rows):
            mine, plain = (torch.autograd.grad(loss, leaf, retain_graph=True)[0] for loss in losses)  # type: ignore[arg-type]
            torch.testing.assert_close(mine, plain)


# -- transformer senders -----------------------------------------------------------------------------------------------


def sender(name: str, **options: Any) -> Any:
    torch.manual_seed(5)
    model = create_sender(name, SPACE, L, V, E, **options).double()
    shaken(model)
    return model


# -- TransDec against the library --------------------------------------------------------------------------------------


def library_state(layer: DecoderLayer) -> dict[str, Tensor]:
    """The state of an nn.TransformerDecoderLayer with the weights of one of ours. What ours leaves out is random."""
    idle, idle_bias = torch.randn(2 * E, E).double(), torch.randn(2 * E).double()
    state = {
        "self_attn.in_proj_weight": torch.cat([layer.query.weight, layer.key.weight, layer.value.weight]),
        "self_attn.in_proj_bias": torch.cat([layer.query.bias, idle_bias[:E], layer.value.bias]),
        "multihead_attn.in_proj_weight": torch.cat([idle, layer.crossed_value.weight]),
        "multihead_attn.in_proj_bias": torch.cat([idle_bias, layer.crossed_value.bias]),
    }
    for theirs, mine in {
        "self_attn.out_proj": layer.out,
        "multihead_attn.out_proj": layer.crossed_out,
        "linear1": layer.widen,
        "linear2": layer.narrow,
        **{f"norm{i}": getattr(layer, f"norm{i}") for i in (1, 2, 3)},
    }.items():
        state |= {f"{theirs}.weight": mine.weight, f"{theirs}.bias": mine.bias}
    return state


def library_decoder(layers: int) -> nn.TransformerDecoder:
    layer = nn.TransformerDecoderLayer(E, 1, 4 * E, dropout=0, batch_first=True).double()
    return nn.TransformerDecoder(layer, layers)


def plain_scores(model: Any, feed_back: Any) -> Tensor:
    """The published program: the whole prefix again at every step."""
    decoder = library_decoder(len(model.layers))
    state = {
        f"layers.{i}.{name}": t for i, layer in enumerate(model.layers) for name, t in library_state(layer).items()
    }
    meanings, embed = some_meanings(), model.feedback.embed
    memory = torch.stack([model.embed.weight[a * K + meanings[:, a]] for a in range(A)]).sum(0).unsqueeze(1)
    seen, scores = one_hot(torch.full((BATCH, 1), V), V + 1, torch.float64), []
    for t in range(1, L + 1):
        x = (embed(seen) if isinstance(embed, nn.Linear) else seen @ embed.weight) + position_waves()[:t]
        mask = nn.Transformer.generate_square_subsequent_mask(t, dtype=torch.float64)
        y = torch.func.functional_call(decoder, state, (x, memory), {"tgt_mask": mask})
        scores.append(model.out(y[:, -1]))
        seen = torch.cat([seen, feed_back(scores[-1]).unsqueeze(1)], 1)
    return torch.stack(scores, 1)


@pytest.mark.parametrize("layers", [1, 2])
def test_transdec_is_the_librarys_decoder_over_the_whole_prefix(layers: int) -> None:
    model = sender(f"TransDecSoft{'2L' if layers == 2 else ''}")
    assert len(model.layers) == layers
    assert_same(model(some_meanings()), plain_scores(model, lambda scores: scores.softmax(-1)), model)


def test_a_sampling_decoder_is_the_librarys_fed_tokens() -> None:
    model = sender("TransDecSampling2L").eval()
    plain = plain_scores(model, lambda scores: F.one_hot(scores.argmax(-1), V + 1).double())
    assert_same(model(some_meanings()), plain, model)


def test_in_training_a_sampling_decoder_is_fed_the_samples_of_the_loss() -> None:
    model, meanings, noise = sender("TransDecSampling"), some_meanings(), Noise(torch.tensor(9))
    with drawing_from(noise):
        found = model.train()(meanings)
    drawn = iter(noise.gumbels(found).unbind(1))
    plain = plain_scores(model, lambda scores: F.one_hot((scores + next(drawn)).argmax(-1), V + 1).double())
    assert_same(found, plain, model)


def test_both_layers_start_alike_and_as_the_librarys() -> None:
    torch.manual_seed(1)
    model = create_sender("TransDecSoft2L", SPACE, L, V, E)
    first, second = (layer.state_dict() for layer in model.layers)  # type: ignore[union-attr]
    assert all(torch.equal(first[name], second[name]) for name in first)
    library = nn.TransformerDecoderLayer(E, 1, 4 * E).state_dict()
    for name, mine in library_state(model.layers[0]).items():  # type: ignore[arg-type,index]
        part = mine[-E:] if "in_proj" in name else mine  # the first two thirds of cross-attention are not there
        theirs = library[name]
        assert torch.equal(part, theirs[-E:]) if theirs.std() == 0 else (part.std() / theirs.std() - 1).abs() < 0.3
        assert part.abs().max() <= theirs.abs().max() * 1.1


# -- the pre-norm models -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("heads", [1, 2, 4])
def test_the_sender_is_the_librarys_layers_over_the_whole_prefix(heads: int) -> None:
    model, meanings = sender("Transformer", heads=heads), some_meanings()
    x = torch.stack([model.embed.weight[a * K + meanings[:, a]] for a in range(A)]).sum(0).unsqueeze(1)
    scores: list[Tensor] = []
    for t in range(L):
        if scores:
            x = torch.cat([x, (scores[-1].softmax(-1) @ model.symbol_embed.weight).unsqueeze(1)], 1)
        y = plain_pre_norm(model.layers, x + position_waves()[: t + 1], causal=True)[:, -1]
        scores.append(model.out(F.layer_norm(y, [E], model.norm.weight, model.norm.bias)))
    assert_same(model(meanings), torch.stack(scores, 1), model)


class Target:
    """A representation that feeds given messages back, whatever the scores."""

    name = "target"

    def __init__(self, messages: Tensor) -> None:
        self.messages = messages

    def feed_back(self, scores: Tensor, step: int, training: bool) -> Tensor:
        return one_hot(self.messages[:, step], V + 1, scores.dtype)


def test_teacher_forcing_is_feeding_the_targets_back() -> None:
    model, meanings, messages = sender("Transformer", teacher_forcing=True), some_meanings(), some_messages()
    taught = model.train()(meanings, messages)
    model.representation = Target(messages)
    assert_same(taught, model(meanings), model)  # no targets are given, so it feeds back


def test_a_taught_model_decodes_greedily_and_learns_without_targets_too() -> None:
    model, meanings = sender("Transformer", teacher_forcing=True), some_meanings()
    greedy = model.eval()(meanings)
    assert torch.equal(model(meanings, some_messages()), greedy)
    taught = model.train()(meanings, greedy.argmax(-1))
    torch.testing.assert_close(taught, greedy, atol=1e-9, rtol=0)
    fed_back = model(meanings)
    assert not torch.allclose(fed_back, greedy)
    untaught = sender("Transformer")
    assert torch.equal(untaught(meanings, some_messages()), fed_back)


@pytest.mark.parametrize("position", range(L))
def test_scores_do_not_depend_on_later_symbols_of_the_target(position: int) -> None:
    model, meanings, messages = sender("Transformer", teacher_forcing=True).train(), some_meanings(), some_messages()
    changed = messages.clone()
    changed[:, position] = (changed[:, position] + 1) % V
    before, after = model(meanings, messages), model(meanings, changed)
    assert torch.equal(after[:, : position + 1], before[:, : position + 1])
    assert (after[:, position + 1 :] != before[:, position + 1 :]).any(-1).all()


def test_heads_must_divide_the_hidden_size() -> None:
    for make in (create_sender, create_receiver):
        with pytest.raises(IncompatibleError, match="3 heads do not divide a hidden size of 16"):
            make("Transformer", SPACE, L, V, E, heads=3)
        with pytest.raises(InvalidSettingError, match="heads must be a whole number of at least 1, not 0"):
            make("Transformer", SPACE, L, V, E, heads=0)
        with pytest.raises(InvalidSettingError, match="layers must be a whole number of at least 1, not 0"):
            make("Transformer", SPACE, L, V, E, layers=0)
        for size, heads in ((8, 4), (9, 3), (10, 2), (7, 1)):
            model: Any = make("Transformer", SPACE, L, V, size)
            assert model.layers[0].attention.heads == heads


# -- the transformer receiver, against the library's layers ------------------------------------------------------------


@pytest.mark.parametrize("soft", [False, True])
def test_the_receiver_is_the_librarys_layers(soft: bool) -> None:
    torch.manual_seed(5)
    model: Any = create_receiver("Transformer", SPACE, L, V, E, layers=3).double()
    shaken(model)
    weights = torch.rand(BATCH, L, V + 1).double().softmax(-1) if soft else one_hot(some_messages(), V + 1).double()
    y = plain_pre_norm(model.layers, weights @ model.embed.weight + position_waves(), causal=False)
    expected = model.out(F.layer_norm(y, [E], model.norm.weight, model.norm.bias).mean(1)).view(BATCH, A, K)
    assert_same(model(weights if soft else some_messages()), expected, model)
