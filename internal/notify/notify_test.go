package notify

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/ralph-pool/ralph/pool/journal"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fake is a channel that first fails with the given errors and then accepts messages.
type fake struct {
	mu    sync.Mutex
	fail  []error   // guarded by mu
	tried int       // guarded by mu
	got   []Message // guarded by mu
	block bool
	place string
}

func (f *fake) Name() string { return "fake" }

func (f *fake) Place() string { return f.place }

func (f *fake) Send(ctx context.Context, m Message) error {
	if f.block {
		<-ctx.Done()
		return context.Cause(ctx)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.tried++
	if len(f.fail) > 0 {
		err := f.fail[0]
		f.fail = f.fail[1:]
		return err
	}
	f.got = append(f.got, m)
	return nil
}

func (f *fake) texts() (list []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, m := range f.got {
		list = append(list, m.Text)
	}
	return list
}

func ended(key string, o journal.Outcome, final bool) journal.Event {
	return journal.Event{Kind: journal.EventEnded, Key: key, Title: "Fix <it>", Run: "r-" + key, Outcome: o, Final: final, Time: time.Unix(1, 0)}
}

func TestWhatIsTold(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		on   []string
		want []string
	}{
		{"people", []string{OnHuman}, []string{
			"shop/b (Fix <it>): failed; a person is needed", "shop/c (Fix <it>): needs-info; a person is needed",
		}},
		{"outcomes", []string{"succeeded", "failed"}, []string{
			"shop/a (Fix <it>): succeeded", "shop/b (Fix <it>): failed; a person is needed", "shop/d (Fix <it>): failed",
		}},
		{"problems", []string{OnProblem}, []string{
			"shop is not worked: the forge is away", "shop is not worked: no login", "shop is not worked: the forge is away",
			"shop: configuration refused; the last good one stays: bad key", "shop: configuration refused; the last good one stays: bad key",
		}},
		{"nothing", nil, nil},
	} {
		f := &fake{}
		n := New(Config{Channels: []Channel{f}, On: c.on, Project: "shop", Outbox: t.TempDir()})
		n.Ended(ended("a", journal.Succeeded, true))
		n.Ended(ended("b", journal.Failed, true))
		n.Ended(ended("c", journal.NeedsInfo, true))
		n.Ended(ended("d", journal.Failed, false))
		for _, problem := range []string{"the forge is away", "the forge is away", "no login", "", "the forge is away"} {
			n.Problem(problem)
		}
		for _, line := range []string{"bad key", "bad key", "", "bad key"} {
			n.Refused(line)
		}
		n.Close()
		n.Ended(ended("after", journal.Failed, true))
		n.Close()
		if got := f.texts(); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// A message that cannot be stored, as on a full disk, is sent once from memory.
func TestUnwritableOutbox(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		fail []error
		want []string
		log  string
	}{
		"sent":     {nil, []string{"shop is not worked: the disk is full"}, "notification not stored: sent once from memory"},
		"not sent": {[]error{errors.New("away")}, nil, "notification dropped"},
	} {
		var log bytes.Buffer
		f := &fake{fail: c.fail}
		n := New(Config{
			Channels: []Channel{f}, On: []string{OnProblem}, Project: "shop", Outbox: filepath.Join(file, "outbox"),
			Log: slog.New(slog.NewTextHandler(&log, nil)),
		})
		n.Problem("the disk is full")
		n.Close()
		if got := f.texts(); !slices.Equal(got, c.want) || f.tried != 1 || !strings.Contains(log.String(), c.log) {
			t.Errorf("%s: %q after %d attempts, want %q\n%s", name, got, f.tried, c.want, &log)
		}
	}
}

func TestTextIsCleaned(t *testing.T) {
	t.Parallel()
	f := &fake{}
	n := New(Config{Channels: []Channel{f}, On: []string{"failed", OnProblem}, Outbox: t.TempDir(), Clean: func(s string) string { return strings.ReplaceAll(s, "hunter2", "-") }})
	e := ended("a", journal.Failed, false)
	e.Title, e.Reason = "Use hunter2", &journal.Reason{Code: journal.ReasonPublish, Detail: "hunter2 is refused"}
	n.Ended(e)
	n.Problem("hunter2 has expired")
	n.Close()
	if all := fmt.Sprintf("%+v", f.got); strings.Contains(all, "hunter2") || len(f.got) != 2 {
		t.Error(all)
	}
}

// A message is retried with growing pauses until it is accepted or the failure is permanent, and once more when the notifier closes.
func TestRetries(t *testing.T) {
	t.Parallel()
	away := errors.New("away")
	for name, c := range map[string]struct {
		fail  []error
		tried int
		got   int
		waits int
		after time.Duration
	}{
		"at once":    {nil, 1, 1, 0, 0},
		"passes":     {[]error{away, away}, 3, 1, 0, 6 * time.Second},
		"final":      {[]error{errFinal}, 1, 0, 0, 0},
		"never":      {slices.Repeat([]error{away}, 1000), 6, 0, 1, 62 * time.Second},
		"a day":      {slices.Repeat([]error{away}, 1000), 10 + 94, 0, 1, 24 * time.Hour},
		"final then": {[]error{away, fmt.Errorf("%w: 404", errFinal)}, 2, 0, 0, 2 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f, begun, dir := &fake{fail: c.fail}, time.Now(), t.TempDir()
				n := New(Config{Channels: []Channel{f}, On: []string{"failed"}, Outbox: dir})
				n.Ended(ended("a", journal.Failed, false))
				<-time.After(c.after)
				synctest.Wait()
				if f.tried != c.tried || len(f.got) != c.got {
					t.Errorf("tried %d times, %d taken", f.tried, len(f.got))
				}
				n.Close()
				if left := len(waits(t, dir)); f.tried != c.tried+c.waits || left != c.waits || time.Since(begun) != c.after {
					t.Errorf("at the end tried %d times, %d wait, after %s", f.tried, left, time.Since(begun))
				}
			})
		})
	}
}

// A channel that hangs delays neither the run nor other channels, and the end only briefly.
func TestHangingChannel(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		hangs, works := &fake{block: true, place: "a"}, &fake{place: "b"}
		n := New(Config{Channels: []Channel{hangs, works}, On: []string{"failed"}, Outbox: t.TempDir()})
		begun := time.Now()
		for i := range 2 * queued {
			n.Ended(ended(fmt.Sprint(i), journal.Failed, false))
			synctest.Wait()
		}
		if took := time.Since(begun); took > 0 {
			t.Errorf("runs were held up for %s", took)
		}
		if got := len(works.texts()); got != 2*queued {
			t.Errorf("%d messages of the other channel", got)
		}
		begun = time.Now()
		n.Close()
		if took := time.Since(begun); took != endTime {
			t.Errorf("the end took %s", took)
		}
	})
}
