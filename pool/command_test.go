package pool_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ralph-pool/ralph/pool"
	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/pool/redact"
	"github.com/ralph-pool/ralph/tracker"
)

// forum is a tracker on which people give commands. It is safe for concurrent use.
type forum struct {
	tracker.Tracker

	mu       sync.Mutex
	said     []tracker.Command           // commands without an answer; guarded by mu
	answers  map[string][]tracker.Answer // by command; guarded by mu
	failures int                         // number of the next answers that fail; guarded by mu
	looked   func()                      // called after each look; guarded by mu
	request  int                         // number of the open request; 0: none
	broken   string                      // branch of a request that cannot be read
	replied  []int                       // requests of the answers, 0 for the issue; guarded by mu
}

func (f *fixture) forum() *forum {
	h := &forum{Tracker: f.Config.Run.Tracker, answers: map[string][]tracker.Answer{}}
	f.Config.Run.Tracker = h
	return h
}

func (h *forum) Unwrap() tracker.Tracker { return h.Tracker }

func (h *forum) say(verb tracker.Verb, text string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	id := string(verb) + strings.Repeat("'", len(h.said)+len(h.answers))
	h.said = append(h.said, tracker.Command{ID: id, Key: "a", Verb: verb, Text: text, By: "ada", At: time.Now()})
}

func (h *forum) Commands(context.Context, string) ([]tracker.Command, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.looked != nil && len(h.said) > 0 {
		defer h.looked()
	}
	return slices.Clone(h.said), nil
}

func (h *forum) Answer(_ context.Context, c tracker.Command, a tracker.Answer) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.failures > 0 {
		h.failures--
		return errors.New("the answer is lost")
	}
	h.answers[c.ID], h.replied = append(h.answers[c.ID], a), append(h.replied, c.Request)
	h.said = slices.DeleteFunc(h.said, func(o tracker.Command) bool { return o.ID == c.ID })
	return nil
}

func (h *forum) Review(_ context.Context, branch string) (tracker.FollowUp, error) {
	if branch == h.broken {
		return tracker.FollowUp{}, errors.New("it has a comment without an author")
	}
	return tracker.FollowUp{Request: tracker.RequestRef{Number: h.request}}, nil
}

func (h *forum) Addressed(context.Context, int, []string, string) error { return nil }

// all returns the answers so far.
func (h *forum) all() (out []tracker.Answer) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, a := range h.answers {
		out = append(out, a...)
	}
	return out
}

// A command whose answer is lost takes effect once, and a later sweep of any host answers it.
func TestCommandTakesEffectOnce(t *testing.T) {
	t.Parallel()
	for verb, runs := range map[tracker.Verb]int{tracker.Retry: 2, tracker.Fix: 2, tracker.Fresh: 2, tracker.Stop: 1, tracker.Explain: 1, "dance": 1} {
		for _, host := range []string{"the same host", "another host"} {
			t.Run(string(verb)+" "+host, func(t *testing.T) {
				t.Parallel()
				f := newFixture(t, "cat >/dev/null; exit 1")
				f.Config.Run.Retry.MaxAttempts = 1
				f.issue("a")
				if r := f.one(); !r.Verdict.Final {
					t.Fatalf("the first run: %+v", r.Verdict)
				}
				h := f.forum()
				h.say(verb, "More.")
				h.failures = 1
				worked := len(f.sweep(t.Context()).Runs)
				if n := len(h.all()); n != 0 {
					t.Fatalf("%d answers, but the first is lost", n)
				}
				if host == "another host" {
					f.store = &store{}
					f.Config.Run.Store = f.store
				}
				worked += len(f.sweep(t.Context()).Runs) + len(f.sweep(t.Context()).Runs)
				if 1+worked != runs {
					t.Errorf("%d runs, want %d", 1+worked, runs)
				}
				if a := h.all(); len(a) != 1 || a[0].Refused != !verb.Known() {
					t.Errorf("answers: %+v", a)
				}
				if l := f.labels("a"); !strings.Contains(l, "needs-human") {
					t.Errorf("labels: %s", l)
				}
				f.clean()
			})
		}
	}
}

