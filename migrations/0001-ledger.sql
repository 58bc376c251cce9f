-- The ledger (DESIGN 5). Times are integer milliseconds since 1970, identities 16-byte BLOBs. Statuses, origins, owners,
-- event types and actors are the codes of sidecar/domain. Codes instead of words, WITHOUT ROWID and few indexes: each
-- was chosen by the bytes that it writes to flash.

CREATE TABLE schema_migrations (
  name TEXT PRIMARY KEY,
  sha256 TEXT NOT NULL,
  applied_at_ms INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE capabilities (
  name TEXT PRIMARY KEY,
  contract_version INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE projects (
  project_key INTEGER PRIMARY KEY,
  project_id TEXT NOT NULL UNIQUE
) STRICT;

INSERT INTO projects (project_key, project_id) VALUES (1, 'default');

CREATE TABLE tasks (
  task_key INTEGER PRIMARY KEY,
  project_key INTEGER NOT NULL REFERENCES projects,
  task_id TEXT NOT NULL,
  cron_id INTEGER,
  name TEXT,
  UNIQUE (project_key, task_id)
) STRICT;

CREATE TABLE task_revisions (
  revision_key INTEGER PRIMARY KEY,
  task_key INTEGER NOT NULL REFERENCES tasks,
  digest BLOB NOT NULL CHECK (length(digest) = 32),
  first_seen_at_ms INTEGER NOT NULL,
  UNIQUE (task_key, digest)
) STRICT;

-- One row per boot of a machine (and life of a container) that a process was seen in: 60 bytes that every Attempt would repeat.
CREATE TABLE process_hosts (
  host_key INTEGER PRIMARY KEY,
  host TEXT NOT NULL,
  boot_id BLOB NOT NULL CHECK (length(boot_id) = 16),
  init_start_ticks INTEGER NOT NULL,
  UNIQUE (host, boot_id, init_start_ticks)
) STRICT;

-- idempotency_key: a packed execution ID (BLOB, 22 bytes) for a legacy-owned Run, else the text key of ADR-0103.
CREATE TABLE runs (
  run_id BLOB PRIMARY KEY CHECK (length(run_id) = 16),
  project_key INTEGER NOT NULL REFERENCES projects,
  idempotency_key ANY NOT NULL,
  task_key INTEGER NOT NULL REFERENCES tasks,
  cron_id INTEGER,
  revision_key INTEGER REFERENCES task_revisions,
  origin INTEGER NOT NULL,
  owner INTEGER NOT NULL,
  status INTEGER NOT NULL CHECK (status BETWEEN 0 AND 7),
  version INTEGER NOT NULL,
  created_at_ms INTEGER NOT NULL,
  started_at_ms INTEGER,
  finished_at_ms INTEGER,
  exit_code INTEGER,
  reason TEXT,
  log_path TEXT,
  scheduled_for_ms INTEGER
) STRICT, WITHOUT ROWID;

CREATE UNIQUE INDEX runs_idempotency ON runs (project_key, idempotency_key);
CREATE INDEX runs_cron ON runs (cron_id, run_id) WHERE cron_id IS NOT NULL;
CREATE INDEX runs_active ON runs (created_at_ms, run_id) WHERE status < 4;

CREATE TABLE run_attempts (
  run_id BLOB NOT NULL REFERENCES runs,
  number INTEGER NOT NULL,
  attempt_id BLOB NOT NULL CHECK (length(attempt_id) = 16),
  executor INTEGER NOT NULL,
  status INTEGER NOT NULL CHECK (status BETWEEN 0 AND 6),
  pid INTEGER,
  pid_start_ticks INTEGER,
  host_key INTEGER REFERENCES process_hosts,
  started_at_ms INTEGER,
  finished_at_ms INTEGER,
  exit_code INTEGER,
  PRIMARY KEY (run_id, number)
) STRICT, WITHOUT ROWID;

CREATE TABLE run_events (
  run_id BLOB NOT NULL REFERENCES runs,
  sequence INTEGER NOT NULL,
  type INTEGER NOT NULL,
  actor INTEGER NOT NULL,
  attempt INTEGER,
  occurred_at_ms INTEGER NOT NULL,
  dedupe_key TEXT,
  payload TEXT,
  PRIMARY KEY (run_id, sequence)
) STRICT, WITHOUT ROWID;

-- Events of a state change cannot repeat: the state forbids it. The key guards the others; NULLs are not worth a page each.
CREATE UNIQUE INDEX run_events_dedupe ON run_events (run_id, dedupe_key) WHERE dedupe_key IS NOT NULL;

CREATE TABLE counters (
  name TEXT NOT NULL,
  labels TEXT NOT NULL,
  value INTEGER NOT NULL,
  PRIMARY KEY (name, labels)
) STRICT, WITHOUT ROWID;

-- Where a bounded scan stopped, so that the next one goes on there.
CREATE TABLE cursors (
  name TEXT PRIMARY KEY,
  created_at_ms INTEGER NOT NULL,
  run_id BLOB NOT NULL
) STRICT, WITHOUT ROWID;

INSERT INTO capabilities (name, contract_version) VALUES
  ('ledger', 1),
  ('shadow_scheduled_system', 1);
