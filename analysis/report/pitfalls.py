"""How to read the numbers of a report, a sentence per topic; docs/pitfalls.md has details under the same headings."""

PITFALLS = {
    "Conventions": "One metric has several definitions. Headings and notes name the definition that was used: compare "
    "values only if these agree.",
    "Symbols": "In an end-to-end run over a link that is soft, gumb or discr, agents can say the V tokens and the "
    "start symbol, unless symbols=V.",
    "Chance": "A value above 0 is not a finding yet: icy metrics --permutations 1000 shows the value by chance and a "
    "p-value. Metrics of information are too high on few rows.",
    "Values by construction": "‡ marks a value that the size of its table determines or bounds, such as ami if no "
    "message occurs twice.",
    "Cuts": "† marks runs that ended at the cap or the budget: the true ratio is larger, and two models that were both "
    "cut cannot be ranked.",
    "Seeds": "± is a spread over seeds; the notes of each table say which. A value of few seeds is uncertain: compare "
    "models seed by seed.",
    "Ratios": "A ratio is relative to concat, with the same model and seed. It says nothing about "
    "absolute speed: the number of updates is below the ratio.",
    "Accuracy": "Only the protocol generalise measures on meanings that were not trained on. Senders are right about "
    "tokens (chance 1/V), receivers about attributes (chance 1/K): 80 % accuracy is not equally hard for both.",
    "Presets": "The preset published reproduces the defects of the authors' programs that changed printed numbers.",
}
