package compose

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/ralph-pool/ralph/internal/cli/exit"
	"github.com/ralph-pool/ralph/internal/disk"
	"github.com/ralph-pool/ralph/internal/pattern"
	"github.com/ralph-pool/ralph/tracker"
	"github.com/ralph-pool/ralph/tracker/github"
	"github.com/ralph-pool/ralph/tracker/gitlab"
	"github.com/ralph-pool/ralph/tracker/local"
	"github.com/ralph-pool/ralph/tracker/token"
	"github.com/ralph-pool/ralph/worktree"
)

// trackerKinds lists the kinds of trackers. A new one is one line here.
func trackerKinds() []tracker.Descriptor {
	return []tracker.Descriptor{local.Descriptor(), github.Descriptor(), gitlab.Descriptor()}
}

// Tracker opens the configured backlog.
func (a *App) Tracker(ctx context.Context, p *Parts) (tracker.Tracker, error) {
	kind, err := a.TrackerKind(ctx, p)
	if err != nil {
		return nil, err
	}
	if kind.Takes(tracker.OptionFolder) {
		if err := p.Loaded.Inside("local.dir", p.LocalDir); err != nil {
			return nil, err
		}
	}
	priorities, _ := tracker.ParseLabelNumbers(p.PriorityLabels)
	settings := tracker.Settings{
		BaseURL: p.ForgeURL, Folder: p.LocalDir, StateDir: p.State, CAFile: p.CAFile,
		Assignee: p.Assignee, Milestone: p.Milestone, Authors: p.Authors, BranchPrefix: p.BranchPrefix,
		Priorities: priorities, WriteSpacing: max(p.WriteSpacing, time.Nanosecond), OnSecret: p.redactToken, Log: p.Log,
	}
	for _, id := range p.TrustedBots {
		n, _ := strconv.ParseInt(id, 10, 64) // the configuration was checked
		settings.TrustedBots = append(settings.TrustedBots, n)
	}
	if kind.Takes(tracker.OptionProject) {
		if settings.Project, err = p.ProjectOn(ctx, kind); err != nil {
			return nil, err
		}
		if settings.MarkerKey, err = p.markerKey(); err != nil {
			return nil, err
		}
		if settings.Token, settings.App, err = a.login(p, kind); err != nil {
			return nil, err
		}
	}
	t, err := kind.New(settings)
	var unsupported *tracker.UnsupportedError
	switch {
	case errors.As(err, &unsupported):
		key := map[tracker.Option]string{tracker.OptionApp: "github-app-id"}[unsupported.Option]
		return nil, p.Wrong(cmp.Or(key, string(unsupported.Option)), fmt.Errorf("%w; remove it", err))
	case err != nil && kind.Takes(tracker.OptionProject):
		return nil, &exit.Error{Status: exit.Usage, Err: err, Hint: "name the project: --project " + kind.Service + "/OWNER/NAME"}
	case err != nil:
		return nil, &exit.Error{Status: exit.Usage, Err: err}
	}
	return t, nil
}

// TrackerKind resolves tracker auto: a remote on a known forge decides, else it is the folder of issues. A folder in the repository
// does not outweigh a forge: its files would replace issues that people have approved.
func (a *App) TrackerKind(ctx context.Context, p *Parts) (tracker.Descriptor, error) {
	if p.Tracker != "auto" {
		return a.Trackers.Lookup(p.Tracker)
	}
	remote, err := p.project(ctx)
	if err != nil {
		return tracker.Descriptor{}, err
	}
	hosted, onForge := a.Trackers.ForRemote(remote)
	folder, has := a.Trackers.Folder()
	if !onForge {
		return folder, nil
	}
	if _, err := os.Stat(p.LocalDir); has && err == nil {
		p.passedOver, p.taken = folder.Name, hosted.Name
	}
	return hosted, nil
}

// IgnoredTracker says which tracker auto chose, and why, if there was a second candidate; else it is empty.
func (p *Parts) IgnoredTracker() string {
	if p.passedOver == "" {
		return ""
	}
	return fmt.Sprintf("tracker auto: %s, because of the remote's host; the issues in %s are ignored", p.taken, p.LocalDir)
}

// IgnoredTrackerFix says how to choose the tracker explicitly.
func (p *Parts) IgnoredTrackerFix() string {
	return fmt.Sprintf("tracker: %s (or tracker: %s, if that is meant) in your own file, "+
		"or in .ralph/config.yaml with ralph trust, or --tracker %[1]s", p.passedOver, p.taken)
}

// project returns the address of the project on the forge, or "".
func (p *Parts) project(ctx context.Context) (string, error) {
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
	return p.Repo.Git().RemoteURL(ctx, name)
}

// login returns the credential for a tracker: the source of a token, or the app.
func (a *App) login(p *Parts, kind tracker.Descriptor) (source tracker.TokenSource, app *tracker.App, err error) {
	names := p.TokenEnv
	if len(names) == 0 {
		names = kind.TokenVars
	}
	for _, f := range []struct{ key, path string }{{"github-app-key", p.GitHubAppKey}, {"token-file", p.TokenFile}} {
		if err := p.Loaded.Inside(f.key, f.path); err != nil {
			return nil, nil, err
		}
	}
	switch {
	case p.GitHubAppID != 0:
		pem, err := os.ReadFile(p.GitHubAppKey)
		if err != nil {
			return nil, nil, p.Wrong("github-app-key", err)
		}
		a.warnOfOpen("github-app-key", p.GitHubAppKey)
		p.Secrets.Add(string(pem))
		return nil, &tracker.App{ID: p.GitHubAppID, Installation: p.GitHubAppInstallation, PrivateKey: pem}, nil
	case len(p.TokenCommand) > 0:
		source = &token.Cached{Source: token.Command{Argv: p.TokenCommand, Dir: p.Top, Env: a.Host.Env}}
	case p.TokenFile != "":
		a.warnOfOpen("token-file", p.TokenFile)
		source = token.File(p.TokenFile)
	default:
		source = token.Environment{Names: names, Lookup: func(name string) (string, bool) {
			v := a.Host.Getenv(name)
			return v, v != ""
		}}
	}
	return token.Observed{Source: source, OnSecret: p.redactToken}, nil, nil
}

