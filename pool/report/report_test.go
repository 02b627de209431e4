package report_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/loop"
	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/pool/journal/journaltest"
	"github.com/ralph-pool/ralph/pool/redact"
	"github.com/ralph-pool/ralph/pool/report"
	"github.com/ralph-pool/ralph/sandboxes"
	"github.com/ralph-pool/ralph/tracker"
)

// hints are those of a program that runs a pool.
var hints = report.Hints{
	Work: "ralph work KEY", Diff: "ralph diff KEY", Merge: "ralph merge KEY", Show: "ralph show KEY", Stop: "ralph stop KEY", Doctor: "ralph doctor",
}

// A set-up that cannot run on the base has to be corrected. The report names no branch and no attempt, and keeps the end of the reason.
func TestFinalOfABrokenSetUp(t *testing.T) {
	t.Parallel()
	why := strings.Repeat("x", 600) + " pypi.org:443 was not reachable"
	r := journal.Record{
		Run: journal.Run{Key: "a", Base: "main", Branch: "ralph/a", Attempt: 1, Settings: journal.Settings{Limits: journal.Limits{MaxAttempts: 3}}, Host: "box"},
		State: journal.State{
			Verdict: journal.Verdict{Outcome: journal.EnvironmentUnavailable, Reason: journal.Reason{Code: journal.ReasonOpen, Detail: why}},
			Facts:   journal.Facts{Open: &journal.Fault{Kind: journal.FaultBase, Text: why}},
		},
	}
	for next, steps := range map[string]report.Steps{
		"Next: correct the setup or the gate, or give it what it lacks; the next sweep tries again. At once: `ralph work a`.": {Local: true, Hints: hints},
		"Next: correct the setup or the gate, or give it what it lacks; the next sweep tries again.":                          {},
	} {
		got := report.Final(report.Input{Record: r, Secrets: redact.New(), Steps: steps})
		if !strings.Contains(got, next+"\n") || !strings.Contains(got, "443 was not reachable`\n") || !strings.Contains(got, "\n- Not an attempt, 0 iterations, ") ||
			!strings.Contains(got, "- Work: 0 commits on `main`\n") || strings.Contains(got, "ralph/a") {
			t.Errorf("got %s", got)
		}
	}
}

