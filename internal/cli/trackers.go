package cli

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/ralph-pool/ralph/internal/cli/config"
	"github.com/ralph-pool/ralph/tracker"
	"github.com/ralph-pool/ralph/tracker/forge"
	"github.com/ralph-pool/ralph/tracker/github"
	"github.com/ralph-pool/ralph/tracker/gitlab"
	"github.com/ralph-pool/ralph/tracker/local"
	"github.com/ralph-pool/ralph/worktree"
)

// tracker is the backlog that the configuration names. A new tracker is one line here.
func (a *app) tracker(ctx context.Context, p *parts) (tracker.Tracker, error) {
	kind, err := p.kind(ctx)
	if err != nil {
		return nil, err
	}
	switch kind {
	case "github":
		return a.github(ctx, p)
	case "gitlab":
		return a.gitlab(ctx, p)
	}
	return backlog(p.Config, filepath.Join(p.state, "locks"))
}

// backlog is the local tracker; locks is ralph's own folder for it.
func backlog(c config.Config, locks string) (tracker.Tracker, error) {
	return local.New(local.Config{Dir: c.Local.Dir, LockDir: locks})
}

// kind resolves the tracker "auto": a folder of issues is there to be worked; else what hosts the remote decides.
func (p *parts) kind(ctx context.Context) (string, error) {
	if p.Tracker != "auto" {
		return p.Tracker, nil
	}
	remote, err := p.project(ctx)
	if err != nil {
		return "", err
	}
	forge := forgeOf(remote)
	if _, err := os.Stat(p.Local.Dir); err == nil {
		p.passedOver = forge
		return "local", nil
	}
	return cmp.Or(forge, "local"), nil
}

// forgeOf is the kind of forge that a remote's address speaks of; empty for a path, or what no known forge has.
func forgeOf(remote string) string {
	parsed, err := gitlab.ParseRemote(remote) // the wider of the two: any host, any depth of groups
	if err != nil {
		return ""
	}
	switch host := strings.ToLower(parsed.Host); {
	case host == "github.com":
		return "github"
	case host == "gitlab.com", strings.HasPrefix(host, "gitlab."):
		return "gitlab"
	case strings.HasPrefix(host, "github."):
		return "github"
	}
	return ""
}

// passing says, where the tracker "auto" had two to choose from, which it took and why; else it is empty.
func (p *parts) passing() string {
	if p.passedOver == "" {
		return ""
	}
	return fmt.Sprintf("tracker auto: local, because %s is there; the issues on %s are not looked at", p.Local.Dir, p.passedOver)
}

// passingMend settles the choice.
func (p *parts) passingMend() string {
	return fmt.Sprintf("tracker: %s (or tracker: local, if that is meant) in .ralph/config.yaml, or --tracker %[1]s", p.passedOver)
}

// project is the address of the project on the forge.
func (p *parts) project(ctx context.Context) (string, error) {
	if p.Project != "" {
		return p.Project, nil
	}
	name := p.Remote
	switch name {
	case "none":
		return "", nil
	case "auto":
		name = "origin"
	}
	return p.repo.RemoteURL(ctx, name)
}

func (a *app) github(ctx context.Context, p *parts) (tracker.Tracker, error) {
	project, err := p.projectOn(ctx, "github")
	if err != nil {
		return nil, err
	}
	parsed, err := github.ParseRemote(project)
	if err != nil {
		return nil, &exitError{status: exitUsage, err: fmt.Errorf("project: %w", err)}
	}
	key, err := p.markerKey()
	if err != nil {
		return nil, err
	}
	c := github.Config{
		Project: parsed, BaseURL: p.ForgeURL, Source: a.token(p, "GITHUB_TOKEN", "GH_TOKEN"), CacheDir: filepath.Join(p.state, "cache"),
		CAFile: p.CAFile, Assignee: p.Assignee, Milestone: p.Milestone, Authors: p.Authors, BranchPrefix: p.BranchPrefix,
		Priorities: p.Priorities(), MarkerKey: key, Spacing: p.spacing(), Log: p.log,
	}
	for _, id := range p.TrustedBots {
		n, _ := strconv.ParseInt(id, 10, 64) // the configuration has checked it
		c.TrustedBots = append(c.TrustedBots, n)
	}
	if p.GitHubAppID != 0 {
		pem, err := os.ReadFile(p.GitHubAppKey)
		if err != nil {
			return nil, p.wrong("github-app-key", err)
		}
		a.warnOfOpen("github-app-key", p.GitHubAppKey)
		c.Source, c.App = nil, &github.App{ID: p.GitHubAppID, Installation: p.GitHubAppInstallation, PrivateKey: pem, Tell: p.tell}
		p.tell(string(pem))
	}
	t, err := github.New(c)
	if err != nil {
		return nil, &exitError{status: exitUsage, err: err}
	}
	return t, nil
}