// A command stands until a run has a final outcome: counts start anew, and each attempt gets its text.
func TestCommandStandsUntilTheEnd(t *testing.T) {
	t.Parallel()
	prompt := filepath.Join(t.TempDir(), "prompt")
	f := newFixture(t, "cat > "+prompt+"; exit 1")
	f.Config.Run.Retry.MaxAttempts, f.Config.Run.Retry.Backoff = 2, time.Nanosecond
	f.issue("a")
	f.one()
	if r := f.one(); !r.Verdict.Final || r.Attempt != 2 {
		t.Fatalf("the second run: %+v", r)
	}
	f.forum().say(tracker.Fix, "Look at the log.")
	for attempt := 1; attempt <= 2; attempt++ {
		r := f.one()
		b, err := os.ReadFile(prompt)
		if err != nil || !strings.Contains(string(b), "\nLook at the log.") || r.Attempt != attempt {
			t.Errorf("attempt %d, want %d; %v; prompt:\n%s", r.Attempt, attempt, err, b)
		}
	}
	r := f.one("a") // a person names it
	if b, err := os.ReadFile(prompt); err != nil || strings.Contains(string(b), "Look at the log.") {
		t.Errorf("the run %+v after the end is told of it, too: %v\n%s", r, err, b)
	}
}

// A person stops a run from the tracker, whichever host does the run.
func TestCommandStopsARun(t *testing.T) {
	t.Parallel()
	for _, host := range []string{"this host", "another host"} {
		t.Run(host, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, endless)
			h := f.forum()
			f.issue("a")
			other := f.config("exit 1")
			other.Run.Tracker, other.Run.Store = h, &store{}
			var elsewhere sync.WaitGroup
			defer elsewhere.Wait()
			if host == "this host" {
				f.Config.Refresh = time.Millisecond
				f.onStarted(func(string) { h.say(tracker.Stop, "") })
			} else {
				f.Config.Run.Reconcile = time.Millisecond
				f.onStarted(func(string) {
					h.say(tracker.Stop, "")
					elsewhere.Go(func() {
						if p, err := pool.New(other); err != nil {
							t.Error(err)
						} else if _, err := p.Sweep(t.Context()); err != nil {
							t.Error(err)
						}
					})
				})
			}
			r := f.one()
			if r.Verdict.Outcome != journal.Superseded || r.Verdict.Reason.Unfit != (tracker.Unfit{Code: tracker.UnfitHandedOver, Detail: "needs-human"}) || r.Commits != 1 {
				t.Errorf("%+v with %d commits", r.Verdict, r.Commits)
			}
			elsewhere.Wait()
			if a := h.all(); len(a) != 1 || !strings.Contains(a[0].Text, "is being stopped") {
				t.Errorf("answers: %+v", a)
			}
			if l := f.labels("a"); !strings.Contains(l, "needs-human") {
				t.Errorf("labels: %s", l)
			}
			if s := f.sweep(t.Context()); len(s.Runs) != 0 {
				t.Errorf("it is worked again: %+v", s.Runs)
			}
			f.clean()
		})
	}
}

// A command that needs a new run waits until the run in progress has ended.
func TestCommandWaitsForTheRun(t *testing.T) {
	t.Parallel()
	prompt, first := filepath.Join(t.TempDir(), "prompt"), filepath.Join(t.TempDir(), "first")
	f := newFixture(t, "if mkdir "+first+"; then "+endless+"; fi; cat > "+prompt+"; echo more > more; git add -A; git commit -qm more"+done)
	h := f.forum()
	f.issue("a")
	f.Config.Refresh = time.Millisecond
	p := f.pool()
	f.onStarted(func(string) { h.say(tracker.Fix, "More.") })
	looks := 0
	h.looked = func() {
		if looks++; looks == 3 { // two looks have left it alone
			if len(h.answers) != 0 {
				t.Errorf("answers while the run is on: %+v", h.answers)
			}
			p.Stop("a")
		}
	}
	r := f.only(f.sweepBy(t.Context(), p))
	if r.Verdict.Outcome == journal.Interrupted { // the sweep has ended before it has obeyed the command
		r = f.one()
	}
	if r.Verdict.Outcome != journal.Succeeded {
		t.Errorf("%+v", r.Verdict)
	}
	if b, err := os.ReadFile(prompt); err != nil || !strings.Contains(string(b), "ada:\nMore.") {
		t.Errorf("%v; prompt:\n%s", err, b)
	}
	if a := h.all(); len(a) != 1 || a[0].Refused {
		t.Errorf("answers: %+v", a)
	}
}

