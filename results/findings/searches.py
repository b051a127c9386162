"""Finding on networks and people: whether a search finds a sender that is nearer to people than HU-RNN."""

from __future__ import annotations

from icy.core.text import listed
from results.estimates import print_estimate
from results.findings.finding import Claim, Finding, supported
from results.search import __main__ as search


def people() -> Finding:
    result = search.run(search.PEOPLE, rerun="never", progress=False)
    records = search.records_again(result)
    confidence, found = search.nearer_than_hu_rnn(result, records)
    hu_rnn = result.baselines[search.place_of_hu_rnn(result)]
    distances = [search.last_of(one).values[0].text(interval=True) for one in (*result.finalists, hu_rnn)]
    facts = search.about(result)
    doubts = search.Scrutiny.of(result, records)
    return Finding(
        supported(
            all(low > 0 for _, low, _ in found) and not doubts.shown,
            f"""
            Not shown: a search over {facts["space"]} senders of composed parts ({facts["trials"]} trials) found
            {len(found)} with smaller distances to people than HU-RNN, {listed(distances[:-1])} against
            {distances[-1]}, but one condition (`{doubts.cell}`) decides, and on `synth` they are not nearer.
            """,
        ),
        f"""*Distance*: the root mean square difference between the accuracies of a network and of people on held-out
        items, over two datasets and five grammars (people: Icy22, tables 21 and 22). HU-RNN is `{hu_rnn.name}`. The
        finalists are {listed([f"`{name}`" for name in search.names_of(result.finalists)])}. In 100 new games per
        dataset and grammar they are nearer than HU-RNN by {listed([print_estimate(one) for one in found])} (bootstrap
        of games and people, {100 * confidence:.1f} % each, so that all intervals hold with 95 %). {doubts.text}
        `search-people.md` lists the three looks at these people and the limits.""",
        search.accuracies_text(result, records),
        claims=(
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
