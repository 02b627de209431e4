package tracker

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Verb is what a command asks for.
type Verb string

const (
	Retry   Verb = "retry"   // begin again now, from the commits so far
	Fix     Verb = "fix"     // like Retry; the text is feedback for the agent
	Fresh   Verb = "fresh"   // like Retry, from the base
	Stop    Verb = "stop"    // end the run that is on, and leave the issue to a person
	Explain Verb = "explain" // say how the last run ended
)

// Verbs lists every verb.
func Verbs() []Verb { return []Verb{Retry, Fix, Fresh, Stop, Explain} }

// Known reports whether the verb is one of Verbs.
func (v Verb) Known() bool { return slices.Contains(Verbs(), v) }

const (
	commandWord  = "/ralph"
	maxVerb      = 32      // bytes
	commandLimit = 4 << 10 // bytes of a command's text; it is stored until a run has answered it
)

// Command is what somebody who may direct ralph told it to do.
type Command struct {
	ID      string // of the comment; unique in the project
	Key     string // of the issue
	Request int    // number of ralph's request it was given on; 0: it was given on the issue
	Verb    Verb   // may be unknown
	Text    string // what follows the verb; untrusted
	By      string // account
	At      time.Time
	// Elsewhere says that it was not given on the tracker: ID is random, and no comment of that ID is there.
	Elsewhere bool
}

// Answer is ralph's answer to a command.
type Answer struct {
	Refused bool
	Text    string // Markdown, neutralised; empty: a reaction is enough
}

// Refuse is the answer that a command is not carried out, and why, in Markdown.
func Refuse(format string, args ...any) *Answer {
	return &Answer{Refused: true, Text: fmt.Sprintf(format, args...)}
}

// Commander is implemented by trackers on which people give ralph commands, and review its requests.
type Commander interface {
	// Commands lists the commands that have no answer yet, oldest first. Only people who may direct ralph give commands:
	// on issues, and on requests of ralph's own account whose head branch has the prefix.
	Commands(ctx context.Context, prefix string) ([]Command, error)
	// Answer replies to a command, and then marks it as answered; of one that was given elsewhere there is only the reply. It is
	// idempotent.
	Answer(ctx context.Context, c Command, a Answer) error
	// Review is the open request of the branch. Its feedback are the review threads in which somebody who may direct ralph
	// said something that nobody has answered or resolved. Without such a request the result is zero.
	Review(ctx context.Context, head string) (FollowUp, error)
	// Addressed answers threads of a request with the commit that takes them up, each once. Threads that are gone are skipped.
	Addressed(ctx context.Context, request int, threads []string, commit string) error
}

// ParseCommand reads a comment that begins with a command: "/ralph", a verb, and a text that may go on on the next lines. The
// text is cleaned and at most 4 KiB long.
func ParseCommand(comment string) (verb Verb, text string, ok bool) {
	comment, _ = Clean(comment)
	rest, ok := strings.CutPrefix(comment, commandWord)
	if !ok || rest != "" && !strings.ContainsAny(rest[:1], " \t\n") {
		return "", "", false
	}
	line, more, _ := strings.Cut(rest, "\n")
	line = strings.TrimSpace(line)
	word := line
	if n := strings.IndexAny(line, " \t"); n >= 0 {
		word = line[:n]
	}
	text = strings.TrimSpace(line[len(word):] + "\n" + more)
	return Verb(Cut(strings.ToLower(word), maxVerb)), Cut(text, commandLimit), true
}
