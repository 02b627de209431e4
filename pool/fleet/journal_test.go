package fleet

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/loop"
	"github.com/ralph-pool/ralph/pool/internal/admission"
	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/pool/journal/journaltest"
	"github.com/ralph-pool/ralph/pool/ledger"
)

// join returns a machine with the journal of project p.
func join(t *testing.T, d *Database) (*Fleet, *Journal) {
	t.Helper()
	f, err := Start(t.Context(), Config{Database: d, Plan: true, TTL: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	return f, f.Journal("p", &journaltest.Memory{})
}

func TestJournalConforms(t *testing.T) {
	t.Parallel()
	d := migrated(t)
	f, _ := join(t, d)
	n := 0
	t.Run("conformance", func(t *testing.T) {
		journaltest.Run(t, func(t *testing.T) journal.Store {
			f.mu.Lock()
			defer f.mu.Unlock()
			n++
			return f.Journal(t.Name()+strconv.Itoa(n), &journaltest.Memory{})
		})
	})
	f.Stop()
}

// settled waits until the journal has no pending records.
func settled(j *Journal) {
	for syncing := true; syncing; {
		j.mu.Lock()
		syncing = j.syncing
		j.mu.Unlock()
		if syncing {
			<-time.After(10 * time.Millisecond) // no event tells
		}
	}
}

// A save does not wait for the database, which gets the record later.
func TestSaveDoesNotWait(t *testing.T) {
	t.Parallel()
	d := migrated(t)
	f, j := join(t, d)
	tx, err := d.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), "LOCK TABLE ralph_run"); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"a", "b", "a"} {
		if err := j.Save(t.Context(), journal.Record{Run: journal.Run{ID: id, Key: id, Started: time.Now()}}); err != nil {
			t.Fatal(err)
		}
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	settled(j)
	if list, err := j.shared.Find(t.Context(), journal.Query{}); err != nil || len(list) != 2 {
		t.Errorf("the database knows %d runs of 2, %v", len(list), err)
	}
	f.Stop()
}

// ending is a store whose run ends right after its records were read.
type ending struct {
	journaltest.Memory
	end func()
}

func (e *ending) Find(ctx context.Context, q journal.Query) ([]journal.Record, error) {
	list, err := e.Memory.Find(ctx, q)
	if end := e.end; end != nil {
		e.end = nil
		go end()
	}
	return list, err
}

// A run that ends while its records are compared with the database's is stored there as ended.
func TestReconcileKeepsTheLatest(t *testing.T) {
	t.Parallel()
	d := migrated(t)
	f, _ := join(t, d)
	local := &ending{}
	j := f.Journal("p", local)
	for n := range 20 {
		r := journal.Record{Run: journal.Run{ID: strconv.Itoa(n), Kind: journal.KindIssue, Key: "k", Started: time.Now()}}
		if err := j.Save(t.Context(), r); err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 1)
		local.end = func() {
			r.Ended = time.Now()
			ended <- j.Save(t.Context(), r)
		}
		if err := errors.Join(j.reconcile(t.Context()), <-ended); err != nil {
			t.Fatal(err)
		}
	}
	settled(j)
	if list, err := j.shared.Find(t.Context(), journal.Query{Open: true}); err != nil || len(list) > 0 {
		t.Errorf("%d runs that have ended are on, %v", len(list), err)
	}
	f.Stop()
}

