package pool

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/ralph-pool/ralph/tracker"
)

// How much of hostile text a report shows, in bytes.
const (
	reportWords = 2000
	reportTail  = 1200
	reportLine  = 300
)

// report writes the run's last word on the issue. A run that only met an agent that is away, or died with ralph before
// there was any work, says nothing there: the next sweep tries again, and a backlog full of such notes helps nobody.
func (w *worker) report(ctx context.Context) error {
	v, body := w.rec.Verdict, ""
	if v.Commits > 0 || v.WIP != "" || v.Outcome != AgentUnavailable && (v.Outcome != Interrupted || !w.died) {
		body = w.body()
	}
	if err := w.pledge(ctx, body); err != nil || body == "" {
		return err
	}
	return w.p.cfg.Tracker.Report(ctx, w.rec.Key, tracker.Report{Run: w.rec.Run, Body: body})
}

// reportProgress says that the issue is being worked.
func (w *worker) reportProgress(ctx context.Context) {
	body := fmt.Sprintf("**ralph: working** on branch %s, attempt %d, since %s. Run `%s`, agent %s, sandbox %s.\n\n"+
		"Stop it with `ralph stop %s`.", tracker.Code(w.rec.Branch), w.rec.Attempt, w.rec.Started.UTC().Format(time.RFC3339), w.rec.Run,
		w.agent(), w.rec.Sandbox, w.rec.Key)
	if err := w.p.cfg.Tracker.Report(ctx, w.rec.Key, tracker.Report{Run: w.rec.Run, Body: body}); err != nil {
		w.log.Warn().Err(err).Msg("progress not reported")
	}
}

func (w *worker) agent() string {
	if w.rec.Model == "" {
		return w.rec.Agent
	}
	return fmt.Sprintf("%s (%s)", w.rec.Agent, tracker.QuoteLine(w.rec.Model, reportLine))
}

// body renders the final report. Text of the agent, of commands and of errors is quoted as data; only this template
// writes anything that a tracker could act on.
func (w *worker) body() string {
	v := w.p.secrets.verdict(w.rec.Verdict)
	var b strings.Builder
	fmt.Fprintf(&b, "**ralph: %s**", v.Outcome)
	if v.Reason != "" {
		fmt.Fprintf(&b, ": %s", tracker.QuoteLine(v.Reason, reportLine))
	}
	b.WriteString("\n\n")
	if v.Question != "" {
		fmt.Fprintf(&b, "The agent asks:\n\n%s\n\n", tracker.Quote(v.Question, reportWords))
	}
	w.whatItDid(&b, v)
	gateEvidence(&b, v)
	if v.Message != "" {
		fmt.Fprintf(&b, "The agent's last words:\n\n%s\n\n", tracker.Quote(v.Message, reportWords))
	}
	for _, warning := range v.Warnings {
		fmt.Fprintf(&b, "Warning: %s\n\n", tracker.QuoteLine(warning, reportLine))
	}
	if who := untrusted(w.issue); who != "" {
		fmt.Fprintf(&b, "Left out of the prompt: comments of people who may not direct ralph (%s).\n\n", tracker.QuoteLine(who, reportLine))
	}
	if w.hidden > 0 {
		fmt.Fprintf(&b, "Warning: %d invisible characters were removed from the issue's text before the agent saw it.\n\n", w.hidden)
	}
	fmt.Fprintf(&b, "Next: %s\n", w.next())
	return b.String()
}

// whatItDid lists what the run did.
func (w *worker) whatItDid(b *strings.Builder, v Verdict) {
	fmt.Fprintf(b, "- Branch: %s, %s on %s", tracker.Code(w.rec.Branch), count(v.Commits, "commit"), tracker.Code(w.rec.Base))
	if v.Tip != "" && v.Commits > 0 {
		fmt.Fprintf(b, ", tip `%.12s`", v.Tip)
	}
	switch {
	case v.Request.URL != "" && v.Request.Draft:
		fmt.Fprintf(b, "; draft: %s", v.Request.URL)
	case v.Request.URL != "":
		fmt.Fprintf(b, "; review: %s", v.Request.URL)
	case v.Published != "":
		fmt.Fprintf(b, "; %s", tracker.QuoteLine(v.Published, reportLine))
	}
	b.WriteString("\n")
	if v.WIP != "" {
		fmt.Fprintf(b, "- Uncommitted changes: saved as `%.12s` (`refs/ralph/wip/%s`)\n", v.WIP, w.rec.Key)
	}
	fmt.Fprintf(b, "- Attempt %d of %d, %s, %s", w.rec.Attempt, w.p.cfg.Retry.MaxAttempts, count(len(v.Iterations), "iteration"),
		time.Since(w.rec.Started).Round(time.Second))
	if u := v.Usage; u.Input+u.Output > 0 {
		fmt.Fprintf(b, ", %d tokens in, %d out", u.Input+u.CacheRead+u.CacheWrite, u.Output)
		if u.CostUSD > 0 {
			fmt.Fprintf(b, ", %.4f USD", u.CostUSD)
		}
	}
	fmt.Fprintf(b, "\n- Agent: %s, sandbox: %s", w.agent(), w.rec.Sandbox)
	if wall := w.terms().Wall; wall != "" {
		fmt.Fprintf(b, " (%s)", wall)
	}
	fmt.Fprintf(b, "\n- Run: `%s`", w.rec.Run)
	if w.again != "" {
		fmt.Fprintf(b, ", started again: %s", w.again)
	}
	if v.FollowUp != "" {
		fmt.Fprintf(b, ", follow-up: %s", v.FollowUp)
	}
	b.WriteString("\n\n")
}