// Every outcome comes with one line about the next step.
func TestNext(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	request := journal.Request{Number: 7, URL: "https://x.example/7"}
	for _, c := range []struct {
		verdict journal.Verdict
		publish journal.Publish
		request journal.Request
		want    string
	}{
		{journal.Verdict{Outcome: journal.Succeeded}, journal.PublishBranch, journal.Request{}, "review with `ralph diff a`, then `ralph merge a`."},
		{journal.Verdict{Outcome: journal.Succeeded}, journal.PublishMerge, journal.Request{}, "nothing; it is merged."},
		{journal.Verdict{Outcome: journal.Succeeded}, journal.PublishRequest, request, "review https://x.example/7."},
		{journal.Verdict{Outcome: journal.NoChange, Final: true}, "", journal.Request{}, "close the issue if you agree"},
		{journal.Verdict{Outcome: journal.NeedsInfo, Final: true}, "", journal.Request{}, "answer in the issue"},
		{journal.Verdict{Outcome: journal.PolicyBlocked, Final: true}, "", journal.Request{}, "nothing was published; look at `git log -p main..ralph/a`"},
		{journal.Verdict{Outcome: journal.OverBudget, Final: true}, "", journal.Request{}, "raise the budget"},
		{journal.Verdict{Outcome: journal.OverBudget, Reason: journal.Reason{Code: journal.ReasonDisk}}, "", journal.Request{}, "check what the run wrote, and free disk space"},
		{journal.Verdict{Outcome: journal.AgentUnavailable}, "", journal.Request{}, "nothing; the next sweep continues"},
		{journal.Verdict{Outcome: journal.EnvironmentUnavailable}, "", journal.Request{}, "nothing; the next sweep continues"},
		{journal.Verdict{Outcome: journal.Interrupted}, "", journal.Request{}, "nothing; the next sweep continues"},
		{journal.Verdict{Outcome: journal.Superseded}, "", journal.Request{}, "nothing.\n"},
		{journal.Verdict{Outcome: journal.Failed, Final: true}, "", journal.Request{}, "find out why with `ralph show a`, then `ralph work a`; it continues from the commits so far."},
		{
			journal.Verdict{Outcome: journal.Failed, Final: true, Reason: journal.Reason{Code: journal.ReasonConflict}}, "", journal.Request{},
			"solve the conflict after `git rebase main ralph/a`; then `git switch main` and `ralph merge a`.",
		},
		{
			journal.Verdict{Outcome: journal.Failed, Final: true, Reason: journal.Reason{Code: journal.ReasonPublish}}, journal.PublishMerge, journal.Request{},
			"fix what prevents publishing; then `ralph merge a`.",
		},
		{
			journal.Verdict{Outcome: journal.Failed, Final: true, Reason: journal.Reason{Code: journal.ReasonPublish}}, journal.PublishBranch, journal.Request{},
			"fix what prevents publishing; then `ralph work a`. The agent does not run again for it, unless the issue has changed.",
		},
		{journal.Verdict{Outcome: journal.GateFailed, RetryAt: at}, "", journal.Request{}, "nothing; the first sweep that begins after 2026-01-02T03:04:05Z tries it again."},
		{journal.Verdict{Outcome: journal.Failed}, "", journal.Request{}, "nothing; the next sweep tries again."},
	} {
		r := journal.Record{Run: journal.Run{Key: "a", Branch: "ralph/a", Base: "main"}}
		r.Verdict, r.Settings.Publish, r.Request = c.verdict, c.publish, c.request
		got := report.Final(report.Input{Record: r, Secrets: redact.New(), Steps: report.Steps{Local: true, Hints: hints}})
		_, next, ok := strings.Cut(got, "\nNext: ")
		if !ok || !strings.HasPrefix(next, c.want) || strings.Count(next, "\n") != 1 {
			t.Errorf("%s: %q, want %q", c.verdict.Outcome, next, c.want)
		}
	}
}

// Where a run has made no commits, its report speaks of no work.
func TestWithoutCommits(t *testing.T) {
	t.Parallel()
	for commits, want := range map[int]bool{0: false, 1: true} {
		r := journal.Record{Run: journal.Run{Key: "a"}}
		r.Verdict.Outcome, r.Facts.Edited, r.Commits = journal.Superseded, true, commits
		got := report.Final(report.Input{Record: r, Secrets: redact.New(), Steps: report.Steps{Local: true, Hints: hints}})
		if strings.Contains(got, "the work still fits") != want || strings.Contains(got, "Next: nothing; the work so far is kept on the branch.") != want {
			t.Errorf("%d commits: %s", commits, got)
		}
	}
}

// In commands to type, names from others are quoted.
func TestCommandsAreQuoted(t *testing.T) {
	t.Parallel()
	for outcome, want := range map[journal.Outcome]string{
		journal.PolicyBlocked: "look at `git log -p 'm$(id);..r b/a'`.",
	} {
		r := journal.Record{Run: journal.Run{Key: "a", Branch: "r b/a", Base: "m$(id);"}}
		r.Verdict, r.Settings.Publish = journal.Verdict{Outcome: outcome, Final: true}, journal.PublishBranch
		if got := report.Final(report.Input{Record: r, Secrets: redact.New(), Steps: report.Steps{Local: true, Hints: hints}}); !strings.Contains(got, want) {
			t.Errorf("%s: %q", outcome, got)
		}
	}
}

