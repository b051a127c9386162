"""Finding on networks and people: whether a search finds a sender that is nearer to people than HU-RNN."""

from __future__ import annotations

from icy.core.text import listed
from results.estimates import print_estimate
from results.findings import pictures
from results.findings.data import Estimate
from results.findings.finding import Claim, Finding, supported
from results.search import __main__ as search


def people() -> Finding:
    result = search.run(search.PEOPLE, rerun="never", progress=False)
    records = [search.last_of(one).records for one in (*result.finalists, *result.baselines)]
    _, found = search.nearer_than_hu_rnn(result, records)
    hu_rnn = result.baselines[search.place_of_hu_rnn(result)]
    distances = [search.last_of(one).values[0].text(interval=True) for one in (*result.finalists, hu_rnn)]
    facts = search.about(result)
    doubts = search.Scrutiny.of(result, records)
    known = search.people_of_icy22()
    named = {"people": known.means}
    for name, own in (
        ("HU-RNN", records[len(result.finalists) + search.place_of_hu_rnn(result)]),
        *((f"finalist {place}", own) for place, own in enumerate(records[: len(result.finalists)], 1)),
    ):
        named[name] = search.accuracies_of(own, known).mean(0)
    drawn = {
        " ".join(condition): {name: Estimate(values=(float(of[place]),)) for name, of in named.items()}
        for place, condition in enumerate(known.conditions)
    }
    return Finding(
        supported(
            all(low > 0 for _, low, _ in found) and not doubts.shown,
            """A search found senders that are nearer to people than the published HU-RNN; a single condition decides
            this.""",
        ),
        f"""*Distance*: the root mean square difference between the accuracies of a network and of people on held-out
        items, over ten conditions (Icy22, tables 21 and 22). In 100 new games per condition it is {distances[-1]} for
        HU-RNN, and {listed(distances[:-1])} for the finalists of {facts["trials"]} trials. Without the condition
        `{doubts.cell}` they are nearer by {listed([print_estimate(one) for one in doubts.without])}: unknown.""",
        """[Their page](../../results/search/search-people.md) has the finalists, their accuracies in each condition,
        the three looks at these people, and the limits.""",
        "",
        pictures.marks(drawn, "accuracy on held-out items", None),
        (
            Claim(
                "searched senders are nearer to people than HU-RNN",
                "ten conditions of Icy22's game, 100 games each",
                f"{len(found)} finalists of {facts['trials']} trials",
                listed([f"{one[0]:.2f}" for one in found]),
                listed([f"{one[1]:.2f} to {one[2]:.2f}" for one in found]),
                "bootstrap of games and people",
                f"{len(found)} finalists; not for three looks",
                "not shown",
                f"`{doubts.cell}` decides; without it {listed([print_estimate(one) for one in doubts.without])}",
            ),
        ),
    )
