// Package gitlab is the tracker for GitLab, hosted and self-managed. A [Tracker] lists and reads issues, asks the API
// who may direct ralph, writes one report a run, edits labels, opens merge requests and tells how they fare.
// internal/cli composes it; everything about HTTP is in tracker/forge, and go-gitlab is imported nowhere else.
//
// Trust is decided by the access level that the API states for a person, Developer or higher, never by a name. A bot,
// which a service account is too, is trusted only when its numeric id is configured. A Tracker is safe for concurrent
// use.
//
// go-gitlab is archived. It makes requests, escapes paths and reads refusals here; its retries and its rate limiter are
// off, because they know no difference between a read and a comment, and answers are decoded into this package's own
// types, because its own panic on an issue without an id.
package gitlab

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/rs/zerolog"
	gl "github.com/xanzy/go-gitlab"

	"github.com/ralph-pool/ralph/tracker"
	"github.com/ralph-pool/ralph/tracker/forge"
)

// Name is the registered name.
const Name = "gitlab"

const (
	hosted       = "gitlab.com"
	branchPrefix = "ralph/"
	markerKeyLen = 16 // bytes at least
)

// Config says which project, as whom, and which of its issues. Project, Source and MarkerKey are needed.
type Config struct {
	Project Project
	// BaseURL is the instance's address, such as https://git.example.com/gitlab; empty: https:// and the project's host.
	BaseURL string
	// Source gives a personal, project or group access token with the scope api, or an OAuth token.
	Source forge.Source

	CacheDir string
	CAFile   string
	MaxWait  time.Duration // for rate limits
	Spacing  time.Duration // between writes
	Timeout  time.Duration // of one request

	// Assignee (user name), Milestone (title) and Authors (user names) narrow the backlog; empty means any.
	Assignee  string
	Milestone string
	Authors   []string
	// Priorities give a label's priority, 1 the most urgent. Nil: P0 to P4 and priority: critical, high, medium, low, with
	// any of ":", "::" and "/".
	Priorities map[string]int
	// ByWeight takes the weight of an issue that no label gives a priority, the smaller the more urgent.
	ByWeight bool
	// TrustedBots are the numeric ids of bots that may direct ralph as people with write permission do.
	TrustedBots []int
	// BranchPrefix is what ralph's own branches start with; empty: "ralph/".
	BranchPrefix string
	// MarkerKey proves that a report is ralph's own, at least 16 secret bytes that stay the same for this project.
	MarkerKey []byte

	Clock forge.Clock
	Base  http.RoundTripper
	Log   zerolog.Logger
}

// Tracker is the backlog of one project on GitLab.
type Tracker struct {
	cfg   Config
	stack *forge.Stack
	api   *gl.Client //nolint:staticcheck // archived, as the package comment says

	writing keyed // one report or change at a time on an issue
	listing keyed // one listing of the project's members at a time
	mu      sync.Mutex
	members roster            // guarded by mu
	self    *user             // guarded by mu
	labels  map[string]string // how the project spells a label, by its lower case; guarded by mu
}

var (
	_ tracker.Tracker     = (*Tracker)(nil)
	_ tracker.Approver    = (*Tracker)(nil)
	_ tracker.Requester   = (*Tracker)(nil)
	_ tracker.Follower    = (*Tracker)(nil)
	_ tracker.Inspector   = (*Tracker)(nil)
	_ tracker.Credentials = (*Tracker)(nil)
)

// New checks cfg and makes the tracker. It asks nothing of GitLab yet.
func New(cfg Config) (*Tracker, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	cfg.Project.Host = cmp.Or(cfg.Project.Host, hosted)
	cfg.BaseURL = strings.TrimRight(cmp.Or(cfg.BaseURL, "https://"+cfg.Project.Host), "/")
	cfg.BranchPrefix = cmp.Or(cfg.BranchPrefix, branchPrefix)
	if cfg.Priorities == nil {
		cfg.Priorities = defaultPriorities()
	}
	stack, err := forge.New(forge.Config{
		BaseURL: cfg.BaseURL, Source: cfg.Source, CacheDir: cfg.CacheDir, CAFile: cfg.CAFile, MaxWait: cfg.MaxWait,
		Spacing: cfg.Spacing, Timeout: cfg.Timeout, Clock: cfg.Clock, Base: cfg.Base, Log: cfg.Log,
	})
	if err != nil {
		return nil, err
	}
	// The stack replaces the empty token by the source's.
	//nolint:staticcheck // archived, as the package comment says
	api, err := gl.NewOAuthClient("", gl.WithBaseURL(cfg.BaseURL), gl.WithHTTPClient(stack.Client()), gl.WithCustomRetryMax(0),
		gl.WithoutRetries(), gl.WithCustomLimiter(unlimited{}))
	if err != nil {
		return nil, fmt.Errorf("use %q as GitLab's address: %w", cfg.BaseURL, err)
	}
	return &Tracker{cfg: cfg, stack: stack, api: api, labels: map[string]string{}}, nil
}

func (c *Config) check() error {
	var problems []error
	if err := c.Project.check(); err != nil {
		problems = append(problems, err)
	}
	if c.Source == nil {
		problems = append(problems, errors.New("log in to GitLab: give a token source"))
	}
	if len(c.MarkerKey) < markerKeyLen {
		problems = append(problems, fmt.Errorf("sign reports: the marker key has %d bytes, want at least %d", len(c.MarkerKey), markerKeyLen))
	}
	return errors.Join(problems...)
}

// Name is "gitlab".
func (t *Tracker) Name() string { return Name }

// Close ends connections. No call may be under way.
func (t *Tracker) Close() { t.stack.Close() }

// GitCredentials returns the name that GitLab takes for every kind of token, and the token.
func (t *Tracker) GitCredentials(ctx context.Context) (user, secret string, err error) {
	token, err := t.cfg.Source.Token(ctx)
	if err != nil {
		return "", "", fmt.Errorf("log in to %s for git: %w", t.cfg.Project.Host, err)
	}
	return "oauth2", token.Secret, nil
}
