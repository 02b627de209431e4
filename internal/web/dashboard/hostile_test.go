package dashboard_test

import (
	"strings"
	"testing"
	"time"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/internal/service"
	"github.com/ralph-pool/ralph/internal/web/browsertest"
	"github.com/ralph-pool/ralph/internal/web/dashboard"
	"github.com/ralph-pool/ralph/loop"
	"github.com/ralph-pool/ralph/pool"
	"github.com/ralph-pool/ralph/pool/backlog"
	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/sandboxes"
	"github.com/ralph-pool/ralph/tracker"
)

// hostile would run code if it were interpreted as markup: as text, or in an attribute, script, style or address.
const hostile = `x"'></h1></script></style></textarea></title><script>document.body.dataset.owned=1</script>` +
	`<img src=x onerror=document.body.dataset.owned=1><svg onload=document.body.dataset.owned=1>{{.}} javascript:owned() ' onfocus=owned() autofocus a='`

// address would run code if a browser followed it.
const address = "javascript:document.body.dataset.owned=1"

// attacked returns a project in which all text from agents and issues is hostile.
func attacked(t *testing.T) (*fake, *dashboard.Live) {
	t.Helper()
	f, live := &fake{refused: hostile}, dashboard.NewLive()
	issue := tracker.Issue{Key: "k" + hostile, Title: hostile, URL: address, Labels: []string{hostile}, Open: true}
	f.status = service.Status{
		Name: "shop", Repo: hostile, State: service.Working, Problem: hostile, Parallel: 1,
		Running:   []pool.Running{{Key: "on" + hostile, Run: "on", Title: hostile, Started: time.Now()}},
		Elsewhere: []journal.Record{{Run: journal.Run{ID: "far", Key: "far" + hostile, Title: hostile, Host: hostile, Started: time.Now()}}},
	}
	f.board = service.Board{At: time.Now(), Problem: hostile, Plan: backlog.Plan{
		Work:    []tracker.Issue{issue},
		Skipped: []backlog.Skipped{{Issue: tracker.Issue{Key: "other", Title: hostile, URL: address}, Skip: journal.Skip{Code: journal.SkipUnfit, Unfit: tracker.Unfit{Code: tracker.UnfitTaken, Detail: hostile}, Run: hostile}}},
	}}
	check := loop.Check{Command: hostile, ExitCode: 1, Tail: hostile}
	r := journal.Record{
		Run: journal.Run{
			ID: "ended", Key: "k" + hostile, Title: hostile, URL: address, Agent: hostile, Model: hostile, Branch: hostile, Base: hostile, Sandbox: hostile,
			Dir: t.TempDir(), Started: time.Now(),
		},
		State: journal.State{
			Ended: time.Now(), Tip: "aaaa", Published: hostile, Request: journal.Request{Number: 1, URL: address}, Warnings: []sandboxes.Notice{{Text: hostile}},
			Changed: journal.Changed{Files: 1, List: []journal.ChangedFile{{Path: hostile}}},
			Facts: journal.Facts{
				Gate: []loop.Check{check}, GateRan: true,
				Iterations: []loop.Iteration{{Number: 1, Agent: hostile, Model: hostile, Signal: hostile, Failure: &agents.Failure{Class: agents.RateLimit, Message: hostile}}},
				Review:     &journal.Review{Agent: hostile, Findings: []journal.Finding{{File: hostile, Severity: hostile, Text: hostile}}},
			},
			Verdict: journal.Verdict{Outcome: journal.GateFailed, Reason: journal.Reason{Code: journal.ReasonVerify, Detail: hostile}},
		},
	}
	folder, err := journal.OpenFolder(r.Dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range []journal.Event{
		{Kind: journal.EventAgent, Source: hostile, Text: hostile}, {Kind: hostile, Text: hostile}, {Kind: journal.EventGate, Check: &check},
		{Kind: journal.EventStage, Stage: hostile}, {Kind: journal.EventEnded, Outcome: hostile, Reason: &journal.Reason{Code: journal.ReasonVerify, Detail: hostile}},
	} {
		if err := folder.Append(e); err != nil {
			t.Fatal(err)
		}
	}
	f.events = []journal.Event{{Kind: journal.EventAgent, Run: "on", Source: hostile, Text: hostile, Check: &check}, {Kind: hostile, Text: hostile}}
	file, err := folder.Create(strings.ReplaceAll(hostile, "/", "_"))
	if err == nil {
		_, err = file.Write([]byte(hostile))
	}
	if err != nil || file.Close() != nil || folder.Close() != nil {
		t.Fatal(err)
	}
	on := r
	on.ID, on.Ended = "on", time.Time{}
	for _, r := range []journal.Record{r, on} {
		if err := f.Save(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	live.Observe("shop", journal.Event{Kind: journal.EventAgent, Run: "on", Text: hostile})
	name := strings.NewReplacer(`"`, `\"`).Replace(hostile)
	f.patch = "diff --git \"a/" + name + "\" \"b/" + name + "\"\n--- \"a/" + name + "\"\n+++ \"b/" + name + "\"\n@@ -1 +1,2 @@ " + hostile + "\n-" + hostile + "\n+" + hostile + "\n+" + hostile + "\n"
	return f, live
}

// Hostile text of issues, agents, logs, diffs and file names is shown literally and has no effect. It does not even try to
// do what the browser's content security policy would block.
func testHostileText(t *testing.T, browser browsertest.Browser) {
	f, live := attacked(t)
	url := site(t, f, live)
	for name, c := range map[string]struct {
		path string
		wait string // what the script adds
	}{
		"titles":                 {"/p/shop", ""},
		"titles of all projects": {"/", ""},
		"titles in a list":       {"/p/shop?state=left-out", ""},
		"titles of runs":         {"/p/shop/runs?issue=k", ""},
		"what is searched for":   {"/p/shop/runs?issue=" + escaped(hostile), ""},
		"a run":                  {"/p/shop/runs/ended", ""},
		"a log that goes on":     {"/p/shop/runs/on", "document.querySelectorAll('.log li').length >= 6"},
		"a log":                  {"/p/shop/runs/ended/log", ""},
		"a search":               {"/p/shop/runs/ended/log?q=" + escaped(hostile[:50]), ""},
		"a raw log":              {"/p/shop/runs/ended/log?file=" + escaped(strings.ReplaceAll(hostile, "/", "_")), ""},
		"a diff":                 {"/p/shop/runs/ended/diff", ""},
		"a file name in a form":  {"/p/shop/runs/ended/diff?at=f1-a2", ""},
		"charts":                 {"/p/shop/charts", ""},
		"a project's name":       {"/p/" + escaped(hostile), ""},
		"a run's name":           {"/p/shop/runs/" + escaped(hostile), ""},
	} {
		t.Run(name, func(t *testing.T) {
			p := browser.Page(t, browsertest.Look{Width: 800, Height: 600})
			p.Go(url + c.path)
			if c.wait != "" {
				p.Until(c.wait)
			}
			if got := browsertest.Eval[string](p, `[document.body.dataset.owned, document.querySelectorAll("main img, main svg[onload], main script, main style").length,
				document.querySelectorAll("a[href^='javascript']").length, [...document.querySelectorAll("*")].filter((e) => [...e.attributes].some((a) => a.name.startsWith("on") || a.name === "style")).length].join(" ")`); got != " 0 0 0" {
				t.Errorf("in the page: %q", got)
			}
			if wrong := p.Wrong(); len(wrong) > 0 && !strings.Contains(name, "name") {
				t.Errorf("%q", wrong)
			}
			if !strings.Contains(name, "name") && name != "charts" && !strings.Contains(browsertest.Eval[string](p, "document.getElementById('main').textContent + [...document.querySelectorAll('input')].map((i) => i.value)"), "<script>document.body.dataset") {
				if name != "what is searched for" && name != "titles of runs" && name != "a search" {
					t.Error("the text is not shown")
				}
			}
		})
	}
}
