// Package github is the tracker for GitHub and GitHub Enterprise Server. A [Tracker] lists and reads issues, asks the
// API who may direct ralph, writes one report a run, edits labels, opens pull requests and follows up on them.
// Programs find it by its [Descriptor]; everything about HTTP is in tracker/forge, and go-github is imported nowhere
// else.
//
// Trust is decided by the permission that the API states for a person, never by association text or a name's ending.
// A bot is trusted only when its numeric id is configured. A Tracker is safe for concurrent use.
package github

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"sync"

	gh "github.com/google/go-github/v62/github"
	"golang.org/x/sync/semaphore"

	"github.com/ralph-pool/ralph/tracker"
	"github.com/ralph-pool/ralph/tracker/forge"
	"github.com/ralph-pool/ralph/tracker/github/api"
)

// Name is the registered name.
const Name = "github"

const hosted = "github.com"

// Descriptor describes GitHub to a registry.
func Descriptor() tracker.Descriptor {
	return tracker.Descriptor{
		Name: Name, Title: "GitHub", Summary: "issues of a GitHub project",
		Hosts:     []string{hosted, "www." + hosted, "ssh." + hosted, "github.*"},
		Service:   "https://" + hosted,
		NewIssue:  "/issues/new",
		TokenVars: []string{"GITHUB_TOKEN", "GH_TOKEN"},
		SecretVars: []string{"GITHUB_ENTERPRISE_TOKEN", "GH_ENTERPRISE_TOKEN", "GITHUB_PAT", "ACTIONS_RUNTIME_TOKEN",
			"ACTIONS_ID_TOKEN_REQUEST_TOKEN"},
		LoginHint: "make a fine-grained token with issues, pull requests and contents: write",
		Options: []tracker.Option{tracker.OptionProject, tracker.OptionApp, tracker.OptionAuthors, tracker.OptionAssignee,
			tracker.OptionMilestone},
		Webhook: readDelivery,
		Open: func(s tracker.Settings) (tracker.Tracker, error) {
			t, err := New(Config{Settings: s})
			if err != nil {
				return nil, err
			}
			return t, nil
		},
	}
}

// Config says which project, as whom, and which of its issues. Project, MarkerKey and one of Token and App are needed.
type Config struct {
	tracker.Settings
	HTTP forge.Config // clock, transport and timeouts; the rest comes from the settings
}

// Tracker is the backlog of one project on GitHub.
type Tracker struct {
	cfg      Config
	project  Project
	stack    *forge.Stack
	source   tracker.TokenSource
	app      *api.App // nil without an app
	api      *gh.Client
	graph    api.Graph
	signer   forge.Signer
	people   *forge.People
	commands *forge.Commands

	elsewhere elsewhere

	writing *semaphore.Weighted // one report or change at a time
	mu      sync.Mutex
	self    forge.Account // zero: not asked yet; guarded by mu
	heard   heard         // guarded by mu
}

var (
	_ tracker.Tracker       = (*Tracker)(nil)
	_ tracker.Approver      = (*Tracker)(nil)
	_ tracker.Marker        = (*Tracker)(nil)
	_ tracker.Requester     = (*Tracker)(nil)
	_ tracker.Follower      = (*Tracker)(nil)
	_ tracker.AutoMerger    = (*Tracker)(nil)
	_ tracker.RequestLister = (*Tracker)(nil)
	_ tracker.Commander     = (*Tracker)(nil)
	_ tracker.Inspector     = (*Tracker)(nil)
	_ tracker.Credentials   = (*Tracker)(nil)
)

