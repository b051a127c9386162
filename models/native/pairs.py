"""Call the compiled code that trains pairs: a sender, a representation and a receiver."""

import ctypes

from icy.core import native

from .builder import NotNativeError
from .calls import ALIGNMENT, PACKAGE, PLACE_BYTES, POINTER, WHOLE, Caller, Loss, Optimizer, bytes_of
from .program import Program

RELAXED, ONE_HOT, DRAWN, ROUNDED, NEAREST = range(5)  # `enum LinkKind` of pair.h


class Link(ctypes.Structure):
    """`struct Link` of pair.h."""

    _fields_ = [
        *((n, WHOLE) for n in ("kind", "places", "choices", "emitted", "noisy")),
        *((n, ctypes.c_double) for n in ("temperature", "levels", "commitment")),
        ("codes", WHOLE),
    ]


class PairTraining(ctypes.Structure):
    """`struct PairTraining` of pair.h."""

    _fields_ = [
        ("link", Link),
        ("loss", Loss),
        ("optimizer", Optimizer),
        *((n, WHOLE) for n in ("replicates", "updates", "batch", "padded", "receiver", "codes")),
        *((n, POINTER) for n in ("parameters", "first_moments", "second_moments", "trained")),
        *((n, POINTER) for n in ("meanings", "keys", "losses", "right", "sent")),
    ]


class PairCaller(Caller):
    """Calls the compiled code for each pair of a stack."""

    def __init__(self) -> None:
        super().__init__()
        library = native.load(PACKAGE)
        assert library is not None
        self._train_pair = library.function("icy_train_pair", None, POINTER, POINTER, POINTER, WHOLE, POINTER)

    def train_pairs(self, sender: Program, receiver: Program, training: PairTraining) -> None:
        """Update every pair.

        Raises:
            NotNativeError: the chunks of the programs differ, or the receiver cannot read the sender's messages.
        """
        one, other, link, batch = sender.native, receiver.native, training.link, training.batch
        fitting = (sender.places, sender.choices, other.chunk) == (other.tokens, other.weighted, one.chunk)
        if not fitting or (link.places, link.choices) != (sender.places, sender.choices):
            raise NotNativeError("its receiver cannot read the messages of its sender")
        chunks = sender.chunks(batch) if link.kind == DRAWN else 1
        parts = [
            n
            for program in (one, other)
            for n in (PLACE_BYTES * program.place_count, 4 * program.tape * chunks, 4 * program.weights)
        ]
        messages = [4 * one.chunk * link.places * link.choices] * 3
        answers = 4 * batch * receiver.places
        size = bytes_of(
            4 * training.padded, *parts, *messages, 4 * batch * link.places, answers, answers, 4 * batch, ALIGNMENT
        )
        programs, of_training = [ctypes.addressof(p) for p in (one, other)], ctypes.addressof(training)
        self._share(lambda i, space: self._train_pair(*programs, of_training, i, space), training.replicates, size)
