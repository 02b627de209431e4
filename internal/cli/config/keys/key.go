// Package keys is the table of ralph's configuration keys ([All]): for each key its name, kind, default, help and valid values, and
// the guard that says which values of a repository need the user's trust. Package config uses the table to read all sources of
// the configuration. The package does no I/O and is safe for concurrent use.
package keys

import (
	"strings"
	"time"
)

// Kind is the type of a key's value, and how people write it.
type Kind string

// The kinds. A list may be written as a single value, which is its only item.
const (
	Text     Kind = ""       // the kind of most keys
	Path     Kind = "path"   // in a flag relative to the working directory, in a file to the repository
	Int      Kind = "number" // a whole number
	Float    Kind = "amount" // a number
	Bool     Kind = "true or false"
	Duration Kind = "duration" // in Go's syntax: 90s, 1h30m
	Names    Kind = "names"    // a list; in the environment separated by commas
	Folders  Kind = "folders"  // a list of absolute paths, or ~/PATH; in the environment separated by commas
	Lines    Kind = "lines"    // a list; in the environment one item per line
	Words    Kind = "command"  // a program (a Path if it has a slash) and its arguments; a single text is split as by a shell
)

// zero returns the default of a key that has none in the table.
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

// Use is a set of purposes. It decides which commands have the key as a flag.
type Use int

const (
	toFind  Use = 1 << iota // find the backlog
	toTrack                 // read and change it
	toMerge                 // run a gate and publish, without an agent
	toWork                  // work the backlog
	toServe                 // work it as a service
	toRun                   // run one prompt
	toExec                  // run one command in a sandbox
)

// The sets of keys that commands take as flags.
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
	Name    string // as in the file; a dot stands for a level of nesting
	Group   string // heading; set by the table
	Kind    Kind
	Default any    // has the Go type of the field in Config
	Help    string // one line
	Use     Use    // 0: only `ralph config` has the flag
	// Guard says which values of a repository's file need the user's trust. Every key has one.
	Guard Guard
	// Bound makes the default count as the user's own value if their file does not set the key.
	Bound bool
	// Beside lists keys that this key can override. If the user's file sets one of them, the default counts as the user's own value
	// of this key. If a variable, flag or service sets one, a repository's value of this key is ignored.
	Beside []string
	// Levels orders the values of a key with the guard Looser, strongest first. A value on no level is the weakest.
	Levels [][]string
	// Choices is the closed set of values; empty allows all that Kind and Check allow.
	Choices []string
	// Registered marks a key whose choices are registered names (see Sources.Choices).
	Registered bool
	// Agents marks a key whose items are AGENT or AGENT:MODEL.
	Agents bool
	// Min is the minimum, of a duration in nanoseconds.
	Min int64
	// Longest is the maximum of a duration; 0: no maximum.
	Longest time.Duration
	// Least is the minimum of a number for which 0 means the default.
	Least float64
	// Short is the flag's one-letter form; most keys have none.
	Short string
	// Check refuses values that Kind accepts; for lists it gets each item. Its message continues a sentence that begins with the
	// value.
	Check func(string) error
	// Shell marks a key whose text, or each item of whose list, is a shell line.
	Shell bool
	// Hide returns an item for display; nil shows it unchanged.
	Hide func(string) string
}

// Flag returns the name of the key's flag, without dashes. The flag of a list adds one item, so its name is singular.
func (k Key) Flag() string {
	name := strings.ReplaceAll(k.Name, ".", "-")
	if k.Kind == Names || k.Kind == Lines {
		return strings.TrimSuffix(name, "s")
	}
	return name
}

// EnvPrefix is the prefix of ralph's variables.
const EnvPrefix = "RALPH_"

// Env returns the name of the key's variable.
func (k Key) Env() string {
	return EnvPrefix + strings.ToUpper(strings.NewReplacer(".", "_", "-", "_").Replace(k.Name))
}

// Field returns the name of the key's field in Config, in lower case.
func (k Key) Field() string { return strings.ReplaceAll(strings.ReplaceAll(k.Name, "-", ""), ".", "") }

// List reports whether the value is a []string.
func (k Key) List() bool {
	_, list := k.Kind.zero().([]string)
	return list
}

// Command reports whether the item at index i of a list, or the whole text, begins with the name of a program.
func (k Key) Command(i int) bool { return k.Shell || k.Kind == Words && i == 0 }

// Wanted describes a valid value in an error message.
func (k Key) Wanted() string {
	switch {
	case k.List():
		return "text or a list of texts"
	case k.Kind == Int:
		return "a whole number"
	case k.Kind == Float:
		return "a number"
	case k.Kind == Bool:
		return "true or false"
	case k.Kind == Text:
		return "text"
	}
	return "a " + string(k.Kind)
}
