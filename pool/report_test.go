package pool_test

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/tracker"
)

// reportRecorder records the reports that reach its tracker.
type reportRecorder struct {
	tracker.Tracker

	mu   sync.Mutex
	said []string      // guarded by mu
	told chan struct{} // gets one for each report
}

func (s *reportRecorder) Report(ctx context.Context, key string, r tracker.Report) error {
	err := s.Tracker.Report(ctx, key, r)
	s.mu.Lock()
	s.said = append(s.said, r.Body)
	s.mu.Unlock()
	s.told <- struct{}{}
	return err
}

// The issue has one report, edited in place: the progress of the run, then its result, with the outcomes of earlier runs.
func TestOneReport(t *testing.T) {
	t.Parallel()
	f := newFixture(t, `cat >/dev/null; test "$RALPH_ATTEMPT" = 1 && exit 3; echo work > work; git add -A; git commit -qm work`+done)
	f.issue("a")
	s := &reportRecorder{Tracker: f.Config.Run.Tracker, told: make(chan struct{}, 100)}
	f.Config.Run.Tracker, f.Config.Run.MaxIterations, f.Config.Run.Retry.Backoff = s, 1, -1
	f.Config.Run.ProgressReport = time.Hour
	f.one()
	f.Config.Run.ProgressReport = time.Nanosecond
	<-s.told
	f.store.onStage = func(r journal.Record) {
		if r.Stage == journal.StageWork || r.Stage == journal.StageVerify {
			<-s.told // the report of the stage before
		}
	}
	r := f.one("a")
	if r.Verdict.Outcome != journal.Succeeded {
		t.Fatalf("%+v", r.Verdict)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	all := strings.Join(s.said, "\n")
	for _, want := range []string{"it is being prepared.", "the agent is working", "on machine `" + r.Host + "`"} {
		if !strings.Contains(all, want) {
			t.Errorf("never said %q:\n%s", want, all)
		}
	}
	text := f.text("a")
	if strings.Count(text, "**ralph: ") != 1 || !strings.Contains(text, "**ralph: succeeded**") || strings.Count(text, ": failed, ") != 1 {
		t.Errorf("the issue says:\n%s", text)
	}
	f.clean()
}

// A run without a final report removes its note of progress.
func TestProgressIsTakenBack(t *testing.T) {
	t.Parallel()
	f := newFixture(t, `cat >/dev/null; echo started; exec sleep 1000`)
	f.issue("a")
	s := &reportRecorder{Tracker: f.Config.Run.Tracker, told: make(chan struct{}, 100)}
	f.Config.Run.Tracker, f.Config.Run.ProgressReport = s, time.Nanosecond
	p := f.pool()
	f.onStarted(func(key string) {
		<-s.told
		p.Stop(key)
	})
	if _, err := p.Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	if text := f.text("a"); strings.Contains(text, "ralph: working") || !strings.Contains(text, "ralph: interrupted") {
		t.Errorf("the issue says:\n%s", text)
	}
	f.clean()
}

// followUpForge is a forge on which one request needs another run as long as its reason stands.
type followUpForge struct {
	*forge
	need tracker.FollowUp
}

func (f *followUpForge) FollowUps(context.Context, tracker.FollowUpQuery) ([]tracker.FollowUp, error) {
	return []tracker.FollowUp{f.need}, nil
}

// Once a request has used up its rounds, labels and report say that a person is needed, and why. The way back that the report
// names works.
func TestHandOverAfterMaxRounds(t *testing.T) {
	t.Parallel()
	f := newFixture(t, `cat >/dev/null; date +%N >> work; git add -A; git commit -qm work`+done)
	f.withRemote()
	f.issue("a")
	ref := tracker.RequestRef{Number: 1, URL: "https://forge.example/1"}
	host := &followUpForge{&forge{Tracker: f.Config.Run.Tracker, requests: map[string]int{}}, tracker.FollowUp{}}
	f.Config.Run.Tracker, f.Config.Run.Publish, f.Config.Run.Requests.MaxRounds = host, journal.PublishRequest, 1
	f.one()
	host.need = tracker.FollowUp{Key: "a", Request: ref, Head: "ralph/a", Reason: tracker.ChecksFailed}
	if s := f.sweep(t.Context()); len(s.Runs) != 1 || s.Runs[0].FollowUp == "" {
		t.Fatalf("%+v", s)
	}
	if s := f.sweep(t.Context()); len(s.Runs) != 0 {
		t.Fatalf("%+v", s)
	}
	text := f.text("a")
	if !strings.Contains(text, "labels: [needs-human]") || !strings.Contains(text, "**ralph: needs a person**: https://forge.example/1 has had 1 follow-up run") ||
		strings.Count(text, "**ralph: ") != 1 {
		t.Errorf("the issue says:\n%s", text)
	}
	if err := host.Change(t.Context(), "a", tracker.Change{AddLabels: []string{"no-human"}, RemoveLabels: []string{"needs-human"}}); err != nil {
		t.Fatal(err)
	}
	if r := f.one(); r.Verdict.Outcome != journal.Succeeded || r.FollowUp != "" {
		t.Errorf("%+v", r)
	}
	f.clean()
}

// A push that the remote refuses is reported on the issue with the remote's full message. It costs no second run of the agent,
// neither in the sweeps that try again, nor once a person has changed the rule.
func TestRefusedPush(t *testing.T) {
	t.Parallel()
	ran := filepath.Join(t.TempDir(), "ran")
	f := newFixture(t, `echo x >> `+ran+`; `+commits)
	hook := filepath.Join(f.withRemote(), "hooks", "pre-receive")
	script := `#!/bin/sh
grep -q refs/heads/ || exit 0
echo "error: GH013: Repository rule violations found for refs/heads/ralph/a." >&2
printf '\n- Commits must have verified signatures.\033[31m\n  Fixes #1 @everyone\n' >&2
exit 1
`
	if err := os.WriteFile(hook, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	f.issue("a")
	host := &forge{Tracker: f.Config.Run.Tracker, requests: map[string]int{}}
	f.Config.Run.Tracker, f.Config.Run.Publish = host, journal.PublishRequest
	for n, want := range []string{"**ralph: waiting** to publish: ", "**ralph: waiting** to publish: ", "**ralph: failed**: "} {
		f.sweep(t.Context())
		text := f.text("a")
		for _, want := range []string{want, "GH013: Repository rule violations found", "- Commits must have verified signatures.", "Fixes # 1 @ everyone"} {
			if !strings.Contains(text, want) || strings.Contains(text, "\033") || strings.Contains(text, "origin.git") {
				t.Fatalf("sweep %d: not %q, or too much:\n%s", n+1, want, text)
			}
		}
	}
	if err := os.Remove(hook); err != nil {
		t.Fatal(err)
	}
	if err := host.Change(t.Context(), "a", tracker.Change{RemoveLabels: []string{"needs-human"}}); err != nil {
		t.Fatal(err)
	}
	r := f.one()
	if r.Verdict.Outcome != journal.Succeeded || host.requests["ralph/a"] != 1 || f.git(f.repo, "rev-parse", "origin/ralph/a") != r.Tip {
		t.Errorf("%+v, requests %v", r, host.requests)
	}
	if got, err := os.ReadFile(ran); string(got) != "x\n" || err != nil {
		t.Errorf("the agent ran %q, %v", got, err)
	}
	f.clean()
}

// A remote that declines the claim's last push does not undo the report.
func TestRefusedRelease(t *testing.T) {
	t.Parallel()
	f := newFixture(t, commits)
	bare := f.withRemote()
	hook := filepath.Join(bare, "hooks", "pre-receive")
	f.issue("a")
	f.onStage(journal.StageRelease, func(journal.Record) {
		if err := os.WriteFile(hook, []byte("#!/bin/sh\nexit 1\n"), 0o755); err != nil {
			t.Error(err)
		}
	})
	f.sweep(t.Context())
	reported := f.text("a")
	if !strings.Contains(reported, "**ralph: succeeded**") || strings.Contains(reported, "waiting") {
		t.Errorf("the report:\n%s", reported)
	}
	if err := os.Remove(hook); err != nil {
		t.Fatal(err)
	}
	f.bury(bare)
	f.sweep(t.Context())
	if now := f.text("a"); now != reported {
		t.Errorf("the report has changed:\n%s", now)
	}
	f.clean()
}

// requestRecorder is a forge that records the texts of requests, and on which one may be closed.
type requestRecorder struct {
	*forge
	last    tracker.Request
	refused string // head commit of the request that was closed
	asked   string // base of the last call of RejectedHead
}

func (r *requestRecorder) RejectedHead(_ context.Context, _, base string) (commit, url string, err error) {
	r.asked = base
	return r.refused, "https://forge.example/1", nil
}

func (r *requestRecorder) OpenRequest(ctx context.Context, q tracker.Request) (tracker.RequestRef, error) {
	r.last = q
	return r.forge.OpenRequest(ctx, q)
}

// A request says what was done and why, with commits, checks and next steps, followed by the repository's own template from the
// base. It tells nobody to run git, and shows nothing that was meant for ralph.
func TestRequestReadsLikeAPersons(t *testing.T) {
	t.Parallel()
	f := newFixture(t, `cat >/dev/null; echo work > work; echo mine > .github/pull_request_template.md; git add work; git commit -qm "Add the work"
echo "I added the work, because it was missing."`+done)
	f.write(".github/pull_request_template.md", "## Checklist\n\n- [ ] {{report}} documented\n")
	f.commit("template")
	f.withRemote()
	f.issue("a")
	host := &requestRecorder{forge: &forge{Tracker: f.Config.Run.Tracker, requests: map[string]int{}}}
	f.Config.Run.Tracker, f.Config.Run.Publish, f.Config.Run.Gate = host, journal.PublishRequest, lines("grep -q work work")
	r := f.one()
	want := `Closes a.md

What was done and why, in the agent's words:

` + "```text\nI added the work, because it was missing.\n```" + `

1 commit on ` + "`main`" + `:

- ` + "`" + r.Tip[:12] + "`" + ` ` + "`Add the work`" + `

Before the run, ` + "`grep -q work work`" + ` failed on ` + "`main`" + `.

Gate, on a clean checkout of the tip:

- ` + "`grep -q work work`" + ` passed in TIME

Made by command in sandbox none (the agent ran on the host, without isolation): 1 iteration, TIME; run ` + "`" + r.ID + "`" + `.

To go on: merge this request if it is right; that closes the issue. If a review asks for changes, the next sweep makes them. ` +
		"To start again from the base, close this request and add the label `no-human` to the issue." + `

## Checklist

- [ ] {{report}} documented
`
	got := regexp.MustCompile(`\b[0-9.]+m?s\b`).ReplaceAllString(host.last.Body, "TIME")
	if diff := cmp.Diff(want, got); diff != "" || host.last.Title != "Do a" || host.last.Draft {
		t.Errorf("%+v, body (-want +got):\n%s", host.last, diff)
	}
	f.clean()
}

// A draft says why it is one, and when it is tried again.
func TestDraftSaysWhatComesNext(t *testing.T) {
	t.Parallel()
	f := newFixture(t, commits)
	f.withRemote()
	f.issue("a")
	host := &requestRecorder{forge: &forge{Tracker: f.Config.Run.Tracker, requests: map[string]int{}}}
	f.Config.Run.Tracker, f.Config.Run.Publish, f.Config.Run.Gate = host, journal.PublishRequest, lines("git rev-list --count HEAD; exit 3")
	r := f.one()
	body := host.last.Body
	if r.Verdict.Outcome != journal.GateFailed || !host.last.Draft || !strings.HasPrefix(body, "Closes a.md\n\nThis is a draft: gate-failed, ") {
		t.Errorf("%+v\n%s", r.Verdict, body)
	}
	_, when, ok := strings.Cut(body, "To go on: on the issue, the first sweep that begins after ")
	at, err := time.Parse(time.RFC3339, strings.TrimSuffix(when, " tries it again.\n"))
	if !ok || err != nil || at.Before(r.Started) || strings.Contains(body, "0001-") {
		t.Errorf("tried again at %v, %v:\n%s", at, err, body)
	}
	f.clean()
}

// After people have closed a request, its commits are not continued: the next run starts from the base, keeps the old commits,
// and reports that. Its own retries continue from its commits.
func TestRefusedRequestBeginsAnew(t *testing.T) {
	t.Parallel()
	f := newFixture(t, `cat >/dev/null; test "$RALPH_ATTEMPT" = 1 && test -e "$SECOND" && echo half >> half && git add -A && git commit -qm half && exit 3
echo more >> work; git add -A; git commit -qm "work"`+done)
	second := filepath.Join(t.TempDir(), "second")
	f.Config.Run.Env = append(f.Config.Run.Env, "SECOND="+second)
	bare := f.withRemote()
	f.issue("a")
	host := &requestRecorder{forge: &forge{Tracker: f.Config.Run.Tracker, requests: map[string]int{}}}
	f.Config.Run.Tracker, f.Config.Run.Publish, f.Config.Run.MaxIterations, f.Config.Run.Retry.Backoff = host, journal.PublishRequest, 1, -1
	old := f.one()
	host.refused = old.Tip
	if err := os.WriteFile(second, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := host.Change(t.Context(), "a", tracker.Change{AddLabels: []string{"no-human"}}); err != nil {
		t.Fatal(err)
	}
	f.sweep(t.Context())
	failed := f.runs("a")[1]
	if text := f.text("a"); failed.Verdict.Outcome != journal.Failed || !strings.Contains(text, "started again from the base: `https://forge.example/1 was closed without a merge`") {
		t.Fatalf("%+v\n%s", failed.Verdict, text)
	}
	f.sweep(t.Context(), "a")
	r := f.runs("a")[2]
	if log := f.git(bare, "log", "--format=%s", "main..ralph/a"); r.Verdict.Outcome != journal.Succeeded || log != "work\nhalf" || r.RestartReason != "" {
		t.Errorf("%+v, pushed %q", r, log)
	}
	if host.asked != "main" || host.last.Base != "main" {
		t.Errorf("requests into %q may be refused, that of the run is into %q", host.asked, host.last.Base)
	}
	if kept := f.git(f.repo, "for-each-ref", "--format=%(objectname)", "refs/ralph/old/a"); !strings.Contains(kept, old.Tip) {
		t.Errorf("kept: %q, not %s", kept, old.Tip)
	}
	f.clean()
}

// Commits that the policy has refused are not continued either: the policy would refuse them again before any agent runs.
func TestPolicyBlockedBeginsAnew(t *testing.T) {
	t.Parallel()
	second := filepath.Join(t.TempDir(), "second")
	f := newFixture(t, `cat >/dev/null; if test -e "$SECOND"; then echo good > good; git add -A; else `+evil+` true; fi; git commit -qm work`+done)
	f.Config.Run.Env = append(f.Config.Run.Env, "SECOND="+second)
	f.issue("a")
	if r := f.one(); r.Verdict.Outcome != journal.PolicyBlocked {
		t.Fatalf("%+v", r.Verdict)
	}
	if err := os.WriteFile(second, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := f.Config.Run.Tracker.Change(t.Context(), "a", tracker.Change{RemoveLabels: []string{"needs-human"}}); err != nil {
		t.Fatal(err)
	}
	if r := f.one(); r.Verdict.Outcome != journal.Succeeded || r.Commits != 1 {
		t.Errorf("%+v", r)
	}
	f.clean()
}

// Report and request say that the issue was edited during its run, even if nothing is published.
func TestEditedWhileWorked(t *testing.T) {
	t.Parallel()
	const says = "The issue has changed since this run began"
	for name, edit := range map[string]string{"edited": `echo "And b." >> "$RALPH_ISSUE_URL"`, "as it was": "true"} {
		for _, end := range []string{done, "; exit 3"} {
			t.Run(name+end, func(t *testing.T) {
				t.Parallel()
				f := newFixture(t, `cat >/dev/null; `+edit+`; echo work > work; git add -A; git commit -qm work`+end)
				f.withRemote()
				f.issue("a")
				host := &requestRecorder{forge: &forge{Tracker: f.Config.Run.Tracker, requests: map[string]int{}}}
				f.Config.Run.Tracker, f.Config.Run.Publish, f.Config.Run.MaxIterations = host, journal.PublishRequest, 1
				r := f.only(f.sweep(t.Context()))
				want := name == "edited"
				if r.Facts.Edited != want || strings.Contains(f.text("a"), says) != want || end == done && strings.Contains(host.last.Body, says) != want {
					t.Errorf("%+v\n%s\n%s", r.Facts, f.text("a"), host.last.Body)
				}
				f.clean()
			})
		}
	}
}
