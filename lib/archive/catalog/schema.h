/* SPDX-License-Identifier: Apache-2.0 */
/* The catalog's tables.
 *
 * A row of `segments` has the fields of a meta. The row of an open run has the fields that its meta would have now;
 * open_metas has that meta in parts, and no total counts it. *_arrival is the time of receipt on the collector's clock,
 * which retention uses; *_wall is the time when it was traced. Triggers keep `streams` and `totals` as sums over
 * segments, so that status never walks the archive. The longest_* columns let a query bound one end of a segment by an
 * index of the other (catalog/select.c). Rows of metas that were folded into a day's ledger are deleted; the sums still
 * count them. The columns of `streams` from live_state on are set while a stream is connected. */
#ifndef TC_ARCHIVE_CATALOG_SCHEMA_H
#define TC_ARCHIVE_CATALOG_SCHEMA_H

/* clang-format off */
enum { TC__SCHEMA_VERSION = 8 };

#define TC__TOTALS_OF(row) \
  "bytes = bytes + (CASE " row ".expired + " row ".open WHEN 0 THEN " row ".bytes ELSE 0 END)," \
  "segments = segments + (" row ".expired + " row ".open = 0 AND " row ".generations > 0)," \
  "expired = expired + " row ".expired," \
  "longest_wall = max(longest_wall, " row ".last_wall - " row ".first_wall)," \
  "longest_arrival = max(longest_arrival, " row ".last_arrival - " row ".first_arrival)"

#define TC__TOTALS_WITHOUT_OLD \
  "bytes = bytes - (CASE OLD.expired + OLD.open WHEN 0 THEN OLD.bytes ELSE 0 END)," \
  "segments = segments - (OLD.expired + OLD.open = 0 AND OLD.generations > 0)," \
  "expired = expired - OLD.expired"

#define TC__SERVICE_BYTES(sign, row) \
  "  UPDATE services SET bytes = bytes " sign " " row ".bytes WHERE service = " row ".service" \
  "    AND " row ".expired + " row ".open = 0;"

