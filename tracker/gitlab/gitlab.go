// Package gitlab implements the tracker for GitLab, hosted and self-managed. A [Tracker] lists and reads issues, checks who may
// direct ralph, writes reports, edits labels, opens merge requests and follows up on them. Programs find it by its [Descriptor].
// Package tracker/forge/transport handles HTTP. No other package imports go-gitlab.
//
// Trust depends on a person's access level in the API, Developer or higher, never on a name. A bot, such as a service account,
// is trusted only if its numeric ID is configured. A Tracker is safe for concurrent use.
//
// go-gitlab is archived. Its retries and its rate limiter are off, because they do not distinguish reads from writes.
package gitlab

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	gl "github.com/xanzy/go-gitlab"

	"github.com/ralph-pool/ralph/tracker"
	"github.com/ralph-pool/ralph/tracker/forge"
	"github.com/ralph-pool/ralph/tracker/forge/transport"
)

// Name is the registered name.
const Name = "gitlab"

const hosted = "gitlab.com"

// Descriptor describes GitLab to a registry.
func Descriptor() tracker.Descriptor {
	return tracker.Descriptor{
		Name: Name, Title: "GitLab", Summary: "issues of a GitLab project",
		Hosts:     []string{hosted, "www." + hosted, "altssh." + hosted, "gitlab.*"},
		Service:   "https://" + hosted,
		NewIssue:  "/-/issues/new",
		NewTitle:  "issue[title]",
		NewBody:   "issue[description]",
		TokenVars: []string{"GITLAB_TOKEN"},
		SecretVars: []string{"GITLAB_PRIVATE_TOKEN", "GITLAB_ACCESS_TOKEN", "CI_JOB_TOKEN", "CI_JOB_JWT*", "CI_REGISTRY_PASSWORD",
			"CI_DEPLOY_PASSWORD"},
		LoginHint: "make a project access token with the scope api and the role Developer",
		Options:   []tracker.Option{tracker.OptionProject, tracker.OptionAuthors, tracker.OptionAssignee, tracker.OptionMilestone},
		Webhook:   readDelivery,
		Open:      func(s tracker.Settings) (tracker.Tracker, error) { return New(forge.Config{Settings: s}) },
	}
}

// Tracker is the backlog of one project on GitLab.
type Tracker struct {
	*forge.Project
	project Project
	api     *gl.Client //nolint:staticcheck // archived, as the package comment says

	mu        sync.Mutex
	lastEvent int               // ID of the newest event that was read for commands; guarded by mu
	labels    map[string]string // the project's spelling of labels, by lower case; guarded by mu
}

var (
	_ tracker.Tracker       = (*Tracker)(nil)
	_ tracker.Approver      = (*Tracker)(nil)
	_ tracker.Marker        = (*Tracker)(nil)
	_ tracker.Requester     = (*Tracker)(nil)
	_ tracker.Templater     = (*Tracker)(nil)
	_ tracker.Follower      = (*Tracker)(nil)
	_ tracker.AutoMerger    = (*Tracker)(nil)
	_ tracker.RequestLister = (*Tracker)(nil)
	_ tracker.Commander     = (*Tracker)(nil)
	_ tracker.Inspector     = (*Tracker)(nil)
	_ tracker.Credentials   = (*Tracker)(nil)
)

// unlimited disables go-gitlab's own rate limiter.
type unlimited struct{}

func (unlimited) Wait(context.Context) error { return nil }

// New checks cfg and makes the tracker. It sends no request.
func New(cfg forge.Config) (*Tracker, error) {
	project, err := ParseRemote(cfg.Project)
	if err != nil {
		return nil, err
	}
	if err := cfg.CheckForge(); err != nil {
		return nil, fmt.Errorf("GitLab: %w", err)
	}
	if cfg.App != nil {
		return nil, errors.New("GitLab: apps cannot log in; want a token")
	}
	cfg.BaseURL = strings.TrimRight(cmp.Or(cfg.BaseURL, "https://"+project.Host), "/")
	stack, err := transport.New(cfg.HTTP.With(cfg.Settings, cfg.BaseURL+"/api/v4/"))
	if err != nil {
		return nil, err
	}
	// The stack replaces the empty token by the source's token.
	//nolint:staticcheck // archived, as the package comment says
	api, err := gl.NewOAuthClient("", gl.WithBaseURL(cfg.BaseURL), gl.WithHTTPClient(stack.Client()), gl.WithCustomRetryMax(0),
		gl.WithoutRetries(), gl.WithCustomLimiter(unlimited{}))
	if err != nil {
		return nil, fmt.Errorf("use %q as GitLab's address: %w", cfg.BaseURL, err)
	}
	t := &Tracker{project: project, api: api, labels: map[string]string{}}
	t.Project = forge.NewProject(cfg.Settings, stack, forge.Profile{
		Title: "GitLab", Name: project.Path, Scope: strings.ToLower(project.Host) + " " + project.Path, Request: "merge request !",
		GitUser: "oauth2", Source: cfg.Token, Neutralize: escapeActions, // GitLab accepts this user name with every kind of token
	}, &forge.People{List: t.members, Ask: t.member, Confirm: t.checkNotBot}, forge.Calls{
		WhoAmI: t.whoAmI, Read: func(ctx context.Context, key string) error { _, err := t.getIssue(ctx, key); return err },
		Home: t.home, Comments: t.comments, Poster: t.poster, React: t.react, Marked: t.marked,
		Requests: t.requests, Request: t.request, Threads: t.threads, ReplyToThread: t.replyToThread,
		MergeLater: t.mergeLater, KeepOpen: t.keepOpen,
	})
	return t, nil
}

// RequestTemplates returns the paths of GitLab's default template.
func (*Tracker) RequestTemplates() []string {
	return []string{".gitlab/merge_request_templates/Default.md", ".gitlab/merge_request_templates/default.md"}
}

// Name returns "gitlab".
func (t *Tracker) Name() string { return Name }