func (a *app) gitlab(ctx context.Context, p *parts) (tracker.Tracker, error) {
	project, err := p.projectOn(ctx, "gitlab")
	if err != nil {
		return nil, err
	}
	parsed, err := gitlab.ParseRemote(project)
	if err != nil {
		return nil, &exitError{status: exitUsage, err: fmt.Errorf("project: %w", err)}
	}
	key, err := p.markerKey()
	if err != nil {
		return nil, err
	}
	c := gitlab.Config{
		Project: parsed, BaseURL: p.ForgeURL, Source: a.token(p, "GITLAB_TOKEN"), CacheDir: filepath.Join(p.state, "cache"),
		CAFile: p.CAFile, Assignee: p.Assignee, Milestone: p.Milestone, Authors: p.Authors, BranchPrefix: p.BranchPrefix,
		Priorities: p.Priorities(), MarkerKey: key, Spacing: p.spacing(), Log: p.log,
	}
	for _, id := range p.TrustedBots {
		n, _ := strconv.Atoi(id) // the configuration has checked it
		c.TrustedBots = append(c.TrustedBots, n)
	}
	t, err := gitlab.New(c)
	if err != nil {
		return nil, &exitError{status: exitUsage, err: err}
	}
	return t, nil
}

// spacing is the time between writes. The trackers' own zero is their default; a nanosecond is none.
func (p *parts) spacing() time.Duration { return max(p.WriteSpacing, time.Nanosecond) }

// token is where the forge's token comes from: a program, a file, or the environment.
func (a *app) token(p *parts, names ...string) forge.Source {
	if len(p.TokenEnv) > 0 {
		names = p.TokenEnv
	}
	var source forge.Source
	switch {
	case len(p.TokenCommand) > 0:
		source = &forge.Kept{Source: forge.Command{Argv: p.TokenCommand, Dir: p.top, Env: a.host.Env}}
	case p.TokenFile != "":
		a.warnOfOpen("token-file", p.TokenFile)
		source = forge.File(p.TokenFile)
	default:
		source = forge.Environment{Names: names, Lookup: func(name string) (string, bool) {
			v := a.host.getenv(name)
			return v, v != ""
		}}
	}
	return forge.Told{Source: source, Tell: p.tell}
}

// warnOfOpen names a file with a secret that every user of this host may read.
func (a *app) warnOfOpen(key, path string) {
	if info, err := os.Stat(path); err == nil && info.Mode().Perm()&0o004 != 0 {
		a.ui.warn(fmt.Sprintf("%s: every user of this host may read %s; close it with: chmod 600 %s", key, path, path))
	}
}

// tell withholds a secret that was obtained.
func (p *parts) tell(secret string) { p.secrets.Add(secret) }

// markerKey is a secret of this host by which ralph knows its own reports. It is made once.
func (p *parts) markerKey() ([]byte, error) {
	folder := filepath.Dir(p.state) // one for all clones of this user
	path := filepath.Join(folder, "marker.key")
	key, err := os.ReadFile(path)
	if err == nil && len(key) >= 32 {
		p.tell(string(key))
		return key, nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	key = []byte(rand.Text() + rand.Text())
	p.tell(string(key))
	temp, err := os.CreateTemp(folder, "marker-")
	if err != nil {
		return nil, err
	}
	_, err = temp.Write(key)
	if err = errors.Join(err, temp.Sync(), temp.Close()); err == nil {
		err = os.Link(temp.Name(), path) // whoever is first wins
	}
	if rerr := os.Remove(temp.Name()); rerr != nil && err == nil {
		err = rerr
	}
	if errors.Is(err, fs.ErrExist) {
		return os.ReadFile(path)
	}
	return key, err
}

// authorize lets git talk to the forge with the tracker's own credentials, over HTTPS and to that host only.
func (a *app) authorize(ctx context.Context, p *parts) error {
	credentials, ok := tracker.As[tracker.Credentials](p.tracker)
	remote := p.repo.Remote()
	if !ok || remote == "" {
		return nil
	}
	url, err := p.repo.RemoteURL(ctx, remote)
	if err != nil || !strings.HasPrefix(url, "https://") && !strings.HasPrefix(url, "http://127.0.0.1") {
		return err
	}
	options := worktree.Options{StateDir: p.state, Remote: remote, Log: p.log, Credentials: credentials.GitCredentials}
	p.repo, err = worktree.Open(ctx, p.top, options)
	return err
}