// Totals and open runs of a project include all live machines.
func TestRunsOfAllMachines(t *testing.T) {
	t.Parallel()
	d := migrated(t)
	one, first := join(t, d)
	two, second := join(t, d)
	began := time.Now()
	for n, j := range []*Journal{first, first, second} {
		r := journal.Record{Run: journal.Run{ID: strconv.Itoa(n), Kind: journal.KindIssue, Key: "k", Started: began}}
		r.Facts.Usage = agents.Usage{Input: 1}
		if err := j.Save(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	settled(first)
	settled(second)
	running := func() int {
		list, err := d.Running(t.Context(), first.shared.Project)
		if err != nil {
			t.Fatal(err)
		}
		return len(list)
	}
	if n := running(); n != 3 {
		t.Errorf("%d runs are on, want 3", n)
	}
	sums, err := first.History().(journal.Totals).Totals(t.Context(), "", began.Add(-time.Hour))
	if err != nil || len(sums) != 1 || sums[0].Runs != 3 || sums[0].Usage.Input != 3 {
		t.Errorf("totals %+v, %v", sums, err)
	}
	if u, _, err := d.Runs(first.shared.Project).Spent(t.Context(), "", time.Time{}, time.Time{}); err != nil || u.Input != 3 {
		t.Errorf("spent %+v, %v", u, err)
	}
	two.Stop()
	if n := running(); n != 2 {
		t.Errorf("once a machine is gone %d runs are on, want 2", n)
	}
	one.Stop()
}

// Other machines see a run's action until it has ended, and its record stays as it was saved.
func TestDoing(t *testing.T) {
	t.Parallel()
	d := migrated(t)
	f, j := join(t, d)
	elsewhere := func() journal.Record {
		settled(j)
		list, err := d.Runs(j.shared.Project).Find(t.Context(), journal.Query{Run: "r"})
		if err != nil || len(list) != 1 {
			t.Fatalf("%+v, %v", list, err)
		}
		return list[0]
	}
	r := journal.Record{Run: journal.Run{ID: "r", Kind: journal.KindIssue, Key: "k", Started: time.Now()}, State: journal.State{Stage: journal.StageWork}}
	save := func() {
		if err := j.Save(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	says := func(text string) {
		j.Observe(journal.Event{Kind: journal.EventAgent, Run: "r", Text: text})
		j.Observe(journal.Event{Kind: journal.EventUsage, Run: "r", Text: "nothing"})
	}
	says("too early")
	save()
	says("reads the code " + strings.Repeat("ö", doingMax))
	if got := elsewhere(); !strings.HasPrefix(got.Doing, "reads the code ö") || len(got.Doing) > doingMax || got.Stage != journal.StageWork {
		t.Errorf("%+v", got)
	}
	if says("reads\na file\n"); elsewhere().Doing != "reads a file" {
		t.Errorf("more than one line: %q", elsewhere().Doing)
	}
	r.Stage = journal.StageVerify
	save()
	j.Observe(journal.Event{Kind: journal.EventGate, Run: "r", Text: "make"})
	if got := elsewhere(); got.Doing != "gate: make" || got.Stage != journal.StageVerify {
		t.Errorf("%+v", got)
	}
	r.Ended = time.Now()
	save()
	says("too late")
	if got := elsewhere(); got.Doing != "" || got.Ended.IsZero() {
		t.Errorf("%+v", got)
	}
	if here, err := j.Find(t.Context(), journal.Query{}); err != nil || len(here) != 1 || here[0].Doing != "" {
		t.Errorf("here: %+v, %v", here, err)
	}
	f.Stop()
}

// desk admits runs of at most 4 tokens each, while all runs of the day together use at most 10.
func desk(t *testing.T, j *Journal) *admission.Desk {
	t.Helper()
	return &admission.Desk{
		Store: j, Shared: j, Account: ledger.NewAccount(ledger.Caps{Day: loop.Budget{Tokens: 10}}, j, ""), Budget: loop.Budget{Tokens: 4},
		Dead: func(journal.Record) bool { return false }, Lock: filepath.Join(t.TempDir(), "lock"),
	}
}

func admit(t *testing.T, d *admission.Desk, id string) (journal.Record, error) {
	r := journal.Record{Run: journal.Run{ID: id, Kind: journal.KindIssue, Key: id, Agent: "a", Started: time.Now()}, State: journal.State{Stage: journal.StageClaim, PID: 1}}
	err := d.Admit(t.Context(), &r)
	return r, err
}

// If two machines admit runs at the same time, they reserve no more than the cap together. The usage of one counts for the
// other, and the reservations of a dead machine are free.
func TestCapOfAllMachines(t *testing.T) {
	t.Parallel()
	d := migrated(t)
	one, first := join(t, d)
	two, second := join(t, d)
	desks := []*admission.Desk{desk(t, first), desk(t, second)}
	type answer struct {
		journal.Record
		machine int
		err     error
	}
	answers := make(chan answer)
	for n := range 16 {
		go func() {
			r, err := admit(t, desks[n%2], "run-"+strconv.Itoa(n))
			answers <- answer{r, n % 2, err}
		}()
	}
	var reserved, ofTwo int64
	for range 16 {
		a := <-answers
		var spent *ledger.SpentError
		switch {
		case a.err == nil:
			reserved += a.Reserved.Input
			if a.machine == 1 {
				ofTwo += a.Reserved.Input
			}
		case !errors.As(a.err, &spent) || !spent.Reserved:
			t.Errorf("refused: %v", a.err)
		}
	}
	if reserved != 10 {
		t.Errorf("%d tokens are reserved, want 10", reserved)
	}
	two.Stop()
	if err := first.Spend(t.Context(), "", "another", agents.Usage{Input: 1}, time.Now()); err != nil {
		t.Fatal(err)
	}
	for got := int64(0); ; {
		r, err := admit(t, desks[0], "later-"+strconv.FormatInt(got, 10))
		if err != nil {
			if got != max(0, ofTwo-1) {
				t.Errorf("the machine that is gone had reserved %d, one token is spent, and then %d were free", ofTwo, got)
			}
			break
		}
		got += r.Reserved.Input
	}
	one.Stop()
}

// Machines that read the caps of many projects leave connections for their queries: more of them than there are connections
// all finish.
func TestLooksLeaveConnections(t *testing.T) {
	t.Parallel()
	d := migrated(t)
	f, _ := join(t, d)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var looks errgroup.Group
	for n := range 2 * int(d.pool.Config().MaxConns) {
		j := f.Journal(strconv.Itoa(n), &journaltest.Memory{})
		looks.Go(func() error {
			for range 5 {
				end, err := j.Begin(ctx, "")
				if err != nil {
					return err
				}
				_, err = j.Others(ctx, "")
				if err = errors.Join(err, end()); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err := looks.Wait(); err != nil {
		t.Error(err)
	}
	f.Stop()
}

// A server that has lost records gets them again after its restart.
func TestLostRecords(t *testing.T) {
	t.Parallel()
	d := migrated(t)
	f, j := join(t, d)
	defer f.Stop()
	s := newServed(Project{Name: "p", Journal: j})
	if err := j.Save(t.Context(), journal.Record{Run: journal.Run{ID: "a", Key: "k", Started: time.Now()}}); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		restarted bool
		want      int
	}{{true, 1}, {false, 0}, {true, 1}} {
		settled(j)
		if _, err := d.exec(t.Context(), "DELETE FROM ralph_run"); err != nil {
			t.Fatal(err)
		}
		if c.restarted {
			s.server = "the one before"
		}
		if err := f.reconcile(t.Context(), s); err != nil {
			t.Fatal(err)
		}
		if n := number(t, d, "SELECT count(*) FROM ralph_run"); n != c.want {
			t.Errorf("restarted %t: the database has %d records, want %d", c.restarted, n, c.want)
		}
	}
}

// Pending records are written when the database is back, also by the next process. Until then the usage is not reported.
func TestJournalCatchesUp(t *testing.T) {
	t.Parallel()
	d := migrated(t)
	log := lines{slog.NewTextHandler(io.Discard, &slog.HandlerOptions{Level: slog.LevelDebug}), make(chan string, 1000)}
	f, err := Start(t.Context(), Config{Database: d, Plan: true, TTL: time.Hour, Log: slog.New(log)})
	if err != nil {
		t.Fatal(err)
	}
	j := f.Journal("p", &journaltest.Memory{})
	failed := func() { // waits until writing a pending record has failed
		for text := range log.got {
			if text == "record not written to the database yet" {
				return
			}
		}
	}
	rename := func(from, to string) {
		if _, err := d.exec(t.Context(), "ALTER TABLE "+from+" RENAME TO "+to); err != nil {
			t.Fatal(err)
		}
	}
	record := func(id string, ended bool) journal.Record {
		r := journal.Record{Run: journal.Run{ID: id, Kind: journal.KindIssue, Key: "k", Started: time.Now()}}
		if ended {
			r.Ended = time.Now()
		}
		return r
	}
	shared := func() (out string) {
		list, err := j.shared.Find(t.Context(), journal.Query{})
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range list {
			out += r.ID + " "
			if !r.Ended.IsZero() {
				out += "ended "
			}
		}
		return out
	}
	save := func(r journal.Record) {
		if err := j.Save(t.Context(), r); err != nil {
			t.Error(err)
		}
	}
	save(record("a", false))
	save(record("b", false))
	settled(j)
	rename("ralph_run", "ralph_away")
	save(record("a", true))
	if err := j.Forget(t.Context(), "b"); err != nil {
		t.Error(err)
	}
	failed()
	if u, _, err := j.Spent(t.Context(), "", time.Time{}, time.Time{}); err == nil {
		t.Errorf("with pending records %+v was spent", u)
	}
	rename("ralph_away", "ralph_run")
	settled(j)
	if got := shared(); got != "a ended " {
		t.Errorf("when it is back: %q", got)
	}
	rename("ralph_run", "ralph_away")
	save(record("c", false))
	f.Stop()
	rename("ralph_away", "ralph_run")
	if got := shared(); got != "a ended " {
		t.Errorf("after the process: %q", got)
	}
	f, _ = join(t, d)
	again := f.Journal("p", j.local)
	if err := again.reconcile(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := shared(); got != "a ended c " {
		t.Errorf("the next process: %q", got)
	}
	list, err := f.Journal("p", &journaltest.Memory{}).History().Find(t.Context(), journal.Query{})
	if err != nil || len(list) != 2 {
		t.Errorf("another machine sees %v, %v", list, err)
	}
	f.Stop()
}
