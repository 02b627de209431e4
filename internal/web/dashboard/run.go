package dashboard

import (
	"context"
	"net/http"
	"time"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/loop"
	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/pool/report"
)

// runModel is the data of a run's page.
type runModel struct {
	Project string
	Run     journal.Record
	State   string
	Reason  string
	On      bool
	Elapsed time.Duration
	Now     activeRun
	Steps   []step
	Cut     bool // the log was too long to find all steps
	Checks  []checkResult
	Log     logPage
}

// checkResult is the result of a check.
type checkResult struct {
	Where string
	loop.Check
}

// record returns the record of the requested run.
func (p *Pages) record(r *http.Request) (journal.Record, error) {
	list, err := p.Service.Runs(r.Context(), r.PathValue("project"), journal.Query{Run: r.PathValue("run"), Limit: 1})
	switch {
	case err != nil:
		return journal.Record{}, err
	case len(list) == 0:
		return journal.Record{}, errNoRun
	}
	return list[0], nil
}

func (p *Pages) run(w http.ResponseWriter, r *http.Request) error {
	rec, err := p.record(r)
	if err != nil {
		return err
	}
	project := r.PathValue("project")
	m := runModel{
		Project: project, Run: rec, State: state(rec), Reason: report.Reason(rec.Verdict.Reason), On: rec.Ended.IsZero(),
		Checks: checks(rec.Facts), Now: activeRun{Run: rec.ID, activity: p.Config.Live.activityOf(project, rec.ID)},
	}
	if m.Now.Usage == (agents.Usage{}) { // on another machine, or no usage since this process started
		m.Now.Usage = rec.Facts.Usage
	}
	end := rec.Ended
	if m.On {
		end = time.Now()
	}
	m.Elapsed = rec.DurationUntil(end)
	if err := p.reading(r.Context(), func() error {
		m.Steps, m.Cut, err = p.steps.of(rec, end)
		if err == nil {
			m.Log, err = tail(rec.Dir, journal.EventsFile, logShown)
		}
		return err
	}); err != nil {
		return err
	}
	v := view{Title: line(rec.Key) + " · run", Project: project, Tab: "runs"}
	p.render(w, http.StatusOK, "run.html", v.with(m))
	return nil
}

// reading limits the number of concurrent reads of logs.
func (p *Pages) reading(ctx context.Context, do func() error) error {
	select {
	case p.searches <- struct{}{}:
		defer func() { <-p.searches }()
		return do()
	case <-time.After(5 * time.Second):
		return errBusy
	case <-ctx.Done():
		return ctx.Err()
	}
}

// checks returns the checks of a run in the order in which they ran.
func checks(f journal.Facts) (out []checkResult) {
	add := func(where string, list []loop.Check) {
		for _, c := range list {
			out = append(out, checkResult{where, c})
		}
	}
	addAll := func(where string, v *journal.Verification) {
		if v != nil {
			add(where, v.Checks)
		}
	}
	addAll("base", f.Baseline)
	add("worktree", f.Gate)
	addAll("clean checkout", f.Verify)
	if f.Watch != nil {
		addAll("with the base's checks", f.Watch.Base)
	}
	return out
}