// New checks cfg and makes the tracker. It asks nothing of GitHub yet.
func New(cfg Config) (*Tracker, error) {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	project, err := ParseRemote(cfg.Project)
	if err != nil {
		return nil, err
	}
	if err := forge.CheckSettings(cfg.Settings); err != nil {
		return nil, fmt.Errorf("GitHub: %w", err)
	}
	cfg.BranchPrefix = cmp.Or(cfg.BranchPrefix, "ralph/")
	if cfg.Priorities == nil {
		cfg.Priorities = tracker.DefaultPriorities()
	}
	base, graph, err := addresses(project.Host, cfg.BaseURL)
	if err != nil {
		return nil, err
	}
	t := &Tracker{cfg: cfg, project: project, writing: semaphore.NewWeighted(1)}
	t.signer = forge.Signer{Key: cfg.MarkerKey, Scope: strings.ToLower(project.Host + " " + project.String())}
	stack := cfg.HTTP.With(cfg.Settings, base.String())
	if cfg.App != nil {
		if t.app, stack.Source, err = api.Login(*cfg.App, stack, project.Owner, project.Name, cfg.OnSecret); err != nil {
			return nil, err
		}
	}
	t.source = stack.Source
	if t.stack, err = forge.New(stack); err != nil {
		return nil, err
	}
	t.api = api.Client(t.stack, base)
	t.graph = api.Graph{API: t.api, Address: graph}
	t.people = forge.NewPeople(&forge.People{
		Bots: cfg.TrustedBots, List: t.collaborators, Ask: t.permission, Now: t.stack.Clock().Now, Log: cfg.Log,
	})
	t.commands = forge.NewCommands(t.people, t.graph.Marked, t.ownHead)
	t.elsewhere.now = t.stack.Clock().Now
	return t, nil
}

// addresses are those of the REST and the GraphQL API.
func addresses(host, base string) (*url.URL, string, error) {
	usual := "https://" + host + "/api/v3/"
	if host == hosted {
		usual = "https://api.github.com/"
	}
	u, err := url.Parse(strings.TrimSuffix(cmp.Or(base, usual), "/") + "/")
	if err != nil {
		return nil, "", fmt.Errorf("use %q as GitHub's address: %w", base, err)
	}
	graph := *u
	graph.Path = strings.TrimSuffix(strings.TrimSuffix(graph.Path, "/"), "/v3") + "/graphql"
	return u, graph.String(), nil
}

// Name is "github".
func (t *Tracker) Name() string { return Name }

// Close ends connections. No call may be under way.
func (t *Tracker) Close() error {
	if t.app != nil {
		return errors.Join(t.app.Close(), t.stack.Close())
	}
	return t.stack.Close()
}

// identity asks once who ralph is. An app's token is nobody's, so the app names its bot.
func (t *Tracker) identity(ctx context.Context) (forge.Account, error) {
	t.mu.Lock()
	self := t.self
	t.mu.Unlock()
	if self.ID != 0 {
		return self, nil
	}
	name := ""
	if t.app != nil {
		slug, err := t.app.Slug(ctx)
		if err != nil {
			return self, fmt.Errorf("find out who ralph is on GitHub: %w", err)
		}
		name = url.PathEscape(slug + "[bot]")
	}
	u, err := api.One(ctx, completeUser, func(ctx context.Context) (*gh.User, *gh.Response, error) { return t.api.Users.Get(ctx, name) })
	if err != nil {
		return self, fmt.Errorf("find out who ralph is on GitHub: %w", err)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.self = account(u)
	return t.self, nil
}

// Committer is the app's bot; empty with a person's token.
func (t *Tracker) Committer(ctx context.Context) (name, email string, err error) {
	if t.app == nil {
		return "", "", nil
	}
	bot, err := t.identity(ctx)
	host, _, _ := strings.Cut(t.project.Host, ":")
	return bot.Name, fmt.Sprintf("%d+%s@users.noreply.%s", bot.ID, bot.Name, host), err
}

// GitCredentials gives git the token of the API. GitHub takes any user name with it.
func (t *Tracker) GitCredentials(ctx context.Context) (user, secret string, err error) {
	token, err := t.source.Token(ctx)
	if err != nil {
		return "", "", fmt.Errorf("get a token for git: %w", err)
	}
	return "x-access-token", token.Secret, nil
}
