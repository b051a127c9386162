-- The database of studies. Times are UTC with milliseconds; truth values are 0 and 1; names of JSON columns end in _json.

CREATE TABLE study (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    settings_json TEXT NOT NULL,
    settings_hash TEXT NOT NULL,
    software TEXT NOT NULL,
    revision TEXT,
    created TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('pilot', 'open', 'closed'))
) STRICT;

-- The texts that people agreed to.
CREATE TABLE consent (
    version TEXT PRIMARY KEY,
    text TEXT NOT NULL
) STRICT;

CREATE TABLE person (
    id TEXT PRIMARY KEY CHECK (length(id) = 32),
    token TEXT NOT NULL UNIQUE CHECK (length(token) = 32),  -- token of the private link
    study INTEGER NOT NULL REFERENCES study,
    pilot INTEGER NOT NULL CHECK (pilot IN (0, 1)),
    platform TEXT NOT NULL,
    id_hash TEXT,  -- keyed hash of the external id; NULL without an id, or after it was erased
    device TEXT NOT NULL,
    stage TEXT NOT NULL,
    first_seen TEXT NOT NULL,
    consent_version TEXT NOT NULL REFERENCES consent,
    consented TEXT NOT NULL,
    attempts INTEGER NOT NULL DEFAULT 0,  -- attempts at the questions about the instructions
    withdrawn TEXT,
    UNIQUE (study, id_hash)
) STRICT;

-- Ids in a separate table, so that they can be deleted and queries can ignore them.
CREATE TABLE external_id (
    person TEXT PRIMARY KEY REFERENCES person ON DELETE CASCADE,
    external TEXT NOT NULL,
    kept_json TEXT NOT NULL
) STRICT;

CREATE TABLE game (
    id INTEGER PRIMARY KEY,
    person TEXT NOT NULL UNIQUE REFERENCES person ON DELETE CASCADE,
    slot INTEGER NOT NULL,  -- place in the order of conditions
    dataset TEXT NOT NULL,
    grammar TEXT NOT NULL,
    instance INTEGER NOT NULL,
    language_seed INTEGER NOT NULL,
    person_seed INTEGER NOT NULL,
    rules_json TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('assigned', 'open', 'closed', 'dropped')),
    position_json TEXT NOT NULL,
    cards INTEGER NOT NULL,
    score INTEGER NOT NULL DEFAULT 0,
    example INTEGER NOT NULL DEFAULT 0,
    events INTEGER NOT NULL DEFAULT 0,
    assigned TEXT NOT NULL,
    started TEXT,
    touched TEXT NOT NULL,
    finished TEXT,
    completion_code TEXT UNIQUE,
    palette TEXT NOT NULL,
    patterns INTEGER NOT NULL CHECK (patterns IN (0, 1)),
    sound INTEGER NOT NULL CHECK (sound IN (0, 1)),
    viewport TEXT
) STRICT;

CREATE TABLE trial (
    id INTEGER PRIMARY KEY,
    token TEXT NOT NULL UNIQUE CHECK (length(token) = 32),
    game INTEGER NOT NULL REFERENCES game ON DELETE CASCADE,
    example INTEGER NOT NULL,
    meaning INTEGER NOT NULL,
    code TEXT NOT NULL,
    cards INTEGER NOT NULL,
    held_out INTEGER,
    among_colour INTEGER NOT NULL,
    among_shape INTEGER NOT NULL,
    shown_colour INTEGER NOT NULL,
    shown_shape INTEGER NOT NULL,
    exposures_colour INTEGER NOT NULL,
    exposures_shape INTEGER NOT NULL,
    own_exposures INTEGER NOT NULL,
    image INTEGER NOT NULL,
    created TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('open', 'graded')),
    answered TEXT,
    reaction_ms INTEGER,
    raw TEXT,
    answer TEXT,
    correct INTEGER CHECK (correct IN (0, 1)),
    points INTEGER,
    UNIQUE (game, example)
) STRICT;

CREATE TABLE event (
    game INTEGER NOT NULL REFERENCES game ON DELETE CASCADE,
    number INTEGER NOT NULL,
    kind TEXT NOT NULL,
    payload_json TEXT NOT NULL,
    time TEXT NOT NULL,
    PRIMARY KEY (game, number)
) STRICT;

CREATE TABLE survey (
    person TEXT NOT NULL REFERENCES person ON DELETE CASCADE,
    key TEXT NOT NULL,
    value TEXT NOT NULL,
    time TEXT NOT NULL,
    PRIMARY KEY (person, key)
) STRICT;

CREATE TABLE feedback (
    person TEXT PRIMARY KEY REFERENCES person ON DELETE CASCADE,
    text TEXT NOT NULL,
    time TEXT NOT NULL
) STRICT;

CREATE TABLE review (
    game INTEGER PRIMARY KEY REFERENCES game ON DELETE CASCADE,
    decision TEXT NOT NULL CHECK (decision IN ('approve', 'reject')),
    reason TEXT NOT NULL,
    bonus_cents INTEGER NOT NULL,
    decided TEXT NOT NULL,
    exported TEXT
) STRICT;

-- Numbers of visits that were turned away because of their link, without data of the visitors. Since version 2.
CREATE TABLE IF NOT EXISTS refused_visit (
    study INTEGER NOT NULL REFERENCES study,
    pilot INTEGER NOT NULL CHECK (pilot IN (0, 1)),
    reason TEXT NOT NULL,
    visits INTEGER NOT NULL,
    last TEXT NOT NULL,
    PRIMARY KEY (study, pilot, reason)
) STRICT;

-- The last test of the link from the platform. Since version 2.
CREATE TABLE IF NOT EXISTS link_test (
    study INTEGER PRIMARY KEY REFERENCES study,
    platform_hash TEXT NOT NULL,
    tested TEXT NOT NULL
) STRICT;

CREATE INDEX person_of_study ON person (study, pilot);
CREATE INDEX person_by_hash ON person (id_hash);