// untrusted names the authors of comments that did not reach the prompt, with how many each wrote.
func untrusted(issue tracker.Issue) string {
	var order []string
	count := map[string]int{}
	for _, c := range issue.Comments {
		if c.Trusted {
			continue
		}
		if count[c.Author]++; count[c.Author] == 1 {
			order = append(order, c.Author)
		}
	}
	for i, name := range order {
		order[i] = fmt.Sprintf("%s: %d", name, count[name])
	}
	return strings.Join(order, ", ")
}

// gateEvidence shows what the gate said.
func gateEvidence(b *strings.Builder, v Verdict) {
	if !v.GateRan {
		return
	}
	if len(v.Gate) == 0 {
		b.WriteString("Gate: none is configured; nothing but the agent's word stands behind this.\n\n")
		return
	}
	b.WriteString("Gate:\n\n")
	for _, c := range v.Gate {
		how := fmt.Sprintf("failed with exit status %d", c.ExitCode)
		switch {
		case c.TimedOut:
			how = "did not end in time"
		case c.Passed():
			how = "passed"
		}
		fmt.Fprintf(b, "- %s %s in %s\n", tracker.QuoteLine(c.Command, reportLine), how, c.Duration.Round(time.Millisecond))
		if !c.Passed() && c.Tail != "" {
			fmt.Fprintf(b, "\n%s\n\n", tracker.Quote(lastBytes(c.Tail, reportTail), reportTail))
		}
	}
	b.WriteString("\n")
}

// next is the one command, or the one deed, that continues from here.
func (w *worker) next() string {
	v, key := w.rec.Verdict, w.rec.Key
	switch v.Outcome {
	case Succeeded:
		switch {
		case w.terms().Publish == PublishMerge:
			return "nothing; it is merged."
		case v.Request.URL != "":
			return "review " + v.Request.URL + "."
		}
		return fmt.Sprintf("review with %s, then %s.", tracker.Code("git diff "+w.rec.Base+"..."+w.rec.Branch),
			tracker.Code("git merge "+w.rec.Branch))
	case NoChange:
		return fmt.Sprintf("close the issue if you agree, or say more in it and run `ralph work %s`.", key)
	case NeedsInfo:
		return fmt.Sprintf("answer in the issue; the next sweep takes it up. At once: `ralph work %s`.", key)
	case PolicyBlocked:
		return fmt.Sprintf("nothing was published; look at %s. Publish it yourself if it is right, or take the changes out and run `ralph work %s`.",
			tracker.Code("git log -p "+w.rec.Base+".."+w.rec.Branch), key)
	case OverBudget:
		if v.FilledDisk {
			return fmt.Sprintf("see what it wrote, and make room or lower min-free-mb if that is right; then `ralph work %s`. The work so far is kept.", key)
		}
		return fmt.Sprintf("raise the budget, then `ralph work %s`; the work so far is kept.", key)
	case AgentUnavailable, Interrupted:
		return fmt.Sprintf("nothing; the next sweep continues. At once: `ralph work %s`.", key)
	case Superseded:
		return "nothing; the work so far is kept on the branch."
	}
	if v.Final {
		return fmt.Sprintf("look with `ralph show %s` and `ralph logs %s`; `ralph work %s` continues from the commits so far.",
			key, key, key)
	}
	return fmt.Sprintf("nothing; it is tried again after %s. At once: `ralph work %s`.", v.RetryAt.UTC().Format(time.RFC3339), key)
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func lastBytes(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[len(s)-n:], "")
}

func lastLine(s string) string {
	s = strings.TrimSpace(s)
	return s[strings.LastIndexByte(s, '\n')+1:]
}
