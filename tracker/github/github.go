// Package github implements the tracker for GitHub and GitHub Enterprise Server. A [Tracker] lists and reads issues, checks who
// may direct ralph, writes reports, edits labels, opens pull requests and follows up on them. Programs find it by its
// [Descriptor]. Package tracker/forge/transport handles HTTP. Only this package and its subpackages import go-github.
//
// Trust depends on a person's permission in the API, never on the author association or the ending of a name. A bot is trusted
// only if its numeric ID is configured. A Tracker is safe for concurrent use.
package github

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"time"

	gh "github.com/google/go-github/v62/github"

	"github.com/ralph-pool/ralph/tracker"
	"github.com/ralph-pool/ralph/tracker/forge"
	"github.com/ralph-pool/ralph/tracker/forge/transport"
	"github.com/ralph-pool/ralph/tracker/github/internal/api"
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
		NewTitle:  "title",
		NewBody:   "body",
		TokenVars: []string{"GITHUB_TOKEN", "GH_TOKEN"},
		SecretVars: []string{"GITHUB_ENTERPRISE_TOKEN", "GH_ENTERPRISE_TOKEN", "GITHUB_PAT", "ACTIONS_RUNTIME_TOKEN",
			"ACTIONS_ID_TOKEN_REQUEST_TOKEN"},
		LoginHint: "make a fine-grained token with issues, pull requests and contents: write",
		Options: []tracker.Option{tracker.OptionProject, tracker.OptionApp, tracker.OptionAuthors, tracker.OptionAssignee,
			tracker.OptionMilestone},
		Webhook: readDelivery,
		Open:    func(s tracker.Settings) (tracker.Tracker, error) { return New(forge.Config{Settings: s}) },
	}
}

// Tracker is the backlog of one project on GitHub.
type Tracker struct {
	*forge.Project
	project Project
	app     *api.App // nil with a token
	api     *gh.Client
	graph   api.Graph

	mu          sync.Mutex
	progress    searchProgress        // guarded by mu
	otherIssues map[string]issueState // issues of other projects, by key; guarded by mu
	enabledAt   time.Time             // when the project's issues were last seen enabled; guarded by mu
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

// New checks cfg and makes the tracker. It sends no request.
func New(cfg forge.Config) (*Tracker, error) {
	project, err := ParseRemote(cfg.Project)
	if err != nil {
		return nil, err
	}
	if err := cfg.CheckForge(); err != nil {
		return nil, fmt.Errorf("GitHub: %w", err)
	}
	base, graph, err := addresses(project.Host, cfg.BaseURL)
	if err != nil {
		return nil, err
	}
	t := &Tracker{project: project, otherIssues: map[string]issueState{}}
	http := cfg.HTTP.With(cfg.Settings, base.String())
	if cfg.App != nil {
		if t.app, http.Source, err = api.Login(*cfg.App, http, project.Owner, project.Name, cfg.OnSecret); err != nil {
			return nil, err
		}
	}
	stack, err := transport.New(http)
	if err != nil {
		return nil, err
	}
	t.api = api.Client(stack, base)
	t.graph = api.Graph{API: t.api, Address: graph, Owner: project.Owner, Name: project.Name}
	t.Project = forge.NewProject(cfg.Settings, stack, forge.Profile{
		Title: "GitHub", Name: project.String(), Scope: strings.ToLower(project.Host + " " + project.String()), Request: "pull request #",
		GitUser: "x-access-token", Source: http.Source, // GitHub accepts any user name with a token
	}, &forge.People{List: t.collaborators, Ask: t.permission}, forge.Calls{
		WhoAmI: t.whoAmI, Read: func(ctx context.Context, key string) error { _, err := t.issue(ctx, key); return err },
		Home: t.home, Comments: t.comments, Poster: t.poster, React: t.graph.React, Marked: t.graph.Marked,
		Requests: t.requests, Request: t.request, Threads: t.graph.Threads, ReplyToThread: t.graph.ReplyToThread,
		MergeLater: t.graph.MergeLater, KeepOpen: t.graph.KeepOpen,
	})
	return t, nil
}

// addresses returns the addresses of the REST and the GraphQL API.
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

// Name returns "github".
func (t *Tracker) Name() string { return Name }

// Close closes the connections. No call may be in progress.
func (t *Tracker) Close() error {
	if t.app != nil {
		return errors.Join(t.app.Close(), t.Project.Close())
	}
	return t.Project.Close()
}

// whoAmI returns ralph's account. An app's token belongs to no user, so whoAmI looks up the app's bot.
func (t *Tracker) whoAmI(ctx context.Context) (forge.Account, error) {
	name := ""
	if t.app != nil {
		slug, err := t.app.Slug(ctx)
		if err != nil {
			return forge.Account{}, err
		}
		name = url.PathEscape(slug + "[bot]")
	}
	u, err := api.One(ctx, completeUser, func(ctx context.Context) (*gh.User, *gh.Response, error) { return t.api.Users.Get(ctx, name) })
	return account(u), err
}

// Committer returns the app's bot; empty with a person's token.
func (t *Tracker) Committer(ctx context.Context) (name, email string, err error) {
	if t.app == nil {
		return "", "", nil
	}
	bot, err := t.Identity(ctx)
	host, _, _ := strings.Cut(t.project.Host, ":")
	return bot.Name, fmt.Sprintf("%d+%s@users.noreply.%s", bot.ID, bot.Name, host), err
}
