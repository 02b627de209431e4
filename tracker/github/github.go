// Package github is the tracker for GitHub and GitHub Enterprise Server. A [Tracker] lists and reads issues, asks the
// API who may direct ralph, writes one report a run, edits labels, opens pull requests and tells how they fare.
// internal/cli composes it; everything about HTTP is in tracker/forge, and go-github is imported nowhere else.
//
// Trust is decided by the permission that the API states for a person, never by association text or a name's ending.
// A bot is trusted only when its numeric id is configured. A Tracker is safe for concurrent use.
package github

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	gh "github.com/google/go-github/v62/github"
	"github.com/rs/zerolog"

	"github.com/ralph-pool/ralph/tracker"
	"github.com/ralph-pool/ralph/tracker/forge"
)

// Name is the registered name.
const Name = "github"

const (
	hosted       = "github.com"
	branchPrefix = "ralph/"
	markerKeyLen = 16 // bytes at least
)

// Config says which project, as whom, and which of its issues. Project, MarkerKey and one of Source and App are needed.
type Config struct {
	Project Project
	// BaseURL is the API's address; empty: derived from the project's host.
	BaseURL string
	Source  forge.Source
	App     *App // a GitHub App in place of Source

	CacheDir string
	CAFile   string
	MaxWait  time.Duration // for rate limits
	Spacing  time.Duration // between writes
	Timeout  time.Duration // of one request

	// Assignee, Milestone (title) and Authors narrow the backlog; empty means any.
	Assignee  string
	Milestone string
	Authors   []string
	// Priorities give a label's priority, 1 the most urgent. Nil: P0 to P4 and priority: critical, high, medium, low.
	Priorities map[string]int
	// TrustedBots are the numeric ids of bots that may direct ralph as people with write permission do.
	TrustedBots []int64
	// BranchPrefix is what ralph's own branches start with; empty: "ralph/".
	BranchPrefix string
	// MarkerKey proves that a report is ralph's own, at least 16 secret bytes that stay the same for this project.
	MarkerKey []byte

	Clock forge.Clock
	Base  http.RoundTripper
	Log   zerolog.Logger
}

// Tracker is the backlog of one project on GitHub.
type Tracker struct {
	cfg   Config
	stack *forge.Stack
	api   *gh.Client
	graph string // address of the GraphQL API

	writing keyed // one report or change at a time on an issue
	trust   trust
	mu      sync.Mutex
	self    *Identity // guarded by mu
}

var (
	_ tracker.Tracker     = (*Tracker)(nil)
	_ tracker.Approver    = (*Tracker)(nil)
	_ tracker.Requester   = (*Tracker)(nil)
	_ tracker.Follower    = (*Tracker)(nil)
	_ tracker.Inspector   = (*Tracker)(nil)
	_ tracker.Credentials = (*Tracker)(nil)
)

// New checks cfg and makes the tracker. It asks nothing of GitHub yet.
func New(cfg Config) (*Tracker, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	cfg.Project.Host = cmp.Or(cfg.Project.Host, hosted)
	cfg.BranchPrefix = cmp.Or(cfg.BranchPrefix, branchPrefix)
	if cfg.Priorities == nil {
		cfg.Priorities = defaultPriorities()
	}
	base, graph, err := addresses(cfg.Project.Host, cfg.BaseURL)
	if err != nil {
		return nil, err
	}
	stackCfg := forge.Config{
		BaseURL: base.String(), Source: cfg.Source, CacheDir: cfg.CacheDir, CAFile: cfg.CAFile, MaxWait: cfg.MaxWait,
		Spacing: cfg.Spacing, Timeout: cfg.Timeout, Clock: cfg.Clock, Base: cfg.Base, Log: cfg.Log,
	}
	if cfg.App != nil {
		source, err := cfg.App.source(stackCfg, cfg.Project)
		if err != nil {
			return nil, err
		}
		cfg.Source, stackCfg.Source = source, source
	}
	stack, err := forge.New(stackCfg)
	if err != nil {
		return nil, err
	}
	client := stack.Client()
	client.Transport = unhurried{stack}
	api := gh.NewClient(client)
	api.BaseURL = base
	return &Tracker{cfg: cfg, stack: stack, api: api, graph: graph}, nil
}

