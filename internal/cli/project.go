package cli

import (
	"cmp"
	"context"
	"net/url"
	"strings"

	"github.com/ralph-pool/ralph/tracker"

	"github.com/ralph-pool/ralph/internal/pattern"
)

// projectName is a project without its forge: OWNER/NAME, or GROUP/…/PROJECT.
var projectName = pattern.Lazy(`^[A-Za-z0-9][A-Za-z0-9._-]*(/[A-Za-z0-9._-]+)+$`)

// projectOn is the address of the project on a forge of that kind. A name alone is looked for at forge-url, or else at the
// remote's host, or else at the kind's own service.
func (p *parts) projectOn(ctx context.Context, kind tracker.Descriptor) (string, error) {
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
		return "", usagef("tracker %s: with --remote none the project is unknown; name it: --project OWNER/NAME", kind.Name)
	case project == "":
		return "", usagef("tracker %s: this repository has no remote that names the project; add one: git remote add origin URL, or name the project: --project OWNER/NAME", kind.Name)
	case localPath(project):
		return "", usagef("tracker %s: the remote is a local path, which names no project; name it: --project OWNER/NAME", kind.Name)
	}
	return project, nil
}

// forgeHost is the address of the forge for a project given by name alone; empty when it is unknown.
func (p *parts) forgeHost(ctx context.Context) (string, error) {
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

// localPath reports that a remote's address is a folder.
func localPath(remote string) bool {
	return strings.HasPrefix(remote, "file://") || strings.HasPrefix(remote, "/") || strings.HasPrefix(remote, ".") ||
		strings.HasPrefix(remote, "~") || !strings.Contains(remote, ":")
}
