"""Colours, marks and text of figures."""

from __future__ import annotations

from icy.analysis import style


def test_grammars_look_different_in_colour_and_without() -> None:
    looks = style.grammar_looks([*style.GRAMMARS, "rot+perm"])
    assert len({look.color for look in looks.values() if not look.hollow}) == len(style.GRAMMARS)
    assert len({(look.marker, look.hollow) for look in looks.values()}) == len(looks)
    assert len({str(style.GRAMMARS[name].dash) for name in style.GRAMMARS}) == len(style.GRAMMARS)


def test_other_grammars_have_colours_that_no_shown_grammar_has() -> None:
    shown = ["concat", "perm", "rot", "emerged", "epoch10", "rot+perm"]
    assert len({look.color for look in style.grammar_looks(shown).values()}) == len(shown)


def test_of_many_models_families_have_colours_and_cells_marks() -> None:
    models = [f"sender/{f}:{c}" for f in ("RNNZero", "RNNZero2L", "HierZero") for c in ("RNN", "GRU", "LSTM")]
    looks = style.model_looks(models)
    assert len({(look.color, look.marker, look.hollow) for look in looks.values()}) == len(models)
    assert looks["sender/RNNZero:GRU"].color == looks["sender/RNNZero2L:GRU"].color
    assert looks["sender/RNNZero:GRU"].marker == looks["sender/HierZero:GRU"].marker


def test_text_is_wrapped_to_the_width_it_has() -> None:
    lines = style.wrapped("a fairly long sentence that does not fit into one line of this width", 1.5, 8).splitlines()
    assert len(lines) > 2
    assert all(style.text_size(line, 8)[0] <= 1.5 * 72 for line in lines)
