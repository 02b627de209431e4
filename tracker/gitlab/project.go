package gitlab

import (
	"fmt"
	"strings"

	"github.com/ralph-pool/ralph/tracker"

	"github.com/ralph-pool/ralph/internal/pattern"
)

// Project is a repository on GitLab.
type Project struct {
	Host string // includes the port if it is neither 80 nor 443
	Path string // including its groups, such as "group/sub-group/project"
}

func (p Project) String() string { return p.Path }

var segment = pattern.Lazy(`^[A-Za-z0-9_](?:[A-Za-z0-9_.+-]{0,253}[A-Za-z0-9_+-])?$`)

const maxPath = 1024 // bytes

// ParseRemote finds the project in the address of a git remote. The address does not tell whether its host is a GitLab, nor
// the path below which the instance is served. Errors contain no password.
func ParseRemote(remote string) (Project, error) {
	r, err := tracker.ParseRemote(remote)
	if err != nil {
		return Project{}, fmt.Errorf("find the GitLab project: %w", err)
	}
	if r.Host == "altssh."+hosted || r.Host == "www."+hosted { // SSH over the HTTPS port
		r.Host = hosted
	}
	parts := strings.Split(r.Path, "/")
	good := len(parts) >= 2 && len(r.Path) <= maxPath
	for _, s := range parts {
		good = good && segment().MatchString(s) && !strings.HasSuffix(s, ".git") && !strings.HasSuffix(s, ".atom")
	}
	if !good {
		return Project{}, fmt.Errorf("find the GitLab project in a remote of %s: want …/GROUP/PROJECT with all its groups", r.Host)
	}
	return Project{Host: r.Host, Path: r.Path}, nil
}
