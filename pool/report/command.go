package report

import (
	"fmt"
	"strings"

	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/pool/redact"
	"github.com/ralph-pool/ralph/tracker"
)

// Explain is the answer to a person who asks how the last run of an issue ended, and what comes next. Of a run of another
// host only the tally is known; then the input's record is empty. holder is where a run is on; empty: nowhere.
func Explain(in Input, t journal.Tally, holder string) string {
	var b strings.Builder
	if holder != "" {
		fmt.Fprintf(&b, "A run is on, on machine %s.\n\n", tracker.QuoteLine(holder, line))
	}
	switch r := Redacted(in.Record, in.Secrets); {
	case t.Run == "":
		b.WriteString("No run of this issue has ended yet.\n\n")
	case r.ID != t.Run:
		fmt.Fprintf(&b, "The last run, on machine %s, ended %s: **%s**. Its report says what comes next.\n\n", tracker.QuoteLine(t.Host, line), stamp(t.At), t.Outcome)
	default:
		fmt.Fprintf(&b, "The last run, on machine %s, ended %s: **%s**", tracker.QuoteLine(r.Host, line), stamp(t.At), r.Verdict.Outcome)
		if why := Reason(r.Verdict.Reason); why != "" {
			fmt.Fprintf(&b, ", %s", tracker.QuoteLine(why, line))
		}
		fmt.Fprintf(&b, ".\n\nNext: %s\n\n", next(in, r))
	}
	if t.Asked != nil && holder == "" {
		fmt.Fprintf(&b, "Another run was asked for by %s; it begins as soon as a worker is free.\n\n", tracker.QuoteLine(t.Asked.By, line))
	}
	return strings.TrimSpace(b.String())
}

// Asked shows what somebody has asked for who is not on the tracker.
func Asked(c tracker.Command, secrets *redact.Secrets) string {
	return "Another run was asked for by " + tracker.QuoteLine(c.By, line) + ":\n\n" + tracker.Quote(secrets.Mask(c.Text), 8<<10)
}

// Unknown is the answer to a command that does not exist.
func Unknown(verb tracker.Verb) string {
	var known []string
	for _, v := range tracker.Verbs() {
		known = append(known, fmt.Sprintf("`/ralph %s`", v))
	}
	said := ""
	if verb != "" {
		said = fmt.Sprintf("There is no command %s. ", tracker.QuoteLine(string(verb), line))
	}
	return fmt.Sprintf("%sThe commands are %s. After `fix` comes what the agent has to do.", said, strings.Join(known, ", "))
}

// orComment adds the command that does the same, where the tracker takes commands.
func orComment(s Steps, v tracker.Verb) string {
	if !s.Commands {
		return ""
	}
	return fmt.Sprintf(" (or comment `/ralph %s`)", v)
}

// reviewed is what becomes of reviews of a request.
func reviewed(s Steps) string {
	text := ""
	if s.Rounds {
		text = " Where a review asks for changes, the next sweep makes them."
	}
	if s.Commands {
		text += " A comment `/ralph fix` has all review comments taken up that have no answer yet."
	}
	return text
}
