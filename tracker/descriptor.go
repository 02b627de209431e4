package tracker

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"
)

// Option is a setting that only some kinds of tracker support.
type Option string

// The options. The filters are OptionAuthors, OptionAssignee and OptionMilestone.
const (
	OptionProject   Option = "project" // a project on a server, recognised by the address of a git remote
	OptionFolder    Option = "folder"  // a folder of issue files in the repository
	OptionApp       Option = "app"     // login as an app instead of with a token
	OptionAuthors   Option = "authors"
	OptionAssignee  Option = "assignee"
	OptionMilestone Option = "milestone"
)

// Descriptor describes one kind of tracker before a backlog is opened. Each tracker's package has one; a [Registry] holds
// them. Everything that a program says about a kind of tracker comes from here.
type Descriptor struct {
	Name    string // unique, lower-case; users select the tracker by it
	Title   string // display name, such as "GitHub"
	Summary string // where its issues are stored, in a few words
	// Hosts matches remotes of this kind. "git.example.com" is one host, "git.*" every host with that prefix.
	Hosts []string
	// Service is the address of the public service, the default for a project that is given by name alone.
	Service string
	// NewIssue is the path of the form for a new issue, relative to the project's address; empty: the tracker has no such form.
	NewIssue string
	// NewTitle and NewBody are the query parameters that fill in the form's title and text; empty: unsupported.
	NewTitle, NewBody string
	// TokenVars lists the environment variables that may hold a token, in order of preference.
	TokenVars []string
	// SecretVars lists further variables to hide from agents; one "*" matches any characters.
	SecretVars []string
	// LoginHint explains how to obtain a token.
	LoginHint string
	// Options lists the settings that this kind of tracker supports.
	Options []Option
	// Webhook authenticates and parses a delivery of the forge. It compares secrets in constant time. Its errors are ErrForged,
	// ErrStale, ErrOtherProject and ErrNoDelivery. It is nil if the tracker sends no deliveries.
	Webhook func(Delivery) (Notice, error)
	// Open makes the tracker without contacting a server. Callers use [Descriptor.New], which checks the settings.
	Open func(Settings) (Tracker, error)
}

// Settings configures a tracker. A tracker ignores settings that it does not need, but never a filter.
type Settings struct {
	Project  string // address of the project, in the format of a git remote
	BaseURL  string // base URL of the server's API; empty: derived from the project's host
	Folder   string // folder of the issue files, absolute
	StateDir string // ralph's own folder for caches and locks; empty: none
	CAFile   string // PEM file with additional certificate authorities
	Token    TokenSource
	App      *App // instead of Token

	// Authors, Assignee and Milestone (a title) are filters; empty means any.
	Authors   []string
	Assignee  string
	Milestone string

	Priorities   map[string]int      // by label, 1 is the most urgent; nil: [DefaultPriorities]
	TrustedBots  []int64             // numeric IDs of bots that may direct ralph
	BranchPrefix string              // prefix of ralph's branches; empty: "ralph/"
	MarkerKey    []byte              // secret that authenticates ralph's own reports
	WriteSpacing time.Duration       // minimum time between two writes; 0: the tracker's default
	OnSecret     func(secret string) // called with each token that the tracker creates itself; may be nil
	Log          *slog.Logger
}

const minKey = 16 // minimum bytes of a MarkerKey

// CheckForge validates settings for a forge: exactly one login and a MarkerKey that is long enough. It fills in defaults.
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

// App is an app identity on a forge that supports apps.
type App struct {
	ID           int64
	Installation int64  // 0: the installation of the project
	PrivateKey   []byte // PEM
}

// UnsupportedError is returned for an option that a kind of tracker does not support.
type UnsupportedError struct {
	Tracker string
	Option  Option
}

func (e *UnsupportedError) Error() string {
	return "tracker " + e.Tracker + " does not support " + string(e.Option)
}

// New checks the settings and opens the tracker. It returns an [UnsupportedError] for an option that the tracker does not support.
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
	if err != nil { // a failed Open may return a typed nil pointer, which is a non-nil Tracker
		return nil, err
	}
	return t, nil
}

// Takes reports whether this kind of tracker supports an option.
func (d Descriptor) Takes(o Option) bool { return slices.Contains(d.Options, o) }

// Serves reports whether the host matches this kind of tracker, and whether Hosts has it as a full name.
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
