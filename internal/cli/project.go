package cli

import (
	"cmp"
	"context"
	"net/url"
	"regexp"
	"strings"

	"github.com/ralph-pool/ralph/tracker/gitlab"
)

// projectName is a project without its forge: OWNER/NAME, or GROUP/…/PROJECT.
var projectName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*(/[A-Za-z0-9._-]+)+$`)

// projectOn is the address of the project on a forge of that kind. A name alone is looked for where forge-url, or else the
// remote, or else the kind's own service is.
func (p *parts) projectOn(ctx context.Context, kind string) (string, error) {
	project, err := p.project(ctx)
	if err != nil {
		return "", err
	}
	switch {
	case p.Project != "":
		if !projectName.MatchString(project) {
			return project, nil
		}
		host, err := p.forgeHost(ctx)
		if err != nil {
			return "", err
		}
		return cmp.Or(host, "https://"+kind+".com") + "/" + project, nil
	case project == "" && p.Remote == "none":
		return "", usagef("tracker %s: with --remote none nothing tells the project; name it: --project OWNER/NAME", kind)
	case project == "":
		return "", usagef("tracker %s: this repository has no remote that tells the project; add one: git remote add origin URL, or name the project: --project OWNER/NAME", kind)
	case localPath(project):
		return "", usagef("tracker %s: the remote is a local path, which tells no project; name it: --project OWNER/NAME", kind)
	}
	return project, nil
}

// forgeHost is where the forge of a bare project name is, as the beginning of an address; empty when nothing says so.
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
	parsed, err := gitlab.ParseRemote(remote) // the wider of the two
	if err != nil {
		return "", nil //nolint:nilerr // a path, or what no forge has
	}
	return "https://" + parsed.Host, nil
}

// localPath reports that a remote's address is a folder.
func localPath(remote string) bool {
	return strings.HasPrefix(remote, "file://") || strings.HasPrefix(remote, "/") || strings.HasPrefix(remote, ".") ||
		strings.HasPrefix(remote, "~") || !strings.Contains(remote, ":")
}
