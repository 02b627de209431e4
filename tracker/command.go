package tracker

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Verb is the action that a command requests.
type Verb string

const (
	Retry   Verb = "retry"   // start a new run now, on top of the existing commits
	Fix     Verb = "fix"     // like Retry, with the text as feedback for the agent
	Fresh   Verb = "fresh"   // like Retry, but from the base
	Stop    Verb = "stop"    // end the current run and leave the issue to a person
	Explain Verb = "explain" // report how the last run ended
)

// Verbs lists every verb.
func Verbs() []Verb { return []Verb{Retry, Fix, Fresh, Stop, Explain} }

// Known reports whether the verb is one of Verbs.
func (v Verb) Known() bool { return slices.Contains(Verbs(), v) }

const (
	commandWord  = "/ralph"
	maxVerb      = 32      // bytes
	commandLimit = 4 << 10 // bytes of a command's text, which is stored until a run has answered it
)

// Command is an instruction to ralph from a person who may direct it.
type Command struct {
	ID      string // ID of the comment, unique in the project
	Key     string // key of the issue
	Request int    // number of ralph's request that was commented on; 0: the issue was commented on
	Verb    Verb   // may be unknown
	Text    string // text after the verb; untrusted
	By      string // account
	At      time.Time
	// Elsewhere is set for a command that was not given on the tracker: its ID is random and belongs to no comment.
	Elsewhere bool
}

// Answer is ralph's answer to a command.
type Answer struct {
	Refused bool
	Text    string // Markdown, neutralised; empty: a reaction is enough
}

// Refuse returns an Answer that rejects a command, with the reason in Markdown.
func Refuse(format string, args ...any) *Answer {
	return &Answer{Refused: true, Text: fmt.Sprintf(format, args...)}
}

// Commander is implemented by trackers on which people command ralph and review its requests.
type Commander interface {
	// Commands lists the unanswered commands, oldest first. It considers only comments by people who may direct ralph,
	// on issues and on requests of ralph's own account whose head branch has the prefix.
	Commands(ctx context.Context, prefix string) ([]Command, error)
	// Answer replies to a command and then marks it as answered; one with Elsewhere set gets only the reply. It is idempotent.
	Answer(ctx context.Context, c Command, a Answer) error
	// Review returns the open request of the branch, or the zero FollowUp if there is none. Feedback contains the review
	// threads with a comment by a person who may direct ralph that is neither answered nor resolved.
	Review(ctx context.Context, head string) (FollowUp, error)
	// Addressed replies to threads of a request with the commit that addresses them, once per thread. It skips deleted threads.
	Addressed(ctx context.Context, request int, threads []string, commit string) error
}

// ParseCommand parses a comment that begins with a command: "/ralph", a verb, and a text that may span several lines. The
// returned text is clean and at most 4 KiB long.
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
