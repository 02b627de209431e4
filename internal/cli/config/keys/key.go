// Package keys is the table of ralph's configuration keys ([All]): the name of each, its kind, default and help, which values
// it takes, and which of them a repository may set without the user's trust. Package config reads the sources and fills
// its Config by this table. Everything here is pure and safe for concurrent use.
package keys

import (
	"strings"
	"time"
)

// Kind says what a key's value is and how it is written.
type Kind string

// The kinds. A single value is accepted where a list is asked for, and is a list of one.
const (
	Text     Kind = ""       // the kind of most keys
	Path     Kind = "path"   // relative to the working directory in a flag, to the repository in a file
	Int      Kind = "number" // a whole number
	Float    Kind = "amount" // a number
	Bool     Kind = "true or false"
	Duration Kind = "duration" // as Go writes it: 90s, 1h30m
	Names    Kind = "names"    // a list; in the environment separated by commas
	Folders  Kind = "folders"  // a list of absolute paths, or ~/PATH; in the environment separated by commas
	Lines    Kind = "lines"    // a list; in the environment one a line
	Words    Kind = "command"  // a program (with a slash it is a Path) and its arguments; one text is split as by a shell
)

// zero is the default of a key that names none.
func (k Kind) zero() any {
	switch k {
	case Int:
		return 0
	case Float:
		return 0.0
	case Bool:
		return false
	case Duration:
		return time.Duration(0)
	case Names, Folders, Lines, Words:
		return []string{}
	case Text, Path:
	}
	return ""
}

// Use says what a key is for, and so which commands have it as a flag.
type Use int

const (
	toFind  Use = 1 << iota // the backlog
	toTrack                 // to read and change it
	toMerge                 // to run a gate and to publish, without an agent
	toWork                  // to work the backlog
	toServe                 // to work it for as long as a service runs
	toRun                   // to run one prompt
	toExec                  // to run one command in a sandbox
)

// The keys that kinds of commands take as flags.
const (
	ForIssue   = toFind
	ForTracker = ForIssue | toTrack
	ForMerge   = ForTracker | toMerge
	ForWork    = ForMerge | toWork
	ForService = ForWork | toServe
	ForPrompt  = toRun
	ForExec    = toExec
)

// Key is one setting.
type Key struct {
	Name    string // as the file has it; a dot is one level of nesting
	Group   string // heading it stands under; set by the table
	Kind    Kind
	Default any    // of the Go type that Config has
	Help    string // one line
	Use     Use    // none: only `ralph config` has its flag
	// Guard says which values of a repository's file need the user's trust. Every key has one.
	Guard Guard
	// Bound says that the default counts as the user's own value where their file does not have the key.
	Bound bool
	// Beside are keys this one acts in place of. Where the user's file has one of them, the default counts as their own value of
	// this one. Where a variable, flag or service has one, a repository's value of this one does not count.
	Beside []string
	// Levels order the values of a key that is guarded as Looser, strongest first. A value on none is weaker than all.
	Levels [][]string
	// Choices is the closed set of values; empty allows anything the kind and Check allow.
	Choices []string
	// Registered marks keys whose choices are what the program registers (see Sources.Choices).
	Registered bool
	// Agents marks keys whose items are AGENT or AGENT:MODEL.
	Agents bool
	// Min is the least number, or the least duration in nanoseconds.
	Min int64
	// Longest is the longest duration; 0: there is none.
	Longest time.Duration
	// Least is the least number besides 0, where 0 stands for the default.
	Least float64
	// Short is the flag's letter; most have none.
	Short string
	// Check refuses what the kind cannot; for lists it sees each item. Its message follows the value.
	Check func(string) error
	// Hide returns an item as it may be shown; nil shows it.
	Hide func(string) string
}

// Flag is the name of the key's flag, without dashes. It adds one item to a list, and so is no plural.
func (k Key) Flag() string {
	name := strings.ReplaceAll(k.Name, ".", "-")
	if k.Kind == Names || k.Kind == Lines {
		return strings.TrimSuffix(name, "s")
	}
	return name
}

// EnvPrefix begins the name of every variable of ralph's.
const EnvPrefix = "RALPH_"

// Env is the name of the key's variable.
func (k Key) Env() string {
	return EnvPrefix + strings.ToUpper(strings.NewReplacer(".", "_", "-", "_").Replace(k.Name))
}

// Field is the name of the Config's field, in lower case.
func (k Key) Field() string { return strings.NewReplacer("-", "", ".", "").Replace(k.Name) }

// List reports whether the value is a []string.
func (k Key) List() bool {
	_, list := k.Kind.zero().([]string)
	return list
}

// Wanted is what to write for the value, in words.
func (k Key) Wanted() string {
	switch {
	case k.List():
		return "a text or a list of texts"
	case k.Kind == Int:
		return "a whole number"
	case k.Kind == Float:
		return "a number"
	case k.Kind == Bool:
		return "true or false"
	case k.Kind == Text:
		return "a text"
	}
	return "a " + string(k.Kind)
}
