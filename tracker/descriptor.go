package tracker

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"
)

// Option is a setting that some kinds of tracker take.
type Option string

// The options. The filters are OptionAuthors, OptionAssignee and OptionMilestone.
const (
	OptionProject   Option = "project" // a project on a server, recognised by a remote's address
	OptionFolder    Option = "folder"  // a folder of issue files in the repository
	OptionApp       Option = "app"     // an app's own login in place of a token
	OptionAuthors   Option = "authors"
	OptionAssignee  Option = "assignee"
	OptionMilestone Option = "milestone"
)

// Descriptor is what is known of one kind of tracker before a backlog is opened. Each tracker's package has one; a
// [Registry] holds them. Everything that a program says about a kind of tracker comes from here.
type Descriptor struct {
	Name    string // unique, lower-case: what people write to choose it
	Title   string // what people call it, such as "GitHub"
	Summary string // where its issues are, in a few words
	// Hosts recognise a remote of this kind. "git.example.com" is one host, "git.*" every host with that beginning.
	Hosts []string
	// Service is the address of the public service; a project that is given by name alone is looked for there.
	Service string
	// NewIssue is where people write an issue, below the project's address; empty: not in a browser.
	NewIssue string
	// NewTitle and NewBody are the parameters of that address which fill in the title and the text; empty: it has none.
	NewTitle, NewBody string
	// TokenVars are the environment variables that may hold a token, best first.
	TokenVars []string
	// SecretVars are further variables that agents must not see; one "*" stands for any characters.
	SecretVars []string
	// LoginHint says how to obtain a token.
	LoginHint string
	// Options are the settings it takes.
	Options []Option
	// Webhook checks a delivery of the forge, in constant time where the secret is compared, and reads it; nil: it sends none.
	// Its errors are ErrForged, ErrStale, ErrOtherProject and ErrNoDelivery.
	Webhook func(Delivery) (Notice, error)
	// Open makes the tracker. It asks nothing of a server yet. Callers use [Descriptor.New], which checks the settings.
	Open func(Settings) (Tracker, error)
}

// Settings is what a tracker is opened with. A kind of tracker ignores what it has no use for, but never a filter.
type Settings struct {
	Project  string // address of the project, as a git remote has it
	BaseURL  string // of the server's API; empty: derived from the project's host
	Folder   string // of issue files, absolute
	StateDir string // the program's own folder, for caches and locks; empty: none
	CAFile   string // further certificate authorities, PEM
	Token    TokenSource
	App      *App // in place of Token

	// Authors, Assignee and Milestone (a title) are filters; empty means any.
	Authors   []string
	Assignee  string
	Milestone string

	Priorities   map[string]int      // of labels, 1 the most urgent; nil: [DefaultPriorities]
	TrustedBots  []int64             // numeric ids of bots that may direct ralph
	BranchPrefix string              // of ralph's branches; empty: "ralph/"
	MarkerKey    []byte              // secret that proves which reports are ralph's own
	WriteSpacing time.Duration       // between two writes; 0: the tracker's default
	OnSecret     func(secret string) // is told of tokens that the tracker makes itself; may be nil
	Log          *slog.Logger
}

const minKey = 16 // bytes of a MarkerKey

// CheckForge refuses settings for a forge without a login, or with two, and a marker key that is too short. It fills in defaults.
func (s *Settings) CheckForge() error {
	if (s.Token == nil) == (s.App == nil) {
		return errors.New("log in: want a token source or an app, exactly one of them")
	}
	if len(s.MarkerKey) < minKey {
		return fmt.Errorf("sign reports: the marker key has %d bytes, want at least %d", len(s.MarkerKey), minKey)
	}
	if s.BranchPrefix == "" {
		s.BranchPrefix = "ralph/"
	}
	if s.Priorities == nil {
		s.Priorities = DefaultPriorities()
	}
	if s.Log == nil {
		s.Log = slog.New(slog.DiscardHandler)
	}
	return nil
}

// App is an identity of its own on a forge that has such.
type App struct {
	ID           int64
	Installation int64  // 0: that of the project
	PrivateKey   []byte // PEM
}

// UnsupportedError says that a kind of tracker cannot apply an option.
type UnsupportedError struct {
	Tracker string
	Option  Option
}

func (e *UnsupportedError) Error() string {
	return "tracker " + e.Tracker + " does not support " + string(e.Option)
}

// New checks the settings and opens the tracker. An option that it cannot apply is an [UnsupportedError].
func (d Descriptor) New(s Settings) (Tracker, error) {
	for option, set := range map[Option]bool{
		OptionAuthors: len(s.Authors) > 0, OptionAssignee: s.Assignee != "", OptionMilestone: s.Milestone != "",
		OptionApp: s.App != nil,
	} {
		if set && !d.Takes(option) {
			return nil, &UnsupportedError{Tracker: d.Name, Option: option}
		}
	}
	t, err := d.Open(s)
	if err != nil { // an Open may give a nil pointer of its own type with it
		return nil, err
	}
	return t, nil
}

// Takes reports whether this kind of tracker takes an option.
func (d Descriptor) Takes(o Option) bool { return slices.Contains(d.Options, o) }

// Serves reports whether a host is of this kind, and whether it is named in full.
func (d Descriptor) Serves(host string) (serves, exact bool) {
	for _, h := range d.Hosts {
		if strings.EqualFold(h, host) {
			return true, true
		}
		if prefix, ok := strings.CutSuffix(h, "*"); ok && strings.HasPrefix(strings.ToLower(host), prefix) {
			serves = true
		}
	}
	return serves, false
}
