"""The service of Secret Spy Codes: a study with people in their browsers, on Starlette and SQLite.

    plan = read_plan("pilot")                  # pilot.toml
    study = open_study(plan)                   # its database and key
    app = app_of([study], Serving())           # icy.study.service.serve and .network; needs the extra "study"

`icy.study.game` has the rules of the game, and `icy.study.columns` the columns of the data. This package assigns people
to conditions (`persons`), stores the games (`database`, `play`), serves the pages (`web`), and reads the data
(`progress`, `review`, `audit`, `export`).
"""

from .database import Database
from .plan import StudyPlan, read_plan
from .studies import Study, open_study

__all__ = ["Database", "Study", "StudyPlan", "open_study", "read_plan"]
