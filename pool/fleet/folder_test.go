package fleet

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/ralph-pool/ralph/pool/fleet/internal/address"
	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/pool/journal/archive"
	"github.com/ralph-pool/ralph/pool/journal/journaltest"
)

// ended returns a run that has ended, with its folder.
func ended(t *testing.T, id string, lines ...journal.Event) journal.Record {
	t.Helper()
	dir := t.TempDir()
	var text strings.Builder
	for _, e := range lines {
		line, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		text.Write(append(line, '\n'))
	}
	if err := os.WriteFile(filepath.Join(dir, "events.jsonl"), []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	r := journal.Record{Run: journal.Run{ID: id, Kind: journal.KindIssue, Key: id, Started: time.Now(), Dir: dir}}
	r.Ended = time.Now()
	return r
}

// copied waits until all folders are copied.
func copied(t *testing.T, j *Journal) {
	t.Helper()
	for {
		j.folders.mu.Lock()
		on := j.folders.copying
		j.folders.mu.Unlock()
		if !on {
			return
		}
		select {
		case <-t.Context().Done():
			t.Fatal("folders are not copied")
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// events returns the texts of the events in the copy that a machine gets.
func events(t *testing.T, j *Journal, run string) (texts []string) {
	t.Helper()
	content, err := j.Folder(t.Context(), run)
	if err != nil {
		t.Fatal(err)
	}
	if content == nil {
		return nil
	}
	dir := t.TempDir()
	if err := archive.Unpack(content, dir); err != nil {
		t.Fatal(err)
	}
	if err := journal.ReadEvents(dir, func(e journal.Event) error { texts = append(texts, e.Text); return nil }); err != nil {
		t.Fatal(err)
	}
	return texts
}

// Every machine can read the logs of a run after its end, including its last event, which is written after its record.
func TestFoldersAreShared(t *testing.T) {
	t.Parallel()
	d := migrated(t)
	f, j := join(t, d)
	other, elsewhere := join(t, d)
	r := ended(t, "run", journal.Event{Kind: journal.EventNote, Text: "works"})
	if err := j.Save(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	log, err := os.OpenFile(filepath.Join(r.Dir, "events.jsonl"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := log.WriteString(`{"kind":"ended","text":"over"}` + "\n"); err != nil || log.Close() != nil {
		t.Fatal(err)
	}
	gone := ended(t, "gone")
	if err := os.RemoveAll(gone.Dir); err != nil {
		t.Fatal(err)
	}
	if err := j.Save(t.Context(), gone); err != nil {
		t.Fatal(err)
	}
	copied(t, j)
	if got := events(t, elsewhere, "run"); len(got) != 2 || got[0] != "works" || got[1] != "over" {
		t.Errorf("the other machine reads %q", got)
	}
	if got := events(t, elsewhere, "gone"); got != nil {
		t.Errorf("of a folder that is gone: %q", got)
	}
	if _, err := d.exec(t.Context(), "UPDATE ralph_folder SET content = decode(repeat('00', $1), 'hex')", archive.MaxSize+1); err != nil {
		t.Fatal(err)
	}
	if content, err := elsewhere.Folder(t.Context(), "run"); content != nil || err != nil { // it would be in memory twice
		t.Errorf("of a copy that no machine makes: %d bytes, %v", len(content), err)
	}
	f.Stop()
	other.Stop()
}

// Folders that could not be copied, because the process ended or the database was away, are copied by the next process.
func TestFoldersAreCopiedLater(t *testing.T) {
	t.Parallel()
	d := migrated(t)
	over := journal.Event{Kind: journal.EventEnded, Text: "over"}
	local := &journaltest.Memory{}
	for _, id := range []string{"first", "second"} {
		if err := local.Save(t.Context(), ended(t, id, over)); err != nil {
			t.Fatal(err)
		}
	}
	f, _ := join(t, d)
	j := f.Journal("q", local)
	j.startCopying(func() journal.Record { r, _ := local.Find(t.Context(), journal.Query{Run: "first"}); return r[0] }())
	copied(t, j)
	if err := j.reconcile(t.Context()); err != nil {
		t.Fatal(err)
	}
	copied(t, j)
	for _, id := range []string{"first", "second"} {
		if got := events(t, j, id); len(got) != 1 || got[0] != "over" {
			t.Errorf("%s: %q", id, got)
		}
	}
	if _, err := d.pool.Exec(t.Context(), "UPDATE ralph_folder SET made_at = now() - interval '31 days' WHERE run = 'first'"); err != nil {
		t.Fatal(err)
	}
	if err := j.Save(t.Context(), ended(t, "third", over)); err != nil {
		t.Fatal(err)
	}
	copied(t, j)
	if got := events(t, j, "first"); got != nil {
		t.Errorf("after its time it is still there: %q", got)
	}
	f.Stop()
}

// A standby counts as an outage: nothing is given up while the database accepts no writes.
func TestStandbyIsAway(t *testing.T) {
	t.Parallel()
	d := migrated(t)
	tx, err := d.pool.BeginTx(t.Context(), pgx.TxOptions{AccessMode: pgx.ReadOnly})
	if err != nil {
		t.Fatal(err)
	}
	if _, err = tx.Exec(t.Context(), "DELETE FROM ralph_folder"); err == nil || !address.IsAway(err) {
		t.Errorf("not away: %v", err)
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// While the server refuses connections, as after a change of the password, the database counts as away: folders are copied
// later.
func TestConnectionsAreRefused(t *testing.T) {
	t.Parallel()
	d, other := migrated(t), open(t)
	var name string
	if err := d.pool.QueryRow(t.Context(), "SELECT current_database()").Scan(&name); err != nil {
		t.Fatal(err)
	}
	log := lines{slog.NewTextHandler(io.Discard, &slog.HandlerOptions{Level: slog.LevelDebug}), make(chan string, 1000)}
	f, err := Start(t.Context(), Config{Database: d, Plan: true, TTL: time.Hour, Log: slog.New(log)})
	if err != nil {
		t.Fatal(err)
	}
	j := f.Journal("p", &journaltest.Memory{})
	allow := func(is bool) {
		if _, err := other.pool.Exec(t.Context(), fmt.Sprintf("ALTER DATABASE %q ALLOW_CONNECTIONS %t", name, is)); err != nil {
			t.Fatal(err)
		}
	}
	allow(false)
	if _, err := other.pool.Exec(t.Context(), "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = $1", name); err != nil {
		t.Fatal(err)
	}
	for err = nil; err == nil || !strings.Contains(err.Error(), "not currently accepting"); { // each connection notices by itself
		_, err = d.exec(t.Context(), "SELECT 1")
	}
	if !address.IsAway(err) {
		t.Errorf("not away: %v", err)
	}
	j.startCopying(ended(t, "run", journal.Event{Kind: journal.EventEnded, Text: "over"}))
	for text := range log.got {
		if text == "folder of a run not copied to the database" {
			break
		}
	}
	allow(true)
	copied(t, j)
	if got := events(t, j, "run"); len(got) != 1 {
		t.Errorf("the database has %q", got)
	}
	f.Stop()
}

// trigger makes the database run code for each folder that it gets.
func trigger(t *testing.T, d *Database, code string) {
	t.Helper()
	_, err := d.pool.Exec(t.Context(), "CREATE FUNCTION got() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "+code+" RETURN NEW; END $$;"+
		"CREATE TRIGGER got BEFORE INSERT ON ralph_folder FOR EACH ROW EXECUTE FUNCTION got()")
	if err != nil {
		t.Fatal(err)
	}
}

// A folder that cannot be stored, for example because it takes too long, does not keep others from being copied.
func TestFolderThatDoesNotArrive(t *testing.T) {
	t.Parallel()
	d := migrated(t)
	f, j := join(t, d)
	trigger(t, d, "IF NEW.run = 'first' THEN RAISE EXCEPTION 'too slow' USING ERRCODE = '57014'; END IF;")
	over := journal.Event{Kind: journal.EventEnded, Text: "over"}
	j.startCopying(ended(t, "first", over), ended(t, "second", over))
	for range 200 {
		if events(t, j, "second") != nil {
			break
		}
		<-time.After(20 * time.Millisecond)
	}
	if got := events(t, j, "second"); len(got) != 1 {
		t.Errorf("the other folder has %q", got)
	}
	f.Stop()
}

// A leaving process does not copy for long; the next one does.
func TestLeavingWithManyFolders(t *testing.T) {
	t.Parallel()
	d := migrated(t)
	f, j := join(t, d)
	trigger(t, d, "PERFORM pg_sleep(1);")
	var runs []journal.Record
	for i := range 20 {
		runs = append(runs, ended(t, fmt.Sprint("run", i), journal.Event{Kind: journal.EventEnded, Text: "over"}))
	}
	j.startCopying(runs...)
	f.Stop()
	var copied int
	if err := d.pool.QueryRow(t.Context(), "SELECT count(*) FROM ralph_folder").Scan(&copied); err != nil || copied == len(runs) {
		t.Errorf("%d of %d were copied: %v", copied, len(runs), err)
	}
}
