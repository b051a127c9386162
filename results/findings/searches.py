"""Finding on networks and people: whether a search finds a sender that is nearer to people than HU-RNN."""

from __future__ import annotations

from icy.core.text import listed
from results.estimates import print_estimate
from results.findings.finding import Finding, supported
from results.search import __main__ as search


def people() -> Finding:
    result = search.run(search.PEOPLE, rerun="never", progress=False)
    records = search.records_again(result)
    confidence, found = search.nearer_than_hu_rnn(result, records)
    hu_rnn = result.baselines[search.place_of_hu_rnn(result)]
    distances = [search.last_of(one).values[0].text(interval=True) for one in (*result.finalists, hu_rnn)]
    facts = search.about(result)
    return Finding(
        supported(
            all(low > 0 for _, low, _ in found),
            f"""
            A search over {facts["space"]} senders of composed parts ({facts["trials"]} trials) found
            {len(found)} that are nearer to people than HU-RNN: their distances are {listed(distances[:-1])}, that of
            HU-RNN (`{hu_rnn.name}`) is {distances[-1]}.
            """,
        ),
        f"""*Distance*: the root mean square difference between the accuracies of a network and of people on held-out
        items, over two datasets and five grammars (people: Icy22, tables 21 and 22). The finalists are
        {listed([f"`{name}`" for name in search.names_of(result.finalists)])}. In 100 new games per dataset and grammar
        they are nearer than HU-RNN by {listed([print_estimate(one) for one in found])} (bootstrap of games and people,
        {100 * confidence:.1f} % each, so that all intervals hold with 95 %). The games are new, but the search chose by
        these people. The trial that is best for one simulated half of them is nearer to the other half than HU-RNN by
        {print_estimate(search.nearer_to_the_other_half(result, records))}.""",
        search.accuracies_text(result, records),
    )