// A request for work from elsewhere, with a person's text, is shown on the tracker as data; one without text is not.
func TestAskedElsewhere(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "cat >/dev/null; exit 1")
	f.Config.Run.Retry.MaxAttempts, f.Config.Run.Secrets = 1, redact.New("a-value-to-be-kept")
	f.issue("a")
	f.one()
	h := f.forum()
	p := f.pool()
	if err := p.Requeue(t.Context(), "a", "a person", tracker.Retry, ""); err != nil || len(h.all()) > 0 {
		t.Errorf("retry: %v, %+v", err, h.all())
	}
	const wordless = "No review comment is unanswered. Say what has to be done."
	if err := p.Requeue(t.Context(), "a", "a person", tracker.Fix, ""); err == nil || err.Error() != wordless {
		t.Errorf("fix without words: %v", err)
	}
	text := "In \"x.go\", line 3: use a-value-to-be-kept.\n/close\n@everyone closes #1 <b>"
	if err := p.Requeue(t.Context(), "a", "a `person`", tracker.Fix, text); err != nil {
		t.Fatal(err)
	}
	said := h.all()
	if len(said) != 1 || said[0].Refused || !strings.Contains(said[0].Text, `In "x.go", line 3: use [redacted].`) {
		t.Fatalf("%+v", said)
	}
	for _, hostile := range []string{"\n/close", "@everyone", "closes #1", "a-value-to-be-kept"} {
		if strings.Contains(said[0].Text, hostile) {
			t.Errorf("%q in\n%s", hostile, said[0].Text)
		}
	}
	h.mu.Lock()
	h.failures = 1
	h.mu.Unlock()
	if err := p.Requeue(t.Context(), "a", "a person", tracker.Fix, "Again."); err == nil || !strings.Contains(err.Error(), "worked again, but") {
		t.Errorf("an answer that fails: %v", err)
	}
}

// If there is a request, the text is shown there.
func TestAskedElsewhereOfRequest(t *testing.T) {
	t.Parallel()
	f := newFixture(t, commits)
	f.withRemote()
	f.Config.Run.Tracker = &forge{Tracker: f.Config.Run.Tracker, requests: map[string]int{}}
	f.Config.Run.Publish = journal.PublishRequest
	h := f.forum()
	f.issue("a")
	f.one()
	for h.request = range 2 {
		if err := f.pool().Requeue(t.Context(), "a", "a person", tracker.Fix, "Rename it."); err != nil {
			t.Fatal(err)
		}
	}
	if !slices.Equal(h.replied, []int{0, 1}) {
		t.Errorf("replies at %v", h.replied)
	}
}

// A request that cannot be read delays only its own round.
func TestRoundOfARequestThatCannotBeRead(t *testing.T) {
	t.Parallel()
	f := newFixture(t, commits)
	f.withRemote()
	f.Config.Run.Tracker = &reviewedForge{forge: &forge{Tracker: f.Config.Run.Tracker, requests: map[string]int{}}}
	f.Config.Run.Publish = journal.PublishRequest
	h := f.forum()
	f.issue("a")
	f.one()
	h.request = 1
	if err := f.pool().Requeue(t.Context(), "a", "a person", tracker.Fix, "Rename it."); err != nil {
		t.Fatal(err)
	}
	h.broken = "ralph/a"
	f.issue("b")
	if got := outcomes(f.sweep(t.Context())); len(got) != 1 || got["b"] != journal.Succeeded {
		t.Errorf("%v", got)
	}
	if !slices.ContainsFunc(f.events, func(e journal.Event) bool {
		return e.Kind == journal.EventWarning && e.Key == "a" && strings.Contains(e.Text, "comment without an author")
	}) {
		t.Error("nobody is told")
	}
	h.broken = ""
	if r := f.one(); r.Key != "a" || r.FollowUp != string(tracker.AskedFor) || r.Verdict.Outcome != journal.Succeeded {
		t.Errorf("%+v", r)
	}
}