// If no agent could be started, the report says how often, and what finds the cause.
func TestNextOfARunThatCouldNotBegin(t *testing.T) {
	t.Parallel()
	for name, facts := range map[string]journal.Facts{
		"no worktree": {Open: &journal.Fault{Kind: journal.FaultOther}}, "setup": {End: loop.EndSetup},
	} {
		for _, here := range []bool{true, false} {
			facts.Failures = 9
			r := journal.Record{Run: journal.Run{Key: "a", Host: "box"}, State: journal.State{Facts: facts}}
			r.Verdict = journal.Verdict{Outcome: journal.Failed, Final: true}
			got := report.Final(report.Input{Record: r, Secrets: redact.New(), Steps: report.Steps{Local: here, Hints: hints, NeedsHuman: "needs-human"}})
			want := "machine `box` has to fix it; then remove the label `needs-human`."
			if here {
				want = "Find out what is broken with `ralph doctor`; then `ralph work a`."
			}
			if !strings.Contains(got, "10 failures in a row. ") || !strings.Contains(got, want) {
				t.Errorf("%s: %q, want %q", name, got, want)
			}
		}
	}
}

// If the gate fails whatever an agent does, the report says what to check.
func TestNextAfterAGateThatCannotPass(t *testing.T) {
	t.Parallel()
	for _, here := range []bool{true, false} {
		r := journal.Record{Run: journal.Run{Key: "a", Base: "main"}, State: journal.State{Facts: journal.Facts{End: loop.EndUnchanged}}}
		r.Verdict = journal.Verdict{Outcome: journal.GateFailed, Final: true}
		got := report.Final(report.Input{Record: r, Secrets: redact.New(), Steps: report.Steps{Local: here, Hints: hints, NeedsHuman: "needs-human"}})
		if want := "Next: correct the line of the gate that fails, or what it needs on `main`"; !strings.Contains(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// A warning comes with the flag or key that helps, if the program knows it.
func TestWarningNamesWhatHelps(t *testing.T) {
	t.Parallel()
	const refused = "network: a.example:443 was refused (not-allowed), 2 times"
	r := journal.Record{Run: journal.Run{Key: "a"}, State: journal.State{Warnings: []sandboxes.Notice{{Text: refused}}}}
	helps := report.Hints{Warning: func(n sandboxes.Notice) string { return n.Text + "; it helps" }}
	for want, steps := range map[string]report.Steps{
		"Warning: `" + refused + "; it helps`\n": {Local: true, Hints: helps},
		"Warning: `" + refused + "`\n":           {Hints: helps}, // a flag does not help people on a forge
	} {
		got := report.Final(report.Input{Record: r, Secrets: redact.New(), Steps: steps})
		if !strings.Contains(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// A report on a forge names what can be done there, and no command.
func TestNextOnAForge(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	request := journal.Request{Number: 7, URL: "https://x.example/7"}
	because := func(code journal.ReasonCode, detail string) journal.Reason {
		return journal.Reason{Code: code, Detail: detail}
	}
	unfit := func(code tracker.UnfitCode, detail string) journal.Reason {
		return journal.Reason{Code: journal.ReasonIssue, Unfit: tracker.Unfit{Code: code, Detail: detail}}
	}
	for _, c := range []struct {
		verdict journal.Verdict
		change  func(*journal.Record)
		want    string
	}{
		{journal.Verdict{Outcome: journal.Succeeded}, func(r *journal.Record) { r.Request = request },
			"review https://x.example/7. If a review asks for changes, the next sweep makes them. To start again from the base, close the request and add the label `no-human` to this issue."},
		{journal.Verdict{Outcome: journal.Succeeded}, func(r *journal.Record) { r.Published = "pushed to origin" }, "review the branch `ralph/12`, and merge it or open a request for it."},
		{journal.Verdict{Outcome: journal.Succeeded}, nil, "the commits are on machine `box` only: "},
		{journal.Verdict{Outcome: journal.Succeeded}, func(r *journal.Record) { r.Settings.Publish = journal.PublishMerge }, "nothing; it is merged."},
		{journal.Verdict{Outcome: journal.NoChange, Final: true}, nil, "close the issue if you agree. If not, say in a comment what is missing, and remove the label `needs-human`."},
		{journal.Verdict{Outcome: journal.NeedsInfo, Final: true}, nil, "answer in a comment, as somebody with write permission"},
		{journal.Verdict{Outcome: journal.PolicyBlocked, Final: true}, nil, "nothing was published. Say in a comment what the agent must not change, and remove the label `needs-human`"},
		{journal.Verdict{Outcome: journal.OverBudget, Final: true}, nil, "remove the label `needs-human` to spend the same budget once more"},
		{journal.Verdict{Outcome: journal.OverBudget, Final: true, Reason: because(journal.ReasonDisk, "")}, nil, "free disk space on machine `box`"},
		{journal.Verdict{Outcome: journal.AgentUnavailable}, nil, "nothing; the next sweep continues."},
		{journal.Verdict{Outcome: journal.EnvironmentUnavailable}, nil, "nothing; the next sweep continues."},
		{journal.Verdict{Outcome: journal.Interrupted}, nil, "nothing; the next sweep continues."},
		{
			journal.Verdict{Outcome: journal.Interrupted, Reason: because(journal.ReasonAsked, "")}, nil,
			"nothing; it was stopped, and the next sweep continues if the issue has the label `no-human` then.",
		},
		{journal.Verdict{Outcome: journal.Interrupted, Reason: because(journal.ReasonAsked, "")}, func(r *journal.Record) { r.FollowUp = "conflict" }, "nothing; the next sweep continues."},
		{journal.Verdict{Outcome: journal.GateFailed, RetryAt: at}, nil, "nothing; the first sweep that begins after 2026-01-02T03:04:05Z tries it again."},
		{journal.Verdict{Outcome: journal.Superseded, Reason: unfit(tracker.UnfitClosed, "")}, nil, "nothing; ralph continues when the issue is reopened."},
		{journal.Verdict{Outcome: journal.Superseded, Reason: unfit(tracker.UnfitLacks, "@x")}, nil, "nothing; ralph continues when the issue is given the label `@ x`."},
		{journal.Verdict{Outcome: journal.Superseded, Reason: unfit(tracker.UnfitExcluded, "y")}, nil, "nothing; ralph continues when the issue is without the label `y`."},
		{journal.Verdict{Outcome: journal.Superseded, Reason: unfit(tracker.UnfitHandedOver, "z")}, nil, "nothing; ralph continues when the issue is without the label `z`."},
		{journal.Verdict{Outcome: journal.Superseded, Reason: unfit(tracker.UnfitBlocked, "3")}, nil, "nothing; ralph continues when the issue is available again."},
		{journal.Verdict{Outcome: journal.Superseded, Reason: unfit(tracker.UnfitConfidential, "")}, nil, "nothing; ralph continues when the issue is public, or the project private."},
		{journal.Verdict{Outcome: journal.Superseded, Reason: unfit(tracker.UnfitGone, "")}, nil, "nothing."},
		{journal.Verdict{Outcome: journal.Failed, Final: true}, nil, "remove the label `needs-human` to try again from the commits so far."},
		{journal.Verdict{Outcome: journal.Failed, Final: true, Reason: because(journal.ReasonPublish, "GH013")}, nil, "fix what prevents publishing; then remove the label `needs-human`"},
		{journal.Verdict{Outcome: journal.Failed, Final: true}, func(r *journal.Record) { r.FollowUp = "conflict" },
			"remove the label `needs-human` and add the label `no-human` again to try again"},
	} {
		r := journal.Record{Run: journal.Run{Key: "12", Branch: "ralph/12", Base: "main", Host: "box"}}
		r.Verdict, r.Settings.Require, r.Settings.Publish, r.Commits = c.verdict, []string{"no-human"}, journal.PublishRequest, 1
		if c.change != nil {
			c.change(&r)
		}
		got := report.Final(report.Input{Record: r, Secrets: redact.New(), Steps: report.Steps{NeedsHuman: "needs-human", NeedsInfo: "needs-info", Rounds: true}})
		_, next, ok := strings.Cut(got, "\nNext: ")
		if !ok || !strings.HasPrefix(next, c.want) || strings.Count(next, "\n") != 1 {
			t.Errorf("%s: %q, want %q", c.verdict.Outcome, next, c.want)
		}
		if strings.Contains(got, "`ralph ") || strings.Contains(got, "git ") {
			t.Errorf("%s: a command:\n%s", c.verdict.Outcome, got)
		}
		if shown := strings.Contains(got, "ralph/12"); shown != (r.Published != "") && r.Request.URL == "" {
			t.Errorf("%s: the branch, which is on no remote, is named: %v\n%s", c.verdict.Outcome, shown, got)
		}
	}
}

// The parts of a report about one run.
func TestFinalSays(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	check := loop.Check{Command: "make", Duration: time.Second}
	for name, c := range map[string]struct {
		change func(*report.Input)
		want   string
	}{
		"commits": {func(in *report.Input) { in.Record.Commits, in.Record.Tip = 1, "0123456789abcdef" }, "1 commit on `main`, tip `0123456789ab`"},
		"request": {func(in *report.Input) { in.Record.Request = journal.Request{URL: "https://x.example/7"} }, "; review: https://x.example/7"},
		"draft":   {func(in *report.Input) { in.Record.Request = journal.Request{URL: "https://x.example/7", Draft: true} }, "; draft: https://x.example/7"},
		"pushed":  {func(in *report.Input) { in.Record.Published = "pushed to origin" }, "; `pushed to origin`"},
		"WIP":     {func(in *report.Input) { in.Record.WIP = "abcdef0123456789" }, "saved as `abcdef012345` (`refs/ralph/wip/a`)"},
		"earlier WIP": {
			func(in *report.Input) { in.Record.Saved = journal.Saved{Commit: "abcdef0123456789", Run: "r0"} },
			"Uncommitted changes of run `r0`: saved as `abcdef012345` (`refs/ralph/wip/a`)",
		},
		"usage": {
			func(in *report.Input) {
				in.Record.Facts.Usage = agents.Usage{Input: 1, CacheRead: 2, CacheWrite: 3, Output: 4, CostUSD: 0.5}
			}, "\n- Spent: $0.50; 4 tokens in, 2 from cache, 4 out\n",
		},
		"model":     {func(in *report.Input) { in.Record.Model = "big" }, "Agent: claude (`big`)"},
		"restarted": {func(in *report.Input) { in.Record.After, in.Record.AfterOutcome = "r0", journal.Failed }, "started again: run `r0` ended as failed"},
		"follow-up": {func(in *report.Input) { in.Record.FollowUp = "conflict" }, ", follow-up: conflict"},
		"gate":      {func(in *report.Input) { in.Record.Facts.GateRan, in.Record.Facts.Gate = true, []loop.Check{check} }, "Gate, in the agent's worktree:\n\n- `make` passed in 1s\n"},
		"no gate":   {func(in *report.Input) { in.Record.Facts.GateRan = true }, "Gate: none is configured"},
		"not verified": {func(in *report.Input) {
			in.GateOff, in.Record.Facts.GateRan, in.Record.Facts.Gate = true, true, []loop.Check{check}
		}, "only; it did not run on a clean checkout"},
		"verified": {func(in *report.Input) { in.Record.Facts.Verify = &journal.Verification{Checks: []loop.Check{check}} }, "Gate, on a clean checkout of the tip:\n\n- `make` passed"},
		"gate that hangs": {func(in *report.Input) {
			in.Record.Facts.GateRan, in.Record.Facts.Gate = true, []loop.Check{{Command: "make", TimedOut: true}}
		}, "- `make` took longer than its time limit and was killed"},
		"left out": {
			func(in *report.Input) {
				in.Issue.Comments = []tracker.Comment{{Author: "eve"}, {Author: "ada", Trusted: true}, {Author: "mallory"}, {Author: "eve"}}
			}, "comments of people who may not direct ralph (`eve: 2, mallory: 1`)",
		},
		"many changed checks": {func(in *report.Input) {
			in.Record.Facts.Watch = &journal.Watch{Files: make([]journal.Watched, 200), UnlistedFiles: 66, Findings: make([]string, 24)}
			in.Record.Facts.Watch.Findings[19] = "last"
		}, "- and 246 more\n" + strings.Repeat("- Look at \n", 19) + "- Look at `last`\n- and 4 more\n\n"},
		"edited":    {func(in *report.Input) { in.Record.Facts.Edited = true }, "The issue has changed since this run began"},
		"invisible": {func(in *report.Input) { in.Invisible = 3 }, "3 invisible characters were removed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := report.Input{
				Record: journal.Record{
					Run:   journal.Run{ID: "r1", Key: "a", Branch: "ralph/a", Base: "main", Agent: "claude", Sandbox: "native", Started: at, Attempt: 1},
					State: journal.State{Verdict: journal.Verdict{Outcome: journal.Succeeded}},
				},
				Secrets: redact.New(), Now: at.Add(time.Minute), Steps: report.Steps{Local: true, Hints: hints},
			}
			if strings.Contains(report.Final(in), c.want) {
				t.Fatalf("every report says %q", c.want)
			}
			c.change(&in)
			if got := report.Final(in); !strings.Contains(got, c.want) {
				t.Errorf("lacks %q:\n%s", c.want, got)
			}
		})
	}
}

// During a run, the issue shows its phase, its start and its machine.
func TestProgress(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	r := journal.Record{Run: journal.Run{ID: "r1", Key: "a", Host: "@box", Agent: "claude", Model: "@big", Sandbox: "native", Started: at, Attempt: 2}}
	r.Settings.Limits.MaxAttempts = 3
	for want, e := range map[string]journal.Event{
		"it is being prepared":              {},
		"the agent is working":              {Kind: journal.EventStage, Stage: journal.StageWork},
		"the agent is working, iteration 2": {Kind: journal.EventIteration, Iteration: 2},
		"the commits are being verified":    {Kind: journal.EventStage, Stage: journal.StageVerify},
		"the commits are being published":   {Kind: journal.EventStage, Stage: journal.StagePublish},
	} {
		got := report.Progress(&report.Input{Record: r, Secrets: redact.New(), Steps: report.Steps{Local: true, Hints: hints}}, e)
		want = "**ralph: working** since 2026-01-02T03:04:05Z on machine `@ box`: " + want + ".\n\n- Attempt 2 of 3\n" +
			"- Agent: claude (`@ big`), sandbox: native\n- Run: `r1`\n\nStop it with `ralph stop a`.\n"
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("progress (-want +got):\n%s", diff)
		}
	}
}

// A request without rounds left says so, and what a person can do.
func TestHandOver(t *testing.T) {
	t.Parallel()
	r := journal.Record{Run: journal.Run{Key: "12"}}
	r.Settings.Require = []string{"no-human"}
	in := report.Input{Record: r, Secrets: redact.New(), Steps: report.Steps{NeedsHuman: "needs-human"}}
	for reason, why := range map[tracker.FollowUpReason]string{
		tracker.ChecksFailed: "its required checks still fail", tracker.Conflict: "it still conflicts with its base",
		tracker.ChangesRequested: "a review still asks for changes", "else": "it still needs work",
	} {
		got := report.HandOver(in, tracker.FollowUp{Reason: reason, Request: tracker.RequestRef{URL: "https://x.example/7"}, Feedback: "@hostile"}, 3)
		want := "**ralph: needs a person**: https://x.example/7 has had 3 follow-up runs, and " + why + ".\n\n" +
			"Next: finish the request yourself. To let ralph continue, remove the label `needs-human` and add the label `no-human` again. " +
			"To start again from the base, close the request first.\n"
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("hand-over (-want +got):\n%s", diff)
		}
	}
}

// The results of the last five earlier runs are folded, short and quoted.
func TestHistory(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	in := report.Input{Record: journal.Record{Run: journal.Run{ID: "now", Key: "a"}}, Secrets: redact.New(secret)}
	add := func(id string, o journal.Outcome, detail string) {
		in.Earlier = append(in.Earlier, journal.Record{Run: journal.Run{ID: id}, State: journal.State{
			Commits: 1, Ended: at, Verdict: journal.Verdict{Outcome: o, Reason: journal.Reason{Code: journal.ReasonLoop, Detail: detail}},
		}})
	}
	if strings.Contains(report.Final(in), "<details>") {
		t.Error("a first run has a history")
	}
	for _, id := range []string{"r1", "r2", "r3", "r4"} {
		add(id, journal.Failed, "")
	}
	add("r5", journal.AgentUnavailable, "limit")
	add("r8", journal.EnvironmentUnavailable, "no image")
	add("r6", journal.GateFailed, "</details>\n\n# @acme, fixes #1: "+strings.Repeat("x", 1000))
	add("r7", journal.Succeeded, secret)
	want := "\n<details><summary>Earlier: 6 runs</summary>\n\n" +
		"- 2026-01-02T03:04:05Z: failed (1 commit, run `r2`)\n" +
		"- 2026-01-02T03:04:05Z: failed (1 commit, run `r3`)\n" +
		"- 2026-01-02T03:04:05Z: failed (1 commit, run `r4`)\n" +
		"- 2026-01-02T03:04:05Z: gate-failed, `</details> # @ acme, fixes # 1: " + strings.Repeat("x", 111) + "…` (1 commit, run `r6`)\n" +
		"- 2026-01-02T03:04:05Z: succeeded, `" + redact.Text + "` (1 commit, run `r7`)\n\n</details>\n"
	for _, got := range []string{report.Final(in), report.Progress(&in, journal.Event{})} {
		_, got, _ = strings.Cut(got, "\n<details>")
		if diff := cmp.Diff(want, "\n<details>"+got); diff != "" {
			t.Errorf("history (-want +got):\n%s", diff)
		}
	}
}

// Every code has a text of one line that is not the code itself.
func TestReasonsAndSkips(t *testing.T) {
	t.Parallel()
	if got := report.Reason(journal.Reason{}); got != "" {
		t.Errorf("no reason is %q", got)
	}
	for _, c := range []struct {
		code   journal.ReasonCode
		detail string
		want   string
	}{
		{journal.ReasonAgentSaid, "which?", "which?"},
		{journal.ReasonUnchanged, "", "the commits change no file"},
		{journal.ReasonShutdown, "", "ralph was stopped"},
		{journal.ReasonAsked, "", "stopped by a person"},
		{journal.ReasonClaimLost, "", "the claim was lost: it expired, or another ralph took it"},
		{journal.ReasonMoved, "it is at b", "somebody else moved the branch: it is at b"},
		{journal.ReasonCrash, "work", "the run was cut off at stage work, before its outcome was recorded"},
		{journal.ReasonDisk, "d", "d"},
		{journal.ReasonOpen, "d", "d"},
		{journal.ReasonLoop, "d", "d"},
		{journal.ReasonPolicy, "d", "d"},
		{journal.ReasonConflict, "d", "d"},
		{journal.ReasonVerify, "make: exit status 2", "the gate does not pass on a clean checkout of the commits: make: exit status 2"},
		{journal.ReasonRebasedGate, "main: make", "the gate does not pass after the rebase onto main: make"},
		{journal.ReasonPublish, "d", "publish: d"},
		{journal.ReasonWorktreeLost, "", "the run was cut off before it had published, and its worktree is gone; the commits are on the branch"},
		{journal.ReasonExit, "3", "the command ended with status 3"},
		{"of-a-later-ralph", "d", "d"},
	} {
		if got := report.Reason(journal.Reason{Code: c.code, Detail: c.detail}); got != c.want {
			t.Errorf("%s: %q, want %q", c.code, got, c.want)
		}
	}
	for _, code := range []journal.SkipCode{
		journal.SkipUnfit, journal.SkipReview, journal.SkipUnlisted, journal.SkipClaimed, journal.SkipBadClaim, journal.SkipUnreported, journal.SkipHuman, journal.SkipAnswer,
		journal.SkipLabels, journal.SkipRetry, journal.SkipDone, journal.SkipHalted, journal.SkipRecovered, journal.SkipGone, journal.SkipUnapproved, journal.SkipEdited,
		journal.SkipStopped, journal.SkipAsked, journal.SkipHeld, journal.SkipBroken,
	} {
		s := journal.Skip{Code: code, Detail: "detail", Unfit: tracker.Unfit{Code: tracker.UnfitLacks, Detail: "l"}, Run: "run-1", Host: "host-1", Outcome: journal.Failed, Attempt: 2, Until: time.Unix(1, 0)}
		got := report.Skip(s)
		if got == "" || strings.Contains(got, "\n") || got == string(code) {
			t.Errorf("%s: %q", code, got)
		}
		if code == journal.SkipClaimed && got != "claimed by run run-1 on host-1" {
			t.Errorf("claimed: %q", got)
		}
		if code == journal.SkipBadClaim && got != "its claim detail" { // the detail has the command, if there is one
			t.Errorf("bad claim: %q", got)
		}
	}
}

// A redacted record has no secret in any text for people, whatever the field. Fields without text of others, such as names
// and IDs, are skipped.
func TestRedactedLeavesNoSecret(t *testing.T) {
	t.Parallel()
	r := journaltest.Full()
	r.Changed.List = make([]journal.ChangedFile, 1)
	fill(reflect.ValueOf(&r).Elem(), "it is "+secret)
	clean := report.Redacted(r, redact.New(secret))
	f := clean.Facts
	parts := []any{
		clean.Verdict, clean.Warnings[0].Text, clean.Warnings[0].Subject, *f.Open, *f.Publish, f.Verify.Checks, f.Gate, *f.Failure, f.Policy, f.Iterations[0].Failure.Message,
		f.Message, f.Question, f.NoChange, f.EndDetail, f.StopBy, f.Conflict, clean.Published, clean.Unreported, clean.Unlabelled,
		clean.Changed.List[0].Path, clean.Request.Unmerged, clean.Doing,
	}
	for i, part := range parts {
		if shown := fmt.Sprintf("%+v", part); strings.Contains(shown, secret) || !strings.Contains(shown, redact.Text) {
			t.Errorf("part %d: %s", i, shown)
		}
	}
	if all, err := json.Marshal(clean.Facts); err != nil || strings.Contains(string(all), secret) {
		t.Errorf("%s, %v", all, err)
	}
	if r.Changed.List[0].Path == clean.Changed.List[0].Path || !strings.Contains(r.Warnings[0].Text, secret) || !strings.Contains(r.Facts.Open.Text, secret) || !strings.Contains(r.Facts.Gate[0].Tail, secret) {
		t.Error("the record itself was changed")
	}
}

// fill sets every string that it reaches to a text.
func fill(v reflect.Value, text string) {
	switch v.Kind() {
	case reflect.String:
		if v.Type() == reflect.TypeFor[string]() {
			v.SetString(text)
		}
	case reflect.Pointer:
		if v.IsNil() && v.Type() == reflect.TypeFor[*agents.Failure]() {
			v.Set(reflect.New(v.Type().Elem()))
		}
		if !v.IsNil() {
			fill(v.Elem(), text)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Field(i).CanSet() {
				fill(v.Field(i), text)
			}
		}
	case reflect.Slice:
		for i := range v.Len() {
			fill(v.Index(i), text)
		}
	}
}