func (c *Config) check() error {
	var problems []error
	if !ownerName.MatchString(c.Project.Owner) || !repositoryName.MatchString(c.Project.Name) {
		problems = append(problems, fmt.Errorf("use %q as the GitHub project: want OWNER/NAME", c.Project.Owner+"/"+c.Project.Name))
	}
	if (c.Source == nil) == (c.App == nil) {
		problems = append(problems, errors.New("log in to GitHub: give a token source or an app, one of them"))
	}
	if len(c.MarkerKey) < markerKeyLen {
		problems = append(problems, fmt.Errorf("sign reports: the marker key has %d bytes, want at least %d", len(c.MarkerKey), markerKeyLen))
	}
	return errors.Join(problems...)
}

// addresses are those of the REST and the GraphQL API.
func addresses(host, base string) (*url.URL, string, error) {
	if base == "" {
		if host == hosted {
			base = "https://api.github.com/"
		} else {
			base = "https://" + host + "/api/v3/"
		}
	}
	u, err := url.Parse(strings.TrimSuffix(base, "/") + "/")
	if err != nil {
		return nil, "", fmt.Errorf("use %q as GitHub's address: %w", base, err)
	}
	graph := *u
	graph.Path = strings.TrimSuffix(strings.TrimSuffix(graph.Path, "/"), "/v3") + "/graphql"
	return u, graph.String(), nil
}

// unhurried keeps go-github from remembering rate limits: it would refuse requests by its own clock, where the stack
// below waits.
type unhurried struct{ next http.RoundTripper }

func (u unhurried) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := u.next.RoundTrip(r)
	if err == nil {
		resp.Header.Set("X-From-Cache", "1")
	}
	return resp, err
}

// Name is "github".
func (t *Tracker) Name() string { return Name }

// Close ends connections. No call may be under way.
func (t *Tracker) Close() error {
	if s := t.appSource(); s != nil {
		return errors.Join(s.minter.stack.Close(), t.stack.Close())
	}
	return t.stack.Close()
}

// repo is a path below the project.
func (t *Tracker) repo(format string, args ...any) string {
	return "repos/" + t.cfg.Project.Owner + "/" + t.cfg.Project.Name + fmt.Sprintf(format, args...)
}

// call makes one request and decodes its answer into out, a pointer or an io.Writer; nil: the answer tells nothing.
func (t *Tracker) call(ctx context.Context, method, path string, body, out any) (http.Header, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	req, err := t.api.NewRequest(method, path, body)
	if err != nil {
		return nil, fmt.Errorf("make request %s %s: %w", method, path, err)
	}
	// go-github takes an empty answer, or a null, for one: the stack decodes.
	if _, raw := out.(io.Writer); out != nil && !raw {
		ctx, out = forge.Decoded(ctx, out), nil
	}
	resp, err := t.api.Do(ctx, req, out)
	if err != nil {
		return nil, explain(ctx, resp, err)
	}
	return resp.Header, nil
}

// explain turns what go-github returned into the seam's errors.
func explain(ctx context.Context, resp *gh.Response, err error) error {
	var raw *http.Response
	if resp != nil {
		raw = resp.Response
	}
	message := ""
	var refused *gh.ErrorResponse
	if errors.As(err, &refused) {
		message = refused.Message
		for _, e := range refused.Errors {
			message += ": " + cmp.Or(e.Message, strings.TrimSpace(e.Resource+" "+e.Field+" "+e.Code))
		}
	}
	return forge.Explain(ctx, raw, message, err)
}

const (
	perPage  = 100
	maxPages = 1000
)

// pages reads a list to its end. It goes by whether a page is full, not by the Link header: an unchanged page may carry
// one from before the next page existed.
func pages[T forge.Part](ctx context.Context, t *Tracker, path string, query url.Values) ([]T, error) {
	var all []T
	for page := 1; page <= maxPages; page++ {
		q := url.Values{}
		for k, v := range query {
			q[k] = v
		}
		q.Set("per_page", fmt.Sprint(perPage))
		q.Set("page", fmt.Sprint(page))
		var some forge.List[T]
		if _, err := t.call(ctx, http.MethodGet, path+"?"+q.Encode(), nil, &some); err != nil {
			return nil, err
		}
		all = append(all, some...)
		if len(some) < perPage {
			return all, nil
		}
	}
	return nil, fmt.Errorf("list %s: more than %d pages", path, maxPages)
}