// warnOfOpen warns of a file with a secret that every user of this host may read.
func (a *App) warnOfOpen(key, path string) {
	if info, err := os.Stat(path); err == nil && info.Mode().Perm()&0o004 != 0 {
		a.UI.WarnOnce(fmt.Sprintf("%s: every user of this host may read %s; restrict it with: chmod 600 %s", key, path, path))
	}
}

// MinToken is the minimum length of a token, in bytes.
const MinToken = 16

// ReadSecretFile reads the secret in the file that a key or flag names, and trims the space around it.
func (a *App) ReadSecretFile(key, path string) (string, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	a.warnOfOpen(key, path)
	return strings.TrimSpace(string(text)), nil
}

// redactToken adds a token to the secrets, so that ralph neither prints nor posts it.
func (p *Parts) redactToken(token string) { p.Secrets.AddShortLived(token) }

// markerKey returns the secret of this host by which ralph recognises its own reports. The first call creates it.
func (p *Parts) markerKey() ([]byte, error) {
	folder := filepath.Dir(p.State) // shared by all clones of this user
	path := filepath.Join(folder, "marker.key")
	key, err := os.ReadFile(path)
	if err == nil && len(key) >= 32 {
		p.Secrets.Add(string(key))
		return key, nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	key = []byte(rand.Text() + rand.Text())
	p.Secrets.Add(string(key))
	temp, err := disk.WriteTemp(folder, key, 0o600, disk.Power)
	if err != nil {
		return nil, err
	}
	err = os.Link(temp, path) // the first process wins
	if rerr := os.Remove(temp); rerr != nil && err == nil {
		err = rerr
	}
	if errors.Is(err, fs.ErrExist) {
		return os.ReadFile(path)
	}
	return key, err
}

// Authorize lets git use the tracker's credentials, for the tracker's host and over HTTPS only.
func (a *App) Authorize(ctx context.Context, p *Parts) error {
	credentials, ok := tracker.As[tracker.Credentials](p.Backlog)
	remote := p.Repo.Remote()
	if !ok || remote == "" {
		return nil
	}
	url, err := p.Repo.Git().RemoteURL(ctx, remote)
	if err != nil || !strings.HasPrefix(url, "https://") && !strings.HasPrefix(url, "http://127.0.0.1") {
		return err
	}
	options := p.Repository()
	options.HostDir, options.Remote, options.Credentials = p.hostDir(), remote, credentials.GitCredentials
	p.Repo, err = worktree.Open(ctx, p.Top, options)
	return err
}

// projectName matches a project without its forge: OWNER/NAME, or GROUP/…/PROJECT.
var projectName = pattern.Lazy(`^[A-Za-z0-9][A-Za-z0-9._-]*(/[A-Za-z0-9._-]+)+$`)

// ProjectOn returns the project's address on a forge of that kind. The default host is forge-url's, the remote's, or the kind's own.
func (p *Parts) ProjectOn(ctx context.Context, kind tracker.Descriptor) (string, error) {
	project, err := p.project(ctx)
	if err != nil {
		return "", err
	}
	switch {
	case p.Project != "":
		if !projectName().MatchString(project) {
			return project, nil
		}
		host, err := p.forgeHost(ctx)
		if err != nil {
			return "", err
		}
		return cmp.Or(host, kind.Service) + "/" + project, nil
	case project == "" && p.Remote == "none":
		return "", exit.Usagef("tracker %s: with --remote none the project is unknown; name it: --project OWNER/NAME", kind.Name)
	case project == "":
		return "", exit.Usagef("tracker %s: this repository has no remote that names the project; "+
			"add one: git remote add origin URL, or name the project: --project OWNER/NAME", kind.Name)
	case localPath(project):
		return "", exit.Usagef("tracker %s: the remote is a local path, which names no project; name it: --project OWNER/NAME", kind.Name)
	}
	return project, nil
}

// forgeHost returns the forge's address for a project without a host, or "" if it is unknown.
func (p *Parts) forgeHost(ctx context.Context) (string, error) {
	if u, err := url.Parse(p.ForgeURL); err == nil && u.Host != "" {
		return u.Scheme + "://" + strings.TrimPrefix(u.Host, "api."), nil
	}
	bare := *p
	bare.Project = ""
	remote, err := bare.project(ctx)
	if err != nil || remote == "" {
		return "", err
	}
	parsed, err := tracker.ParseRemote(remote)
	if err != nil {
		return "", nil //nolint:nilerr // a local path, or an address that no forge has
	}
	return "https://" + parsed.Host, nil
}

// localPath reports whether a remote's address is a folder.
func localPath(remote string) bool {
	return strings.HasPrefix(remote, "file://") || strings.HasPrefix(remote, "/") || strings.HasPrefix(remote, ".") ||
		strings.HasPrefix(remote, "~") || !strings.Contains(remote, ":")
}
