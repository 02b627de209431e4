package report

import (
	"slices"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/loop"
	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/pool/redact"
)

// Redacted returns a copy of the record in which no text for people carries a secret.
func Redacted(r journal.Record, s *redact.Secrets) journal.Record {
	r.Published, r.Verdict.Reason.Detail = s.Clean(r.Published), s.Clean(r.Verdict.Reason.Detail)
	r.Unreported, r.Unlabelled, r.Warnings = s.Clean(r.Unreported), s.Clean(r.Unlabelled), cleanAll(r.Warnings, s)
	f := r.Facts
	f.Message, f.Question, f.NoChange, f.EndDetail = s.Clean(f.Message), s.Clean(f.Question), s.Clean(f.NoChange), s.Clean(f.EndDetail)
	f.StopBy, f.Conflict, f.Policy = s.Clean(f.StopBy), s.Clean(f.Conflict), cleanAll(f.Policy, s)
	f.Gate = cleanChecks(f.Gate, s)
	for _, v := range []**journal.Verification{&f.Baseline, &f.Verify} {
		if *v != nil {
			clean := **v
			clean.Checks = cleanChecks(clean.Checks, s)
			*v = &clean
		}
	}
	for _, fault := range []**journal.Fault{&f.Open, &f.Publish} {
		if *fault != nil {
			*fault = &journal.Fault{Kind: (*fault).Kind, Text: s.Clean((*fault).Text)}
		}
	}
	f.Watch, f.Retest, f.Review = cleanWatch(f.Watch, s), cleanRetest(f.Retest, s), cleanReview(f.Review, s)
	f.Failure = cleanFailure(f.Failure, s)
	f.Iterations = slices.Clone(f.Iterations)
	for i := range f.Iterations {
		f.Iterations[i].Failure = cleanFailure(f.Iterations[i].Failure, s)
		f.Iterations[i].Denied = slices.Clone(f.Iterations[i].Denied)
		for d := range f.Iterations[i].Denied {
			denied := &f.Iterations[i].Denied[d]
			denied.Tool, denied.Detail = s.Clean(denied.Tool), s.Clean(denied.Detail)
		}
	}
	r.Facts = f
	return r
}

func cleanFailure(f *agents.Failure, s *redact.Secrets) *agents.Failure {
	if f == nil {
		return nil
	}
	clean := *f
	clean.Message = s.Clean(clean.Message)
	return &clean
}

func cleanAll(list []string, s *redact.Secrets) []string {
	list = slices.Clone(list)
	for i := range list {
		list[i] = s.Clean(list[i])
	}
	return list
}

func cleanChecks(list []loop.Check, s *redact.Secrets) []loop.Check {
	out := make([]loop.Check, len(list))
	for i, c := range list {
		c.Tail, c.Command = s.Clean(c.Tail), s.Clean(c.Command)
		out[i] = c
	}
	return out
}