static const char tc__catalog_schema[] =
  "CREATE TABLE IF NOT EXISTS segments ("
  "  id INTEGER PRIMARY KEY,"
  "  stream BLOB NOT NULL,"
  "  service TEXT NOT NULL,"
  "  instance TEXT NOT NULL,"
  "  identity TEXT NOT NULL,"
  "  path TEXT NOT NULL,"
  "  first_gen INTEGER NOT NULL,"
  "  last_gen INTEGER NOT NULL,"
  "  generations INTEGER NOT NULL,"  /* 0: a note of losses, without a trace */
  "  bytes INTEGER NOT NULL,"
  "  batches INTEGER NOT NULL,"
  "  events INTEGER NOT NULL,"
  "  first_arrival INTEGER NOT NULL,"
  "  last_arrival INTEGER NOT NULL,"
  "  first_wall INTEGER NOT NULL,"  /* the trace's own clock (lib/archive/generation_time.h) */
  "  last_wall INTEGER NOT NULL,"
  "  estimated INTEGER NOT NULL,"
  "  go_version INTEGER NOT NULL,"
  "  verdict INTEGER NOT NULL,"
  "  broken INTEGER NOT NULL,"
  "  reason TEXT NOT NULL,"
  "  expired INTEGER NOT NULL,"
  "  unsafe INTEGER NOT NULL,"
  "  hash_kind INTEGER NOT NULL,"  /* enum tc_hash_kind; 0: the run is open */
  "  hash BLOB NOT NULL,"
  "  lost_batches INTEGER NOT NULL,"
  "  lost_bytes INTEGER NOT NULL,"
  "  lost_generations INTEGER NOT NULL,"
  "  last_seq INTEGER NOT NULL,"
  "  ended TEXT NOT NULL,"
  "  open INTEGER NOT NULL DEFAULT 0,"
  "  UNIQUE (stream, first_gen)"
  ") STRICT;"

  "CREATE INDEX IF NOT EXISTS segments_age ON segments (last_arrival)"
  "  WHERE expired = 0 AND open = 0 AND generations > 0;"
  "CREATE INDEX IF NOT EXISTS segments_service ON segments (service, last_arrival)"
  "  WHERE expired = 0 AND open = 0 AND generations > 0;"
  "CREATE INDEX IF NOT EXISTS segments_time ON segments (first_wall) WHERE generations > 0;"
  "CREATE INDEX IF NOT EXISTS segments_service_time ON segments (service, first_wall)"
  "  WHERE generations > 0;"
  "CREATE INDEX IF NOT EXISTS segments_span ON segments (stream, last_wall) WHERE generations > 0;"
  "CREATE INDEX IF NOT EXISTS segments_arrival ON segments (last_arrival) WHERE generations > 0;"
  "CREATE INDEX IF NOT EXISTS segments_pending ON segments (stream, first_gen)"
  "  WHERE verdict = 0 AND expired = 0 AND open = 0;"
  "CREATE INDEX IF NOT EXISTS segments_open ON segments (open) WHERE open = 1;"

  "CREATE TABLE IF NOT EXISTS open_metas ("
  "  segment INTEGER NOT NULL,"
  "  part INTEGER NOT NULL,"
  "  meta BLOB NOT NULL,"
  "  PRIMARY KEY (segment, part)"
  ") STRICT, WITHOUT ROWID;"

  "CREATE TABLE IF NOT EXISTS streams ("
  "  stream BLOB PRIMARY KEY,"
  "  service TEXT NOT NULL,"
  "  instance TEXT NOT NULL,"
  "  identity TEXT NOT NULL,"
  "  go_version INTEGER NOT NULL DEFAULT 0,"
  "  last_seq INTEGER NOT NULL DEFAULT 0,"
  "  batches INTEGER NOT NULL DEFAULT 0,"
  "  bytes INTEGER NOT NULL DEFAULT 0,"
  "  generations INTEGER NOT NULL DEFAULT 0,"
  "  broken INTEGER NOT NULL DEFAULT 0,"
  "  events INTEGER NOT NULL DEFAULT 0,"
  "  lost_batches INTEGER NOT NULL DEFAULT 0,"
  "  lost_bytes INTEGER NOT NULL DEFAULT 0,"
  "  lost_generations INTEGER NOT NULL DEFAULT 0,"
  "  first_arrival INTEGER NOT NULL DEFAULT 0,"
  "  last_arrival INTEGER NOT NULL DEFAULT 0,"
  "  ended TEXT NOT NULL DEFAULT '',"
  "  longest_wall INTEGER NOT NULL DEFAULT 0,"
  "  longest_gens INTEGER NOT NULL DEFAULT 0,"
  "  live_state TEXT NOT NULL DEFAULT '',"
  "  live_peer TEXT NOT NULL DEFAULT '',"
  "  live_seq INTEGER NOT NULL DEFAULT 0,"
  "  produced_batches INTEGER NOT NULL DEFAULT 0,"
  "  produced_bytes INTEGER NOT NULL DEFAULT 0,"
  "  spool_bytes INTEGER NOT NULL DEFAULT 0,"
  "  last_loss INTEGER NOT NULL DEFAULT 0,"
  "  cut_seq INTEGER NOT NULL DEFAULT 0,"
  "  cut_settled_seq INTEGER NOT NULL DEFAULT 0,"
  "  cut_produced_batches INTEGER NOT NULL DEFAULT 0,"
  "  cut_produced_bytes INTEGER NOT NULL DEFAULT 0,"
  "  cut_told_batches INTEGER NOT NULL DEFAULT 0,"
  "  cut_told_bytes INTEGER NOT NULL DEFAULT 0,"
  "  cut_open_batches INTEGER NOT NULL DEFAULT 0,"
  "  cut_open_bytes INTEGER NOT NULL DEFAULT 0"
  ") STRICT;"

  "CREATE INDEX IF NOT EXISTS streams_service ON streams (service, stream);"
  "CREATE INDEX IF NOT EXISTS streams_instance ON streams (instance, stream);"

  "CREATE TABLE IF NOT EXISTS services (" /* bytes: as in totals */
  "  service TEXT PRIMARY KEY,"
  "  bytes INTEGER NOT NULL"
  ") STRICT, WITHOUT ROWID;"

  "CREATE TABLE IF NOT EXISTS totals ("
  "  one INTEGER PRIMARY KEY CHECK (one = 1),"
  "  bytes INTEGER NOT NULL,"
  "  segments INTEGER NOT NULL,"
  "  expired INTEGER NOT NULL,"
  "  longest_wall INTEGER NOT NULL,"
  "  longest_arrival INTEGER NOT NULL"
  ") STRICT;"
  "INSERT OR IGNORE INTO totals VALUES (1, 0, 0, 0, 0, 0);"

  "CREATE TRIGGER IF NOT EXISTS segment_in AFTER INSERT ON segments BEGIN"
  "  INSERT INTO streams (stream, service, instance, identity, first_arrival)"
  "    VALUES (NEW.stream, NEW.service, NEW.instance, NEW.identity, NEW.first_arrival)"
  "    ON CONFLICT (stream) DO NOTHING;"
  "  UPDATE streams SET"
  "    go_version = NEW.go_version,"
  "    last_seq = max(last_seq, NEW.last_seq),"
  "    batches = batches + NEW.batches,"
  "    bytes = bytes + NEW.bytes,"
  "    generations = generations + NEW.generations,"
  "    broken = broken + NEW.broken,"
  "    events = events + NEW.events,"
  "    lost_batches = lost_batches + NEW.lost_batches,"
  "    lost_bytes = lost_bytes + NEW.lost_bytes,"
  "    lost_generations = lost_generations + NEW.lost_generations,"
  "    first_arrival = CASE first_arrival WHEN 0 THEN NEW.first_arrival ELSE min(first_arrival, NEW.first_arrival) END,"
  "    last_arrival = max(last_arrival, NEW.last_arrival),"
  "    ended = CASE NEW.ended WHEN '' THEN ended ELSE NEW.ended END,"
  "    longest_wall = max(longest_wall, NEW.last_wall - NEW.first_wall),"
  "    longest_gens = max(longest_gens, NEW.last_gen - NEW.first_gen)"
  "    WHERE stream = NEW.stream;"
  "  UPDATE totals SET " TC__TOTALS_OF("NEW") ";"
  "  INSERT INTO services VALUES (NEW.service, 0) ON CONFLICT (service) DO NOTHING;"
  TC__SERVICE_BYTES("+", "NEW")
  "END;"

  "CREATE TRIGGER IF NOT EXISTS segment_changed AFTER UPDATE ON segments BEGIN"
  "  UPDATE streams SET"
  "    last_seq = max(last_seq, NEW.last_seq),"
  "    batches = batches + NEW.batches - OLD.batches,"
  "    bytes = bytes + NEW.bytes - OLD.bytes,"
  "    generations = generations + NEW.generations - OLD.generations,"
  "    broken = broken + NEW.broken - OLD.broken,"
  "    events = events + NEW.events - OLD.events,"
  "    lost_batches = lost_batches + NEW.lost_batches - OLD.lost_batches,"
  "    lost_bytes = lost_bytes + NEW.lost_bytes - OLD.lost_bytes,"
  "    lost_generations = lost_generations + NEW.lost_generations - OLD.lost_generations,"
  "    last_arrival = max(last_arrival, NEW.last_arrival),"
  "    ended = CASE NEW.ended WHEN '' THEN ended ELSE NEW.ended END,"
  "    longest_wall = max(longest_wall, NEW.last_wall - NEW.first_wall),"
  "    longest_gens = max(longest_gens, NEW.last_gen - NEW.first_gen)"
  "    WHERE stream = NEW.stream;"
  "  UPDATE totals SET " TC__TOTALS_WITHOUT_OLD ";"
  "  UPDATE totals SET " TC__TOTALS_OF("NEW") ";"
  TC__SERVICE_BYTES("-", "OLD")
  TC__SERVICE_BYTES("+", "NEW")
  "END;"

  "CREATE TRIGGER IF NOT EXISTS segment_sealed AFTER UPDATE ON segments"
  "  WHEN OLD.open = 1 AND NEW.open = 0 BEGIN"
  "  DELETE FROM open_metas WHERE segment = OLD.id;"
  "END;"

  "CREATE TRIGGER IF NOT EXISTS open_gone AFTER DELETE ON segments WHEN OLD.open = 1 BEGIN"
  "  UPDATE streams SET"
  "    batches = batches - OLD.batches,"
  "    bytes = bytes - OLD.bytes,"
  "    generations = generations - OLD.generations,"
  "    broken = broken - OLD.broken,"
  "    events = events - OLD.events,"
  "    lost_batches = lost_batches - OLD.lost_batches,"
  "    lost_bytes = lost_bytes - OLD.lost_bytes,"
  "    lost_generations = lost_generations - OLD.lost_generations"
  "    WHERE stream = OLD.stream;"
  "  DELETE FROM open_metas WHERE segment = OLD.id;"
  "END;";
/* clang-format on */

#endif
