"""The service of Secret Spy Codes: a study with people in their browsers, on Starlette and SQLite.

    plan = read_plan("pilot")                  # pilot.toml
    study = open_study(plan)                   # its database and key
    app = make_app([study], Web())             # icy.study.service.web.app; needs the extra "study"

The rules of the game are those of `icy.study.game`; here are who plays (`persons`, `conditions`), what is on file
(`database`, `play`), what is shown (`web`), and what becomes of it (`progress`, `review`, `audit`, `export`).
"""

from .database import Database
from .plan import StudyPlan, read_plan
from .studies import Study, open_study

__all__ = ["Database", "Study", "StudyPlan", "open_study", "read_plan"]
